/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/options/options.h"

/* gpuarbctl rt: the first word is plan, monitor or measure. Takes the parsed command line and returns the
 * exit code. */
int rt_run(struct command *command);
