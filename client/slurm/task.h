/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <slurm/spank.h>

/* Makes the task start these words, a NULL after them, followed by its own command. Called in task_init. Prints errors
 * and returns -1. task-prepend.c is for Slurm 23.11 and later, task-exec.c for those before. */
int task_wrap(spank_t spank, const char **words, size_t n);
