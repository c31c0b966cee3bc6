/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/map.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"

struct grids {
	struct grid *list;
	size_t n;
};

static void grids_done(struct grids *grids)
{
	for (size_t i = 0; i < grids->n; i++)
		grid_done(&grids->list[i]);
	free(grids->list);
}

static int fill(const struct command *command, const struct session *session,
		const struct gpuarb_gpu *gpus, size_t n, struct grids *ret)
{
	const struct gpuarb_lease_info *leases;
	size_t n_leases = gpuarb_view_leases(session->view, &leases);
	char problem[256];

	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list)
		return fail(command, EXIT_FAILED, "out of memory");

	for (size_t i = 0; i < n; i++) {
		if (grid_init(&ret->list[i], &gpus[i], leases, n_leases, problem, sizeof(problem)) <
		    0)
			return fail(command, EXIT_FAILED, "%s: %s", gpus[i].name, problem);
		ret->n++;
	}
	return EXIT_OK;
}

/* One shader array: the lease of each working CU, null for a free CU. */
static void json_row(struct json_object *list, const struct grid *grid, unsigned xcc,
		     unsigned engine, unsigned array)
{
	struct json_object *map = json_map(list, NULL), *cus;

	json_number(map, "xcc", xcc);
	json_number(map, "shader_engine", engine);
	json_number(map, "shader_array", array);
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
	_cleanup_(json_freep) struct json_object *list = json_list(NULL, NULL);

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

static int write_svg(const struct command *command, const struct grids *grids)
{
	FILE *out;

	if (strcmp(command->svg, "-") == 0) {
		map_draw_svg(stdout, grids->list, grids->n);
		return EXIT_OK;
	}

	out = fopen(command->svg, "we");
	if (!out)
		return fail(command, EXIT_FAILED, "%s: %s", command->svg, strerror(errno));
	map_draw_svg(out, grids->list, grids->n);
	if (ferror(out) | (fclose(out) != 0))
		return fail(command, EXIT_FAILED, "%s: cannot write the drawing", command->svg);
	return EXIT_OK;
}

static int draw(const struct command *command, const struct grids *grids)
{
	if (command->svg)
		return write_svg(command, grids);
	if (command->json) {
		print_json(grids);
		return EXIT_OK;
	}

	for (size_t i = 0; i < grids->n; i++) {
		if (i > 0)
			putchar('\n');
		map_draw_text(command, &grids->list[i]);
	}
	if (grids->n == 0)
		print_line(stdout, "No GPU: gpuarbd found none on this machine.");
	return EXIT_OK;
}

int run_map(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(grids_done) struct grids grids = { 0 };
	const struct gpuarb_gpu *gpus = NULL;
	size_t n = 1;
	int r;

	r = session_snapshot(command, &session);
	if (r != EXIT_OK)
		return r;

	if (command->n_rest > 0)
		r = session_gpu(command, &session, command->rest[0], &gpus);
	else
		n = gpuarb_view_gpus(session.view, &gpus);
	if (r == EXIT_OK)
		r = fill(command, &session, gpus, n, &grids);
	return r == EXIT_OK ? draw(command, &grids) : r;
}
