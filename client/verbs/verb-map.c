/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/model.h"
#include "client/output/print.h"
#include "client/output/svg.h"
#include "client/verbs/verb.h"

/* A cell is an index of grid.here, or one of these. */
#define GRID_FREE (-1)
#define GRID_SHARED (-2) /* in masks of several leases; a lent CU belongs to its borrower */

/* The lease of each CU of a GPU. */
struct grid {
	struct model model;
	const struct gpuarb_gpu *gpu;
	struct lent all;                       /* leases of all GPUs */
	const struct gpuarb_lease_info **here; /* leases with a partition of this GPU, owned */
	size_t n_here;
	int cell[CUSET_PAIRS][CUSET_ARRAYS * CUSET_ARRAY_CUS];
};

struct grids {
	struct grid *list;
	size_t n;
};

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
	const struct gpuarb_partition *partition = partition_on_gpu(lease, grid->gpu->name);
	struct cuset set;

	if (!partition)
		return;
	codec_decode(&grid->model.codec, partition->cu_mask, partition->cu_mask_words, &set);
	grid->here[grid->n_here] = lease;
	mark(grid, &set, (int)grid->n_here++);
}

/* -EINVAL: the daemon describes an impossible GPU; -ENOMEM. Both with an error in buf. */
static int grid_init(struct grid *grid, const struct gpuarb_gpu *gpu, const struct lent *all,
		     char *buf, size_t size)
{
	if (model_of_gpu(gpu, &grid->model, buf, size) < 0)
		return -EINVAL;

	grid->gpu = gpu;
	grid->all = *all;
	grid->n_here = 0;
	grid->here = calloc(all->n + 1, sizeof(struct gpuarb_lease_info *));
	if (!grid->here) {
		snprintf(buf, size, "no memory");
		return -ENOMEM;
	}
	for (size_t pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned bit = 0; bit < CUSET_ARRAYS * CUSET_ARRAY_CUS; bit++)
			grid->cell[pair][bit] = GRID_FREE;
	for (size_t i = 0; i < all->n; i++)
		add_lease(grid, &all->leases[i]);
	return 0;
}

/* '.', '+' for shared, else the lease's letter. */
static char grid_letter(int cell)
{
	if (cell == GRID_FREE)
		return '.';
	if (cell == GRID_SHARED)
		return '+';
	return print_letter((size_t)cell);
}

/* The cell of a working CU. */
static int grid_cell(const struct grid *grid, unsigned xcc, unsigned engine, unsigned array,
		     unsigned cu)
{
	return grid->cell[cuset_pair(xcc, engine)][array * CUSET_ARRAY_CUS + cu];
}

#define NAME_COLUMNS 40U
#define LABEL_MAX 40

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

/* "SE 0", or "XCC 7 SE 0". */
static const char *label_of(const struct grid *grid, unsigned xcc, unsigned engine,
			    char buf[static LABEL_MAX])
{
	if (grid->model.geometry.xccs > 1)
		snprintf(buf, LABEL_MAX, "XCC %u SE %u", xcc, engine);
	else
		snprintf(buf, LABEL_MAX, "SE %u", engine);
	return buf;
}

static void draw_engine(const struct command *command, const struct grid *grid, unsigned xcc,
			unsigned engine)
{
	const struct geometry *geometry = &grid->model.geometry;
	char label[LABEL_MAX];

	printf("%s ", label_of(grid, xcc, engine, label));
	for (unsigned a = 0; a < geometry->arrays; a++) {
		putchar(a > 0 ? '|' : ' ');
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++)
			put_cell(command, grid_cell(grid, xcc, engine, a, cu));
	}
	putchar('\n');
}

static const char *name_of(const struct gpuarb_lease_info *lease)
{
	return *lease->name ? lease->name : "(no name)";
}

static void print_lease(const struct command *command, const struct grid *grid, size_t i)
{
	const struct gpuarb_lease_info *lease = grid->here[i];
	_cleanup_(freep) char *name = print_escape(name_of(lease), NAME_COLUMNS),
			      *tenant = print_escape(lease->tenant, NAME_COLUMNS);
	char lent[64];

	lent_text(&grid->all, lease, lent, sizeof(lent));
	put_cell(command, (int)i);
	print_line(stdout, "  lease %" PRIu64 " %s, %s, tenant %s, %s%s%s", lease->id,
		   name ? name : "", lease->lease_class, tenant ? tenant : "", lease->state,
		   *lent ? ", " : "", lent);
}

static void print_legend(const struct command *command, const struct grid *grid)
{
	for (size_t i = 0; i < grid->n_here; i++)
		print_lease(command, grid, i);
	print_line(stdout, ".  free%s",
		   grid->model.geometry.arrays > 1 ? "; | between shader arrays" : "");
}

static void draw_text(const struct command *command, const struct grid *grid)
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

#define NAME_CHARACTERS 32
#define TENANT_CHARACTERS 24

_Static_assert(GRID_FREE == SVG_FREE && GRID_SHARED == SVG_SHARED, "cells are drawn as they are");

static void svg_engine(struct svg *svg, const struct grid *grid, unsigned xcc, unsigned engine)
{
	const struct geometry *geometry = &grid->model.geometry;
	char label[LABEL_MAX];

	svg_row(svg, label_of(grid, xcc, engine, label),
		geometry->xccs > 1 ? SVG_LABEL : SVG_LABEL / 2);
	for (unsigned a = 0; a < geometry->arrays; a++, svg->x += SVG_CELL / 2) {
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++) {
			int cell = grid_cell(grid, xcc, engine, a, cu);

			svg_cell(svg, cell, grid_letter(cell));
		}
	}
	svg->y += SVG_CELL;
}

static void svg_lease(struct svg *svg, const struct grid *grid, size_t i)
{
	const struct gpuarb_lease_info *lease = grid->here[i];
	char name[SVG_NAME(NAME_CHARACTERS)], tenant[SVG_NAME(TENANT_CHARACTERS)];

	svg_legend(svg, (int)i, grid_letter((int)i), "lease %" PRIu64 " %s, %s, tenant %s, %s",
		   lease->id, svg_cut(name_of(lease), NAME_CHARACTERS, name), lease->lease_class,
		   svg_cut(lease->tenant, TENANT_CHARACTERS, tenant), lease->state);
}

/* Draws all grids below each other. */
static void draw_svg(struct svg *svg, const void *drawing)
{
	const struct grids *grids = drawing;

	for (size_t g = 0; g < grids->n; g++) {
		const struct grid *grid = &grids->list[g];

		svg_title(svg, grid->gpu, "%u of %u CUs free", grid->gpu->cus_free, grid->gpu->cus);
		for (unsigned x = 0; x < grid->model.geometry.xccs; x++)
			for (unsigned e = 0; e < grid->model.geometry.engines; e++)
				svg_engine(svg, grid, x, e);
		svg->y += SVG_GAP;
		for (size_t i = 0; i < grid->n_here; i++)
			svg_lease(svg, grid, i);
		svg_legend(svg, SVG_FREE, ' ', "free");
		svg->y += SVG_LINE;
	}
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One shader array: the lease of each working CU, null for a free CU. */
static void json_row(struct json_object *list, const struct grid *grid, unsigned xcc,
		     unsigned engine, unsigned array)
{
	struct json_object *map = json_map(list, NULL), *cus;

	JSON_FIELDS(map, ("xcc", xcc), ("shader_engine", engine), ("shader_array", array));
	cus = json_list(map, "leases");
	for (unsigned cu = 0; cu < grid->model.geometry.active[xcc][engine][array]; cu++) {
		int cell = grid_cell(grid, xcc, engine, array, cu);

		if (cell >= 0)
			json_number(cus, NULL, grid->here[cell]->id);
		else if (cell == GRID_SHARED)
			json_text(cus, NULL, "shared");
		else
			json_null(cus, NULL);
	}
}

static void print_json(const struct grids *grids)
{
	struct json_object *list = json_list(NULL, NULL);

	for (size_t i = 0; i < grids->n; i++) {
		const struct grid *grid = &grids->list[i];
		const struct geometry *geometry = &grid->model.geometry;
		struct json_object *map = json_map(list, NULL), *rows;

		json_text(map, "gpu", grid->gpu->name);
		rows = json_list(map, "rows");
		for (unsigned x = 0; x < geometry->xccs; x++)
			for (unsigned e = 0; e < geometry->engines; e++)
				for (unsigned a = 0; a < geometry->arrays; a++)
					json_row(rows, grid, x, e, a);
	}
	json_print(stdout, list);
}

/* ---- the verb ------------------------------------------------------------------------------- */

static void grids_done(struct grids *grids)
{
	for (size_t i = 0; i < grids->n; i++)
		free(grids->list[i].here);
	free(grids->list);
}

static int fill(const struct command *command, const struct gpuarb_gpu *gpus, size_t n,
		struct grids *ret)
{
	const struct lent all = { command->leases, command->n_leases };
	char problem[256];

	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list)
		return fail(command, EXIT_FAILED, "out of memory");

	for (size_t i = 0; i < n; i++) {
		if (grid_init(&ret->list[i], &gpus[i], &all, problem, sizeof(problem)) < 0)
			return fail(command, EXIT_FAILED, "%s: %s", gpus[i].name, problem);
		ret->n++;
	}
	return EXIT_OK;
}

static int draw(const struct command *command, const struct grids *grids)
{
	if (command->svg)
		return svg_write(command, draw_svg, grids);
	if (command->json) {
		print_json(grids);
		return EXIT_OK;
	}

	for (size_t i = 0; i < grids->n; i++) {
		if (i > 0)
			putchar('\n');
		draw_text(command, &grids->list[i]);
	}
	if (grids->n == 0)
		print_line(stdout, "No GPU: gpuarbd found none on this machine.");
	return EXIT_OK;
}

int run_map(struct command *command)
{
	_cleanup_(grids_done) struct grids grids = { 0 };
	const struct gpuarb_gpu *gpus = command->gpus;
	bool all = command->n_rest == 0;
	int r = EXIT_OK;

	if (!all)
		r = session_gpu(command, command->rest[0], &gpus);
	if (r == EXIT_OK)
		r = fill(command, gpus, all ? command->n_gpus : 1, &grids);
	return r == EXIT_OK ? draw(command, &grids) : r;
}
