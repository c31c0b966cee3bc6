/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/latency-print.h"

#include <math.h>
#include <string.h>

#include "client/output/print.h"

#define LABEL 16 /* columns of a row's name */
#define CELL 5

void pair_name(const struct findings *findings, size_t a, size_t b, char buf[static PAIR_NAME])
{
	char first[UNIT_NAME], second[UNIT_NAME];

	unit_name(findings->model, findings->units, a, first);
	unit_name(findings->model, findings->units, b, second);
	if (a == b)
		snprintf(buf, PAIR_NAME, "%s with itself", first);
	else
		snprintf(buf, PAIR_NAME, "%s and %s", first, second);
}

void ran_name(const struct findings *findings, size_t i, char buf[static RAN_NAME])
{
	const struct ran *ran = &findings->matrix->ran[i];
	unsigned lanes = findings->units->lanes;
	size_t used = 0;

	for (unsigned lane = 0; lane < lanes && used < RAN_NAME; lane++) {
		const struct place *place = &ran->lane[lane];
		char xcc[16] = "", array[16] = "";

		if (lanes > 1)
			snprintf(xcc, sizeof(xcc), "XCC%u.", place->xcc);
		if (findings->model->geometry.arrays > 1)
			snprintf(array, sizeof(array), ".SH%u", place->array);
		used += (size_t)snprintf(buf + used, RAN_NAME - used, "%s%sSE%u%s:%u",
					 lane > 0 ? " " : "", xcc, place->engine, array, place->cu);
	}
}

static void print_legend(const struct findings *findings, FILE *out)
{
	const struct units *units = findings->units;

	print_line(out,
		   "%s: from %s to %s, nanoseconds one way, median of %u rounds; flags in "
		   "%s",
		   findings->gpu, unit_kind(units), unit_kind(units), GAME_ROUNDS,
		   findings->same_line ? "one cache line" : "cache lines of their own");
	if (units->lanes > 1)
		print_line(out,
			   "Each stands for one %s on each of the %u XCCs, named by the "
			   "first's.",
			   unit_kind(units), units->lanes);
	fprintf(out, "\n%*s", LABEL, "");
	for (size_t i = 0; i < units->n; i++)
		fprintf(out, "%*zu", CELL, i);
	fputc('\n', out);
}

static void print_row(const struct findings *findings, size_t a, FILE *out)
{
	const struct ran *ran = &findings->matrix->ran[a];
	char name[UNIT_NAME];

	unit_name(findings->model, findings->units, a, name);
	fprintf(out, "%4zu %-9s%c%c", a, name, findings->summary->slow[a] ? '*' : ' ',
		ran->elsewhere ? '!' : ' ');
	for (size_t b = 0; b < findings->units->n; b++) {
		double ns = matrix_get(findings->matrix, a, b);

		if (isnan(ns))
			fprintf(out, "%*s", CELL, "-");
		else
			fprintf(out, "%*.0f", CELL, ns);
	}
	fputc('\n', out);
}

static void print_matrix(const struct findings *findings, FILE *out)
{
	unsigned engine = UNIT_MIXED - 1;

	for (size_t a = 0; a < findings->units->n; a++) {
		unsigned here = findings->units->list[a].engine;

		if (here != engine && here == UNIT_MIXED)
			fprintf(out, "several shader engines\n");
		else if (here != engine)
			fprintf(out, "SE %u\n", here);
		engine = here;
		print_row(findings, a, out);
	}
	fputc('\n', out);
}

static void print_classes(const struct findings *findings, FILE *out)
{
	static const char *const names[PAIR_CLASSES] = {
		[PAIR_SAME_ENGINE] = "same shader engine",
		[PAIR_ACROSS] = "across shader engines",
	};

	for (unsigned class = 0; class < PAIR_CLASSES; class ++) {
		const struct spread *pairs = &findings->summary->pairs[class];
		char name[32];

		if (pairs->n == 0)
			continue;
		if (names[class])
			snprintf(name, sizeof(name), "%s", names[class]);
		else
			snprintf(name, sizeof(name), "same %s", unit_kind(findings->units));
		fprintf(out, "%-21s  median %.0f ns, from %.0f to %.0f, %zu pair%s\n", name,
			pairs->median, pairs->least, pairs->most, pairs->n, print_s(pairs->n));
	}
}

static void print_slow(const struct findings *findings, FILE *out)
{
	const struct summary *summary = findings->summary;
	char name[PAIR_NAME];

	for (size_t a = 0; a < findings->units->n; a++) {
		unit_name(findings->model, findings->units, a, name);
		if (summary->slow[a])
			print_line(out, "outlier: %s, %.2f times what is usual with all others",
				   name, summary->ratio[a]);
	}
	for (size_t a = 0; a < findings->units->n; a++) {
		for (size_t b = a; b < findings->units->n; b++) {
			if (!summary_slow_pair(summary, findings->matrix, findings->units, a, b))
				continue;
			pair_name(findings, a, b, name);
			print_line(out, "outlier: %s, %.0f ns", name,
				   matrix_get(findings->matrix, a, b));
		}
	}
}

static void print_elsewhere(const struct findings *findings, FILE *out)
{
	char name[UNIT_NAME], place[RAN_NAME];
	bool guessed = false;

	for (size_t i = 0; i < findings->units->n; i++) {
		const struct ran *ran = &findings->matrix->ran[i];

		if (!ran->elsewhere)
			continue;
		unit_name(findings->model, findings->units, i, name);
		ran_name(findings, i, place);
		print_line(out, "mask not honoured: %s ran on %s%s", name, place,
			   ran->moved ? ", and elsewhere in other games" : "");
		guessed = !findings->harvest_known;
	}
	if (guessed)
		print_line(out, "Which CUs are fused off is not known here: these may be where "
				"their masks lead.");
}

void print_text(const struct command *command, const struct findings *findings, FILE *out)
{
	size_t unmet = findings->matrix->unmet;

	if (!command->no_legend)
		print_legend(findings, out);
	print_matrix(findings, out);
	print_classes(findings, out);
	print_slow(findings, out);
	print_elsewhere(findings, out);
	if (unmet > 0)
		print_line(out, "did not meet: %zu pair%s, shown as -", unmet, print_s(unmet));
}
