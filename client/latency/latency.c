/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/latency/bench.h"
#include "client/latency/matrix.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/output/svg.h"
#include "util/base.h"

/* The verb latency. */

struct findings {
	const struct gpuarb_gpu *gpu;
	const struct model *model;
	const struct units *units;
	const struct matrix *matrix;
	const struct summary *summary;
	unsigned rules;
	bool emulated;
};

/* ---- text ----------------------------------------------------------------------------------- */

#define LABEL 16 /* columns for the name of a row */
#define CELL 5

/* "SE0:3 and SE2:1", "SE0:3 with itself". */
#define PAIR_NAME (2 * UNIT_NAME + 16)
static void pair_name(const struct findings *findings, size_t a, size_t b,
		      char buf[static PAIR_NAME])
{
	char first[UNIT_NAME], second[UNIT_NAME];

	unit_name(findings->model, findings->units, a, first);
	unit_name(findings->model, findings->units, b, second);
	if (a == b)
		snprintf(buf, PAIR_NAME, "%s with itself", first);
	else
		snprintf(buf, PAIR_NAME, "%s and %s", first, second);
}

/* The place where a unit ran: "SE0:5", or on all XCCs "XCC0.SE0:5 …". */
#define RAN_NAME (CUSET_XCCS * UNIT_NAME)
static void ran_name(const struct findings *findings, size_t i, char buf[static RAN_NAME])
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
		   "%s: from %s to %s, nanoseconds one way, median of %u rounds; flags in %s%s",
		   findings->gpu->name, unit_kind(units), unit_kind(units), GAME_ROUNDS,
		   findings->rules & GAME_SAME_LINE ? "one cache line" : "cache lines of their own",
		   findings->emulated ? "; EMULATED, not measured" : "");
	if (units->lanes > 1)
		print_line(out,
			   "Each entry is one %s on each of the %u XCCs, named after the first.",
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
			print_line(out, "outlier: %s, %.2f times the usual latency with all others",
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
		guessed = !findings->gpu->harvest_known;
	}
	if (guessed)
		print_line(out,
			   "It is unknown which CUs are fused off, so these units may have run at "
			   "the place of their masks.");
}

static void print_text(const struct command *command, const struct findings *findings, FILE *out)
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

/* ---- JSON ----------------------------------------------------------------------------------- */

static const char *const pair_class_keys[PAIR_CLASSES] = {
	[PAIR_SAME_UNIT] = "same_unit",
	[PAIR_SAME_ENGINE] = "same_shader_engine",
	[PAIR_ACROSS] = "across",
};

/* Whole nanoseconds: the resolution of the clock is lower than that of an average. */
static void json_ns(struct json_object *in, const char *key, double ns)
{
	if (isnan(ns))
		json_null(in, key);
	else
		json_number(in, key, (uint64_t)llround(ns));
}

static void json_places(struct json_object *map, const char *key, const struct place *places,
			unsigned n)
{
	JSON_ROWS(map, key, place, at < n ? &places[at] : NULL, ("xcc", place->xcc),
		  ("shader_engine", place->engine), ("shader_array", place->array),
		  ("cu", place->cu));
}

static void json_unit(struct json_object *list, const struct findings *findings, size_t i)
{
	const struct units *units = findings->units;
	const struct unit *unit = &units->list[i];
	const struct ran *ran = &findings->matrix->ran[i];
	struct json_object *map = json_map(list, NULL);
	char name[UNIT_NAME];

	unit_name(findings->model, units, i, name);
	json_text(map, "name", name);
	json_mask(map, "cu_mask", unit->mask, units->words);
	json_known(map, "shader_engine", unit->engine, UNIT_MIXED);
	json_places(map, "xccs", unit->lane, units->lanes);
	if (ran->known)
		json_places(map, "ran_on", ran->lane, units->lanes);
	else
		json_null(map, "ran_on");
	if (!ran->known || (ran->elsewhere && !ran->moved && !findings->gpu->harvest_known))
		json_null(map, "mask_honoured");
	else
		json_flag(map, "mask_honoured", !ran->elsewhere);
}

static void json_matrix(struct json_object *map, const struct findings *findings)
{
	struct json_object *rows = json_list(map, "matrix");

	for (size_t a = 0; a < findings->units->n; a++) {
		struct json_object *row = json_list(rows, NULL);

		for (size_t b = 0; b < findings->units->n; b++)
			json_ns(row, NULL, matrix_get(findings->matrix, a, b));
	}
}

static void json_summary(struct json_object *map, const struct findings *findings)
{
	struct json_object *classes = json_map(map, "summary");

	for (unsigned class = 0; class < PAIR_CLASSES; class ++) {
		const struct spread *pairs = &findings->summary->pairs[class];
		struct json_object *one = json_map(classes, pair_class_keys[class]);

		json_number(one, "pairs", pairs->n);
		json_ns(one, "median", pairs->median);
		json_ns(one, "least", pairs->least);
		json_ns(one, "most", pairs->most);
	}
}

static void json_outliers(struct json_object *map, const struct findings *findings)
{
	const struct summary *summary = findings->summary;
	struct json_object *outliers = json_map(map, "outliers"), *list;

	list = json_list(outliers, "units");
	for (size_t a = 0; a < findings->units->n; a++) {
		struct json_object *one;

		if (!summary->slow[a])
			continue;
		one = json_map(list, NULL);
		JSON_FIELDS(one, ("unit", a), ("ratio", summary->ratio[a]));
	}
	list = json_list(outliers, "pairs");
	for (size_t a = 0; a < findings->units->n; a++) {
		for (size_t b = a; b < findings->units->n; b++) {
			const uint32_t pair[] = { (uint32_t)a, (uint32_t)b };
			struct json_object *one;

			if (!summary_slow_pair(summary, findings->matrix, findings->units, a, b))
				continue;
			one = json_map(list, NULL);
			json_numbers(one, "units", pair, 2);
			json_ns(one, "ns", matrix_get(findings->matrix, a, b));
		}
	}
}

static void print_json(const struct findings *findings, FILE *out)
{
	struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;

	json_text(map, "gpu", findings->gpu->name);
	json_flag(map, "emulated", findings->emulated);
	json_text(map, "unit", findings->units->step > 1 ? "wgp" : "cu");
	json_flag(map, "same_line", findings->rules & GAME_SAME_LINE);
	json_flag(map, "compare_and_swap", findings->rules & GAME_SWAP);
	json_number(map, "rounds", GAME_ROUNDS);
	json_flag(map, "harvest_known", findings->gpu->harvest_known);
	list = json_list(map, "units");
	for (size_t i = 0; i < findings->units->n; i++)
		json_unit(list, findings, i);
	json_matrix(map, findings);
	json_summary(map, findings);
	json_outliers(map, findings);
	json_number(map, "unmet", findings->matrix->unmet);
	json_print(out, map);
}

/* ---- SVG ------------------------------------------------------------------------------------ */

#define SQUARE 14U
#define GAP 6U     /* between shader engines */
#define SCALE 6U   /* squares of the legend */
#define LEAST 560U /* wide enough for the title and the legend */
#define LEFT (SVG_MARGIN + SVG_LABEL)
#define TOP (SVG_MARGIN + SVG_LINE)

/* The offset of a row or column, with a gap between shader engines. */
static unsigned offset_of(const struct units *units, size_t i)
{
	unsigned offset = (unsigned)i * SQUARE;

	for (size_t k = 1; k <= i; k++) {
		if (units->list[k].engine != units->list[k - 1].engine)
			offset += GAP;
	}
	return offset;
}

static void find_ends(const struct matrix *matrix, double *ret_least, double *ret_most)
{
	*ret_least = INFINITY;
	*ret_most = 0;
	for (size_t i = 0; i < matrix->n * matrix->n; i++) {
		if (isnan(matrix->ns[i]))
			continue;
		*ret_least = fmin(*ret_least, matrix->ns[i]);
		*ret_most = fmax(*ret_most, matrix->ns[i]);
	}
}

/* From pale for the fastest to dark red; grey for unknown. The caller ends the element. */
static void begin_square(FILE *out, unsigned x, unsigned y, double ns, double least, double most)
{
	double heat = most > least ? (ns - least) / (most - least) : 0;

	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"", x, y, SQUARE - 1,
		SQUARE - 1);
	if (isnan(ns))
		fputs("#bbbbbb\"", out);
	else
		fprintf(out, "hsl(%.0f,80%%,%.0f%%)\"", 50 - 50 * heat, 92 - 57 * heat);
}

static void draw_cell(FILE *out, const struct findings *findings, size_t a, size_t b, double least,
		      double most)
{
	double ns = matrix_get(findings->matrix, a, b);
	char name[PAIR_NAME];

	pair_name(findings, a, b, name);
	begin_square(out, LEFT + offset_of(findings->units, b), TOP + offset_of(findings->units, a),
		     ns, least, most);
	if (isnan(ns))
		fprintf(out, "><title>%s: did not meet</title></rect>\n", name);
	else
		fprintf(out, "><title>%s: %.0f ns</title></rect>\n", name, ns);
}

static void draw_row(FILE *out, const struct findings *findings, size_t a, double least,
		     double most)
{
	const struct ran *ran = &findings->matrix->ran[a];
	bool slow = findings->summary->slow[a];
	char name[UNIT_NAME], place[RAN_NAME];

	unit_name(findings->model, findings->units, a, name);
	fprintf(out, "<text x=\"%u\" y=\"%u\"%s%s>%s%s%s", SVG_MARGIN,
		TOP + offset_of(findings->units, a) + SQUARE - 3,
		ran->elsewhere ? " fill=\"#cc0000\"" : "", slow ? " font-weight=\"bold\"" : "",
		name, slow ? " *" : "", ran->elsewhere ? " !" : "");
	if (ran->elsewhere) {
		ran_name(findings, a, place);
		fprintf(out, "<title>mask not honoured: ran on %s</title>", place);
	}
	fputs("</text>\n", out);
	for (size_t b = 0; b < findings->units->n; b++)
		draw_cell(out, findings, a, b, least, most);
}

/* A line with the scale, and one that explains marks. */
static void draw_legend(FILE *out, const struct findings *findings, unsigned y, double least,
			double most)
{
	unsigned x = LEFT;

	if (least <= most)
		fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">%.0f ns</text>\n",
			x - SVG_GAP, SVG_Y(y), least);
	for (unsigned i = 0; i < SCALE && least <= most; i++, x += SQUARE) {
		begin_square(out, x, y, least + (most - least) * i / (SCALE - 1), least, most);
		fputs("/>\n", out);
	}
	if (least <= most)
		fprintf(out, "<text x=\"%u\" y=\"%u\">%.0f ns one way, flags in %s</text>\n",
			x + SVG_GAP, SVG_Y(y), most,
			findings->rules & GAME_SAME_LINE ? "one cache line" : "lines of their own");
	y += SVG_LINE;
	begin_square(out, LEFT, y, NAN, least, most);
	fprintf(out,
		"/>\n<text x=\"%u\" y=\"%u\">did not meet; * outlier; ! mask not honoured</text>\n",
		LEFT + SQUARE + SVG_GAP, SVG_Y(y));
}

static void draw_svg(FILE *out, const void *drawing)
{
	const struct findings *findings = drawing;
	const struct units *units = findings->units;
	unsigned side = offset_of(units, units->n - 1) + SQUARE, y = TOP + side + SVG_GAP;
	double least, most;

	find_ends(findings->matrix, &least, &most);
	svg_begin(out, max_u(LEAST, LEFT + side + SVG_MARGIN), y + 2 * SVG_LINE + SVG_MARGIN);
	svg_title(out, SVG_MARGIN, findings->gpu, "latency from %s to %s%s", unit_kind(units),
		  unit_kind(units), units->lanes > 1 ? ", on each XCC" : "");
	for (size_t a = 0; a < units->n; a++)
		draw_row(out, findings, a, least, most);
	draw_legend(out, findings, y, least, most);
	fputs("</svg>\n", out);
}

/* ---- the verb -------------------------------------------------------------------------------- */

struct games {
	struct units units;
	struct matrix matrix;
	struct summary summary;
};

static void games_done(struct games *games)
{
	summary_done(&games->summary);
	matrix_done(&games->matrix);
	units_done(&games->units);
}

static int find_units(const struct command *command, const struct bench *bench, struct games *games)
{
	size_t words;
	const uint32_t *mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);
	int r = units_init(&bench->model, mask, words, &games->units);

	if (r == -ENOENT)
		return fail(command, EXIT_FAILED, "%s: the granted mask leaves an XCC without a CU",
			    bench->gpu->name);
	if (r >= 0)
		r = matrix_init(games->units.n, &games->matrix);
	return r < 0 ? fail(command, EXIT_FAILED, "out of memory") : EXIT_OK;
}

/* Prints on a line of the terminal that the next output overwrites. */
static void progress(size_t done, size_t of)
{
	if (done % 16 == 0)
		fprintf(stderr, "\r%zu of %zu pairs ", done, of);
	if (done + 1 == of)
		fprintf(stderr, "\r%30s\r", "");
}

static unsigned rules_of(const struct command *command)
{
	return (command->same_line ? GAME_SAME_LINE : 0) |
	       (command->compare_and_swap ? GAME_SWAP : 0);
}

static int play(const struct command *command, const struct bench *bench, struct games *games)
{
	struct measurement measurement = {
		.device = &bench->device,
		.stop = &bench->stop,
		.units = &games->units,
		.target = bench->gpu->gfx_target,
		.rules = rules_of(command),
		.progress = isatty(STDERR_FILENO) ? progress : NULL,
	};
	char problem[320] = "";
	int r;

	r = matrix_measure(&measurement, &games->matrix, problem, sizeof(problem));
	if (r < 0)
		return bench_failed(command, bench, r, problem);

	judge_places(&games->matrix, &games->units);
	r = summary_init(&games->matrix, &games->units, &games->summary);
	return r < 0 ? fail(command, EXIT_FAILED, "out of memory") : EXIT_OK;
}

static int tell(const struct command *command, const struct bench *bench, const struct games *games)
{
	const struct findings findings = {
		.gpu = bench->gpu,
		.model = &bench->model,
		.units = &games->units,
		.matrix = &games->matrix,
		.summary = &games->summary,
		.rules = rules_of(command),
		.emulated = bench->device.emulated,
	};

	if (command->svg)
		return svg_write(command, draw_svg, &findings);
	if (command->json)
		print_json(&findings, stdout);
	else
		print_text(command, &findings, stdout);
	return EXIT_OK;
}

int latency_run(const struct command *command, struct bench *bench)
{
	_cleanup_(games_done) struct games games = { 0 };
	int r = find_units(command, bench, &games);

	if (r == EXIT_OK)
		r = bench_open_device(command, bench);
	if (r == EXIT_OK)
		r = play(command, bench, &games);
	return r == EXIT_OK ? tell(command, bench, &games) : r;
}
