/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/calibrate/neighbour.h"
#include "client/calibrate/paper.h"
#include "client/latency/bench.h"
#include "client/latency/compiler.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "util/base.h"
#include "util/number.h"

#define STREAMS 2U

static int run(struct command *command)
{
	_cleanup_(bench_done) struct bench bench = BENCH_INIT;
	bool calibrates = strcmp(command->verb, "calibrate") == 0;
	unsigned processes = 1, streams = STREAMS;
	int r = EXIT_OK;

	if (command->probe)
		return probe_run(command, &bench);
	if (strcmp(command->verb, "neighbour") == 0)
		return neighbour_run(command, &bench);
	if (calibrates)
		r = calibrate_size(command, &processes, &streams);
	if (r == EXIT_OK)
		r = bench_reserve(command, streams, processes, &bench);
	if (r == EXIT_OK)
		r = bench_find_gpu(command, &bench);
	if (r != EXIT_OK)
		return r;
	if (calibrates && command->paper)
		return paper_command(command, &bench);
	return calibrates ? calibrate_run(command, &bench) : latency_run(command, &bench);
}

/* gpuarbctl latency, calibrate and verify --probe start this program with the verb and checked options. */
int main(int argc, char **argv)
{
	static const char *const verbs[] = { "latency", "calibrate", "verify", "neighbour" };
	struct command command;
	int skip;

	if (argc == 3 && strcmp(argv[1], "compile") == 0)
		compiler_serve(argv[2]);
	command_init(&command);
	command.verb = "latency";
	for (size_t i = 0; i < ARRAY_SIZE(verbs) && argc > 1; i++)
		if (strcmp(argv[1], verbs[i]) == 0)
			command.verb = verbs[i];
	skip = argc > 1 && strcmp(argv[1], command.verb) == 0 ? 2 : 1;
	if (options_parse(&command,
			  OPTIONS_LATENCY | OPTIONS_SVG | OPTIONS_CALIBRATE | OPTIONS_VERIFY |
				  OPTIONS_GENERAL,
			  false, argc - skip, argv + skip) < 0)
		return fail(&command, EXIT_USAGE, "%s", command.problem);
	if ((command.probe || strcmp(command.verb, "neighbour") == 0) &&
	    (command.n_rest == 0 || number_parse(command.rest[0], 1, UINT64_MAX, &command.id) < 0))
		return fail(&command, EXIT_USAGE, "%s needs the number of a lease", command.verb);

	return session_end(&command, run(&command));
}
