/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/latency/bench.h"
#include "client/latency/matrix.h"
#include "client/latency/report.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "util/base.h"

/* The verb latency. */

struct games {
	struct units units;
	struct matrix matrix;
};

/* ---- the report ----------------------------------------------------------------------------- */

static void json_places(struct json_object *map, const char *key, const struct place *places,
			unsigned n)
{
	JSON_ROWS(map, key, place, at < n ? &places[at] : NULL, ("xcc", place->xcc),
		  ("shader_engine", place->engine), ("shader_array", place->array),
		  ("cu", place->cu));
}

static void json_unit(struct json_object *list, const struct model *model,
		      const struct games *games, size_t i)
{
	const struct units *units = &games->units;
	const struct unit *unit = &units->list[i];
	const struct ran *ran = &games->matrix.ran[i];
	struct json_object *map = json_map(list, NULL);
	char name[UNIT_NAME];

	unit_name(model, units, i, name);
	json_text(map, "name", name);
	json_mask(map, "cu_mask", unit->mask, units->words);
	json_known(map, "shader_engine", unit->engine, UNIT_MIXED);
	json_places(map, "xccs", unit->lane, units->lanes);
	if (ran->known)
		json_places(map, "ran_on", ran->lane, units->lanes);
	else
		json_null(map, "ran_on");
	json_flag(map, "moved", ran->moved);
}

static void json_matrix(struct json_object *map, const struct matrix *matrix)
{
	struct json_object *rows = json_list(map, "matrix");

	for (size_t a = 0; a < matrix->n; a++) {
		struct json_object *row = json_list(rows, NULL);

		for (size_t b = 0; b < matrix->n; b++)
			json_real(row, NULL, matrix_get(matrix, a, b));
	}
}

/* What was measured; gpuarb-figures adds what follows from it. */
static struct json_object *report_of(const struct command *command, const struct bench *bench,
				     const struct games *games)
{
	struct json_object *map = json_map(NULL, NULL), *list;

	JSON_FIELDS(map, ("gpu", bench->gpu->name), ("device", bench->gpu->device));
	json_flag(map, "emulated", bench->device.emulated);
	json_text(map, "unit", games->units.step > 1 ? "wgp" : "cu");
	json_flag(map, "same_line", command->same_line);
	json_flag(map, "compare_and_swap", command->compare_and_swap);
	json_number(map, "rounds", GAME_ROUNDS);
	json_flag(map, "harvest_known", bench->gpu->harvest_known);
	list = json_list(map, "units");
	for (size_t i = 0; i < games->units.n; i++)
		json_unit(list, &bench->model, games, i);
	json_matrix(map, &games->matrix);
	json_number(map, "unmet", games->matrix.unmet);
	return map;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static void games_done(struct games *games)
{
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

static int play(const struct command *command, const struct bench *bench, struct games *games)
{
	struct measurement measurement = {
		.device = &bench->device,
		.stop = &bench->stop,
		.units = &games->units,
		.target = bench->gpu->gfx_target,
		.rules = (command->same_line ? GAME_SAME_LINE : 0U) |
			 (command->compare_and_swap ? GAME_SWAP : 0U),
		.progress = isatty(STDERR_FILENO) ? progress : NULL,
	};
	char problem[320] = "";
	int r;

	r = matrix_measure(&measurement, &games->matrix, problem, sizeof(problem));
	return r < 0 ? bench_failed(command, bench, r, problem) : EXIT_OK;
}

static int tell(const struct command *command, const struct bench *bench, const struct games *games)
{
	struct json_object *report = report_of(command, bench, games);
	const char *option = command->svg ? "--svg" : command->json ? "--json" : "--text";

	return report_print(command, report, option, command->svg ? command->svg : "-");
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
