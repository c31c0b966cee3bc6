/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/map.h"
#include "client/output/print.h"

/* A lent CU belongs to its borrower. */
static int both(const struct grid *grid, int one, int other)
{
	if (one == GRID_FREE || (one >= 0 && lent_by(grid->here[one])))
		return other;
	return lent_by(grid->here[other]) ? one : GRID_SHARED;
}

static void mark(struct grid *grid, const struct cuset *set, int lease)
{
	for (size_t pair = 0; pair < CUSET_PAIRS; pair++) {
		for (unsigned bit = 0; bit < CUSET_ARRAYS * CUSET_ARRAY_CUS; bit++) {
			int *cell = &grid->cell[pair][bit];

			if (set->pair[pair] >> bit & 1)
				*cell = both(grid, *cell, lease);
		}
	}
}

static void add_lease(struct grid *grid, const struct gpuarb_lease_info *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &lease->partitions[i];
		struct cuset set;

		if (strcmp(partition->gpu, grid->gpu->name) != 0)
			continue;
		codec_decode(&grid->model.codec, partition->cu_mask, partition->cu_mask_words,
			     &set);
		grid->here[grid->n_here] = lease;
		mark(grid, &set, (int)grid->n_here++);
		return; /* a lease has one partition on a GPU */
	}
}

int grid_init(struct grid *grid, const struct gpuarb_gpu *gpu,
	      const struct gpuarb_lease_info *leases, size_t n, char *buf, size_t size)
{
	if (model_of_gpu(gpu, &grid->model, buf, size) < 0)
		return -EINVAL;

	grid->gpu = gpu;
	grid->all = (struct lent){ leases, n };
	grid->n_here = 0;
	grid->here = calloc(n + 1, sizeof(struct gpuarb_lease_info *));
	if (!grid->here) {
		snprintf(buf, size, "no memory");
		return -ENOMEM;
	}
	for (size_t pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned bit = 0; bit < CUSET_ARRAYS * CUSET_ARRAY_CUS; bit++)
			grid->cell[pair][bit] = GRID_FREE;
	for (size_t i = 0; i < n; i++)
		add_lease(grid, &leases[i]);
	return 0;
}

void grid_done(struct grid *grid)
{
	free(grid->here);
	grid->here = NULL;
}

char grid_letter(int cell)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (cell == GRID_FREE)
		return '.';
	if (cell == GRID_SHARED)
		return '+';
	return (size_t)cell < sizeof(letters) - 1 ? letters[cell] : '#';
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Colours that are legible on light and dark backgrounds. */
static void put_cell(const struct command *command, int cell)
{
	static const unsigned colours[] = { 31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96 };

	if (command->colour && cell >= 0)
		printf("\033[%um%c" COLOUR_NONE, colours[(size_t)cell % ARRAY_SIZE(colours)],
		       grid_letter(cell));
	else
		putchar(grid_letter(cell));
}

static void draw_engine(const struct command *command, const struct grid *grid, unsigned xcc,
			unsigned engine)
{
	const struct geometry *geometry = &grid->model.geometry;

	if (geometry->xccs > 1)
		printf("XCC %u ", xcc);
	printf("SE %u ", engine);
	for (unsigned a = 0; a < geometry->arrays; a++) {
		putchar(a > 0 ? '|' : ' ');
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++)
			put_cell(command, grid_cell(grid, xcc, engine, a, cu));
	}
	putchar('\n');
}

static void print_legend(const struct command *command, const struct grid *grid)
{
	for (size_t i = 0; i < grid->n_here; i++) {
		const struct gpuarb_lease_info *lease = grid->here[i];
		char lent[64];

		lent_text(&grid->all, lease, lent, sizeof(lent));
		put_cell(command, (int)i);
		print_line(stdout, "  lease %" PRIu64 " %.40s, %s, tenant %.40s, %s%s%s", lease->id,
			   lease->name, lease->lease_class, lease->tenant, lease->state,
			   *lent ? ", " : "", lent);
	}
	print_line(stdout, ".  free%s",
		   grid->model.geometry.arrays > 1 ? "; | between shader arrays" : "");
}

void map_draw_text(const struct command *command, const struct grid *grid)
{
	const struct geometry *geometry = &grid->model.geometry;

	print_line(stdout, "%s  %s, %u of %u CUs free%s", grid->gpu->name, grid->gpu->device,
		   grid->gpu->cus_free, grid->gpu->cus,
		   grid->gpu->harvest_known ? "" : " (which CUs are fused off is assumed)");
	for (unsigned x = 0; x < geometry->xccs; x++)
		for (unsigned e = 0; e < geometry->engines; e++)
			draw_engine(command, grid, x, e);
	if (!command->no_legend)
		print_legend(command, grid);
}

/* ---- SVG ------------------------------------------------------------------------------------ */

#define CELL 18U /* pixels from CU to CU */
#define LINE 22U
#define MARGIN 16U
#define LABEL 90U /* room for "XCC 7 SE 7" */

/* Escapes text of any user. XML cannot express most control characters. */
static void svg_text(FILE *out, const char *text)
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

/* Neighbouring numbers get hues that are far apart. */
static void svg_fill(FILE *out, int cell)
{
	if (cell == GRID_FREE)
		fputs("#eeeeee", out);
	else if (cell == GRID_SHARED)
		fputs("#888888", out);
	else
		fprintf(out, "hsl(%u,65%%,70%%)", (unsigned)cell * 137 % 360);
}

static void svg_cell(FILE *out, unsigned x, unsigned y, int cell)
{
	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"", x, y, CELL - 2,
		CELL - 2);
	svg_fill(out, cell);
	fputs("\"/>", out);
	if (cell != GRID_FREE)
		fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%c</text>",
			x + (CELL - 2) / 2, y + CELL - 6, grid_letter(cell));
	fputc('\n', out);
}

static void svg_engine(FILE *out, const struct grid *grid, unsigned xcc, unsigned engine,
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
			svg_cell(out, x, y, grid_cell(grid, xcc, engine, a, cu));
	}
}

static void svg_legend(FILE *out, const struct grid *grid, size_t i, unsigned y)
{
	const struct gpuarb_lease_info *lease = grid->here[i];

	svg_cell(out, MARGIN, y, (int)i);
	fprintf(out, "<text x=\"%u\" y=\"%u\">lease %" PRIu64 " ", MARGIN + LINE, y + CELL - 6,
		lease->id);
	svg_text(out, lease->name);
	fputs(", ", out);
	svg_text(out, lease->lease_class);
	fputs(", tenant ", out);
	svg_text(out, lease->tenant);
	fputs("</text>\n", out);
}

static unsigned height_of(const struct grid *grid)
{
	unsigned rows = grid->model.geometry.xccs * grid->model.geometry.engines;

	return LINE + rows * CELL + ((unsigned)grid->n_here + 1) * LINE;
}

static void svg_grid(FILE *out, const struct grid *grid, unsigned y)
{
	const struct geometry *geometry = &grid->model.geometry;

	fprintf(out, "<text x=\"%u\" y=\"%u\" font-weight=\"bold\">", MARGIN, y + CELL - 6);
	svg_text(out, grid->gpu->name);
	fputs(" ", out);
	svg_text(out, grid->gpu->device);
	fprintf(out, ", %u of %u CUs free</text>\n", grid->gpu->cus_free, grid->gpu->cus);
	y += LINE;
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned e = 0; e < geometry->engines; e++, y += CELL)
			svg_engine(out, grid, xcc, e, y);
	for (size_t i = 0; i < grid->n_here; i++, y += LINE)
		svg_legend(out, grid, i, y);
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
		svg_grid(out, &grids[i], y);
		y += height_of(&grids[i]);
	}
	fputs("</svg>\n", out);
}
