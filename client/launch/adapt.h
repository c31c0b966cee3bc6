/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes an unmodified command follow an adaptable lease: LD_PRELOAD loads libgpuarb-agent into the
 * command and its children, and the process gpuarb-agent sends them each new mask.
 */

#include <limits.h>

#include "client/options/options.h"

struct adapt {
	char library[PATH_MAX], program[PATH_MAX];
};

/* Before the lease is requested: checks the installation, the options and the command. Prints
 * errors and returns the exit code. */
int adapt_check(const struct command *command, struct adapt *ret);

/* Starts gpuarb-agent for the lease and sets LD_PRELOAD and GPUARB_AGENT. process: a pidfd of this
 * process, which will become the command. */
int adapt_start(const struct command *command, const struct adapt *adapt, uint64_t lease,
		int process);
