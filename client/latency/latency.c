/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verb latency. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client/latency/bench.h"
#include "client/latency/latency-print.h"
#include "client/output/fail.h"
#include "util/base.h"

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
		return print_svg(command, &findings);
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
