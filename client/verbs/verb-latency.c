/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/verbs/verb.h"

/* A program of its own, because it links HIP and gpuarbctl does not. "": built without HIP. */
static const char program[] = GPUARB_LATENCY;

/* Comes back only with a failure. */
static int start(const struct command *command)
{
	const char *words[12] = { program, command->verb };
	size_t n = 2;

	if (!*program)
		return fail(command, EXIT_FAILED,
			    "this gpuarbctl was built without HIP, which %s needs: install its "
			    "development files (libamdhip64-dev on Debian) and build gpuarb again",
			    command->verb);

	if (command->gpu) {
		words[n++] = "--gpu";
		words[n++] = command->gpu;
	}
	if (command->svg) {
		words[n++] = "--svg";
		words[n++] = command->svg;
	}
	if (command->same_line)
		words[n++] = "--same-line";
	if (command->json)
		words[n++] = "--json";
	if (command->no_legend)
		words[n++] = "--no-legend";

	/* execv() does not write to the words. */
	execv(program, (char *const *)(uintptr_t)words);
	return fail(command, EXIT_FAILED, "cannot start %s: %s%s", program, strerror(errno),
		    errno == ENOENT ? "; on Debian it is in the package gpuarb-latency" : "");
}

int run_latency(struct command *command)
{
	if (command->json && command->svg)
		return fail(command, EXIT_USAGE, "--json and --svg exclude each other");
	return start(command);
}

int run_calibrate(struct command *command)
{
	return start(command);
}
