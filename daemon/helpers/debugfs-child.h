/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A child that copies a file to a pipe: what reads in the kernel for who must not wait. */

#include <stdbool.h>
#include <stddef.h>

struct probe_child {
	int pidfd;     /* -1: there is none */
	int complaint; /* what it says on standard error */
};

/* clang-format off */
#define PROBE_CHILD_NONE { .pidfd = -1, .complaint = -1 }
/* clang-format on */

/* Returns the end of the pipe to read its output from, without waiting; a negative errno where
 * it cannot be started. */
int probe_child_start(struct probe_child *child, const char *path);

/* Whether it has ended by now, and so is no more; *ret_status is 0 after a success. */
bool probe_child_ended(struct probe_child *child, int *ret_status);

/* The first line of its complaint, "" if there is none; what cannot be printed is "?". */
void probe_child_complaint(const struct probe_child *child, char *buf, size_t size);

/* Ends soon, probe_child_ended() will tell. */
void probe_child_kill(const struct probe_child *child);

/* Forgets what has not ended: init reaps it after this process. */
void probe_child_forget(struct probe_child *child);
