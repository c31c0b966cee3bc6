/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/latency-print.h"

#include <math.h>

#define CELL 14U
#define MARGIN 16U
#define LABEL 110U /* a row's name */
#define GAP 6U     /* between shader engines */
#define LINE 20U

/* Rows and columns begin here: shader engines stand apart. */
static unsigned offset_of(const struct units *units, size_t i)
{
	unsigned offset = (unsigned)i * CELL;

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

/* From pale for the fastest to dark red; grey where it is not known. */
static void put_fill(FILE *out, double ns, double least, double most)
{
	double heat = most > least ? (ns - least) / (most - least) : 0;

	if (isnan(ns))
		fputs("#bbbbbb", out);
	else
		fprintf(out, "hsl(%.0f,80%%,%.0f%%)", 50 - 50 * heat, 92 - 57 * heat);
}

static void draw_cell(FILE *out, const struct findings *findings, size_t a, size_t b, double least,
		      double most)
{
	double ns = matrix_get(findings->matrix, a, b);
	char name[PAIR_NAME];

	pair_name(findings, a, b, name);
	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"",
		MARGIN + LABEL + offset_of(findings->units, b),
		MARGIN + 2 * LINE + offset_of(findings->units, a), CELL - 1, CELL - 1);
	put_fill(out, ns, least, most);
	if (isnan(ns))
		fprintf(out, "\"><title>%s: did not meet</title></rect>\n", name);
	else
		fprintf(out, "\"><title>%s: %.0f ns</title></rect>\n", name, ns);
}

static void draw_row(FILE *out, const struct findings *findings, size_t a, double least,
		     double most)
{
	const struct ran *ran = &findings->matrix->ran[a];
	bool slow = findings->summary->slow[a];
	char name[UNIT_NAME], place[RAN_NAME];

	unit_name(findings->model, findings->units, a, name);
	fprintf(out, "<text x=\"%u\" y=\"%u\"%s%s>%s%s%s", MARGIN,
		MARGIN + 2 * LINE + offset_of(findings->units, a) + CELL - 4,
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

void print_svg(const struct findings *findings, FILE *out)
{
	const struct units *units = findings->units;
	unsigned side = offset_of(units, units->n - 1) + CELL;
	double least, most;

	find_ends(findings->matrix, &least, &most);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n",
		2 * MARGIN + LABEL + (side > 400 ? side : 400), 2 * MARGIN + 3 * LINE + side);
	fprintf(out,
		"<text x=\"%u\" y=\"%u\" font-weight=\"bold\">%s: from %s to %s, one way, "
		"flags in %s</text>\n",
		MARGIN, MARGIN + LINE / 2, findings->gpu, unit_kind(units), unit_kind(units),
		findings->same_line ? "one cache line" : "lines of their own");
	for (size_t a = 0; a < units->n; a++)
		draw_row(out, findings, a, least, most);
	fprintf(out,
		"<text x=\"%u\" y=\"%u\">pale: %.0f ns, dark: %.0f ns; * outlier, ! mask not "
		"honoured</text>\n</svg>\n",
		MARGIN, MARGIN + 2 * LINE + side + LINE, least, most);
}
