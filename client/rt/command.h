/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The actions of gpuarbctl rt. Each takes the parsed command line and returns the exit code. */

#include "client/options/options.h"

int rt_run(struct command
		   *command); /* plan, monitor, or one of those below: the first word names it */
int rt_measure_command(struct command *command);
