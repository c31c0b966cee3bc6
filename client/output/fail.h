/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What went wrong, said once, and the exit code that stands for it. */

#include <stdio.h>

#include "client/options/options.h"
#include "util/base.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_REFUSED = 3,
	EXIT_FORBIDDEN = 4,
	EXIT_ABSENT = 5,
	EXIT_CONFIGURATION = 6,
	EXIT_WAITED = 7,
	EXIT_LOST = 8,
	EXIT_DRIFT = 9,
	EXIT_RUN_FAILED = 125, /* of run: gpuarb itself failed */
	EXIT_RUN_CANNOT = 126,
	EXIT_RUN_NOT_FOUND = 127,
};

/* The exit code for what the library returned. */
int fail_code(int error);

/* Both say it on standard error, with --json as one object, and return the exit code. */
int fail(const struct command *command, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* All that was found, a line each. */
struct diagnostics;
int fail_diagnostics(const struct command *command, int code, const struct diagnostics *diagnostics,
		     int error);

/* The library's last failure, with the GPUs that refused and what would fit there. */
int fail_asked(const struct command *command, int error);

/* The same for what was asked of the lease of the command line. */
int fail_lease(const struct command *command, int error);

/* The lease that the process held is lost. */
int fail_lost(const struct command *command, int code, const struct gpuarb_lease *lease);

/* There is no such GPU in the snapshot: in the words of the daemon. */
int fail_gpu(const struct command *command, const char *gpu);

/* A line for each refusal, on standard output of plan or with a failure. */
void fail_print_refusals(FILE *out, const struct gpuarb *gpuarb);
