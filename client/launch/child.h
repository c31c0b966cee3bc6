/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct command;

/* Writes the path of another program of gpuarb: beside the running one, where both were built or moved to, else
 * `installed`. Returns the path, which is ret or installed. */
const char *sibling_find(const char *name, const char *installed, char ret[static PATH_MAX]);

/* Blocks these signals, up to a 0, from here on and in threads that start later. ret_before, which may be NULL:
 * the mask before. Returns a non-blocking descriptor to read them from; -1: a failure that is printed. */
int signals_open(const struct command *command, const int *numbers, sigset_t *ret_before);

/* A descriptor of a new process, and which one of this process it is. */
struct process_fd {
	int child, own;
};

/* Starts a program with descriptors beside those that it inherits, in a process group of its own if `group`. words[0] is
 * its name, NULL follows the last. Negative errno. */
int process_spawn(const char *program, const char *const *words, bool group,
		  const struct process_fd *fds, size_t n, pid_t *ret);

/* Waits until it has ended. Its exit status, 128 + N if signal N ended it, or a negative errno. */
int process_wait(pid_t pid);
