/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPUs that the variables of Slurm, CI, containers and users leave for a want that names none. */

#include "client/launch/session.h"

/* gpu: of a want. *ret: the GPUs for it; as it is typed, if no variable restricts it. Prints errors and returns the exit
 * code. */
int visible_choose(struct command *command, const char *gpu, const char **ret);

/* Replaces the only want, if it has --gpu=all, by one for each GPU that the variables leave. Prints errors and returns
 * the exit code. */
int visible_expand(struct command *command);
