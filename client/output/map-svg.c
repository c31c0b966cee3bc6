/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/map-draw.h"

#include <inttypes.h>
#include <string.h>

#define CELL 18U /* pixels from CU to CU */
#define LINE 22U
#define MARGIN 16U
#define LABEL 90U /* room for "XCC 7 SE 7" */

/* Text in XML: what names contain is other users' business. XML has no way to say most
 * control characters at all. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
}

/* Hues far apart for leases that follow each other. */
static void put_fill(FILE *out, int cell)
{
	if (cell == GRID_FREE)
		fputs("#eeeeee", out);
	else if (cell == GRID_SHARED)
		fputs("#888888", out);
	else
		fprintf(out, "hsl(%u,65%%,70%%)", (unsigned)cell * 137 % 360);
}

static void draw_cell(FILE *out, unsigned x, unsigned y, int cell)
{
	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"", x, y, CELL - 2,
		CELL - 2);
	put_fill(out, cell);
	fputs("\"/>", out);
	if (cell != GRID_FREE)
		fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%c</text>",
			x + (CELL - 2) / 2, y + CELL - 6, grid_letter(cell));
	fputc('\n', out);
}

static void draw_engine(FILE *out, const struct grid *grid, unsigned xcc, unsigned engine,
			unsigned y)
{
	const struct geometry *geometry = &grid->model.geometry;
	unsigned x = MARGIN + LABEL;

	fprintf(out, "<text x=\"%u\" y=\"%u\">", MARGIN, y + CELL - 6);
	if (geometry->xccs > 1)
		fprintf(out, "XCC %u ", xcc);
	fprintf(out, "SE %u</text>\n", engine);

	for (unsigned a = 0; a < geometry->arrays; a++, x += CELL / 2) {
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++, x += CELL)
			draw_cell(out, x, y, grid_cell(grid, xcc, engine, a, cu));
	}
}

static void draw_legend(FILE *out, const struct grid *grid, size_t i, unsigned y)
{
	const struct gpuarb_lease_info *lease = grid->here[i];

	draw_cell(out, MARGIN, y, (int)i);
	fprintf(out, "<text x=\"%u\" y=\"%u\">lease %" PRIu64 " ", MARGIN + LINE, y + CELL - 6,
		lease->id);
	put_text(out, lease->name);
	fputs(", ", out);
	put_text(out, lease->lease_class);
	fputs(", tenant ", out);
	put_text(out, lease->tenant);
	fputs("</text>\n", out);
}

static unsigned height_of(const struct grid *grid)
{
	unsigned rows = grid->model.geometry.xccs * grid->model.geometry.engines;

	return LINE + rows * CELL + ((unsigned)grid->n_here + 1) * LINE;
}

static void draw_grid(FILE *out, const struct grid *grid, unsigned y)
{
	const struct geometry *geometry = &grid->model.geometry;

	fprintf(out, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">", MARGIN, y + CELL - 6);
	put_text(out, grid->gpu->name);
	fputs(" ", out);
	put_text(out, grid->gpu->device);
	fprintf(out, ", %u of %u CUs free</text>\n", grid->gpu->cus_free, grid->gpu->cus);
	y += LINE;
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned e = 0; e < geometry->engines; e++, y += CELL)
			draw_engine(out, grid, xcc, e, y);
	for (size_t i = 0; i < grid->n_here; i++, y += LINE)
		draw_legend(out, grid, i, y);
}

void map_draw_svg(FILE *out, const struct grid *grids, size_t n)
{
	unsigned width = 2 * MARGIN + LABEL + CUSET_ARRAYS * CUSET_ARRAY_CUS * CELL + CELL;
	unsigned height = 2 * MARGIN, y = MARGIN;

	for (size_t i = 0; i < n; i++)
		height += height_of(&grids[i]);

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n",
		width, height);
	for (size_t i = 0; i < n; i++) {
		draw_grid(out, &grids[i], y);
		y += height_of(&grids[i]);
	}
	fputs("</svg>\n", out);
}
