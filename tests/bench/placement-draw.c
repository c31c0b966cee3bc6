/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/placement.h"

#define WIDTH 300.0 /* of a panel, with its margin and its title */
#define HEIGHT 190.0
#define LEFT 44.0
#define TOP 30.0
#define INNER_WIDTH (WIDTH - LEFT - 40)
#define LEGEND_COLUMNS 4U
#define LEGEND_WIDTH 220.0
#define LEGEND_HEIGHT 66.0
#define INNER_HEIGHT (HEIGHT - TOP - 34)
#define LOW 0.2 /* useful work at the bottom and at the top */
#define HIGH 0.8

static const char *const strokes[POLICIES] = {
	"stroke=\"#d62728\" stroke-width=\"3\"",
	"stroke=\"#ff7f0e\"",
	"stroke=\"#2ca02c\"",
	"stroke=\"#7f7f7f\"",
	"stroke=\"#9467bd\"",
	"stroke=\"#1f77b4\"",
	"stroke=\"#8c564b\"",
	"stroke=\"black\" stroke-dasharray=\"4 3\"",
};

static double x_of(double offered)
{
	return LEFT + (offered - 0.8) / 0.6 * INNER_WIDTH;
}

static double y_of(double useful)
{
	return TOP + (HIGH - useful) / (HIGH - LOW) * INNER_HEIGHT;
}

static void draw_axes(FILE *f, const struct row *row)
{
	fprintf(f,
		"<text x=\"%.0f\" y=\"16\" font-weight=\"bold\">%s, %ux%u engines, %.0f %% "
		"realtime</text>\n",
		LEFT, row->profile, row->xccs, row->engines, row->realtime * 100);
	for (int i = 2; i <= 8; i += 2)
		fprintf(f,
			"<path d=\"M%.1f %.1fh%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" "
			"y=\"%.1f\" text-anchor=\"end\">0.%d</text>\n",
			LEFT, y_of(i / 10.0), INNER_WIDTH, LEFT - 4, y_of(i / 10.0) + 4, i);
	for (int i = 8; i <= 14; i += 2)
		fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.1f</text>\n",
			x_of(i / 10.0), TOP + INNER_HEIGHT + 14, i / 10.0);
}

static void draw_lines(FILE *f, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < POLICIES; i++) {
		fprintf(f, "<path fill=\"none\" %s d=\"", strokes[i]);
		for (size_t j = 0; j < n; j++)
			fprintf(f, "%c%.1f %.1f", j ? 'L' : 'M', x_of(rows[j].offered),
				y_of(mean_of(&rows[j].by[i].useful)));
		fprintf(f, "\"/>\n");
	}
}

static void draw_legend(FILE *f, double y)
{
	fprintf(f,
		"<text x=\"%.0f\" y=\"%.0f\">Useful work (E of CUs) of work offered, by offered "
		"load:</text>\n",
		LEFT, y);
	for (size_t i = 0; i < POLICIES; i++) {
		double x = LEFT + (double)(i % LEGEND_COLUMNS) * LEGEND_WIDTH;
		double line = y + 18 + 20 * (double)(i / LEGEND_COLUMNS);

		fprintf(f, "<path d=\"M%.0f %.0fh20\" %s/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
			x, line, strokes[i], x + 24, line + 4, policies[i].text);
	}
}

/* Rows of one panel follow one another. */
static size_t same_panel(const struct row *rows, size_t n)
{
	size_t same = 1;

	while (same < n && strcmp(rows[same].profile, rows[0].profile) == 0 &&
	       rows[same].realtime <= rows[0].realtime)
		same++;
	return same;
}

int draw_rows(const char *path, const struct row *rows, size_t n)
{
	size_t panels = 0, columns = 3, at = 0;
	double height;
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	for (size_t i = 0; i < n; i += same_panel(&rows[i], n - i))
		panels++;
	height = (double)((panels + columns - 1) / columns) * HEIGHT;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"11\" fill=\"#222222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH * (double)columns, height + LEGEND_HEIGHT);
	for (size_t i = 0; i < n; at++) {
		size_t same = same_panel(&rows[i], n - i);

		fprintf(f, "<g transform=\"translate(%.0f %.0f)\">\n",
			(double)(at % columns) * WIDTH, (double)(at / columns) * HEIGHT);
		draw_axes(f, &rows[i]);
		draw_lines(f, &rows[i], same);
		fprintf(f, "</g>\n");
		i += same;
	}
	draw_legend(f, height + 10);
	fprintf(f, "</svg>\n");
	return fclose(f) == 0 ? 0 : -errno;
}
