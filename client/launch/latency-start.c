/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/latency-start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"

static const char program[] = GPUARB_LATENCY;

int latency_start(const struct command *command)
{
	/* What it is started with is read, never written. */
	const char *words[10] = { program };
	size_t n = 1;

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

	execv(program, (char *const *)(uintptr_t)words);
	return fail(command, EXIT_FAILED, "cannot start %s: %s%s", program, strerror(errno),
		    errno == ENOENT ? ": Debian has it in the package gpuarb-latency" : "");
}
