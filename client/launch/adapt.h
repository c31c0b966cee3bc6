/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A command whose queues follow an adaptable lease without knowing of it: a library is loaded into
 * it and its children, and a process beside it, gpuarb-agent, tells them what is granted.
 */

#include <limits.h>

#include "client/options/options.h"

struct adapt {
	char library[PATH_MAX], program[PATH_MAX];
};

/* Before anything is asked: what is installed, what is asked for, and the command. Says what is
 * wrong and returns the exit code. */
int adapt_check(const struct command *command, struct adapt *ret);

/* Starts gpuarb-agent for a lease whose environment is set already, and sets the rest of that for
 * the command. process: a pidfd of this process, which is to become the command. */
int adapt_start(const struct command *command, const struct adapt *adapt, uint64_t lease,
		int process);
