/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <limits.h>
#include <signal.h>

/* Writes the path of another program of gpuarb: beside the running one, where both were built or moved to, else
 * `installed`. Returns the path, which is ret or installed. */
const char *sibling_find(const char *name, const char *installed, char ret[static PATH_MAX]);

struct command;

/* Blocks these signals, up to a 0, from here on and in threads that start later. ret_before, which may be NULL:
 * the mask before. Returns a non-blocking descriptor to read them from; -1: a failure that is printed. */
int signals_open(const struct command *command, const int *numbers, sigset_t *ret_before);
