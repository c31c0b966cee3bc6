/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel says of a process: /proc, pidfds, cgroups. Hints, all but the pidfd. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/change/observe.h"
#include "core/policy/request.h"

/* Fills start_time, uid, command and ancestors of rows[].pid. A process that is gone
 * keeps start_time 0, uid -1 and the command "". */
void process_describe(struct observed *row);

/* Fills unit, slice and executable of the caller from its pid, "" where unknown. */
void process_place(pid_t pid, struct caller *caller);

/* The pid of a pidfd: of that process as long as poll(2) does not find the pidfd readable. As
 * below, but that it needs no sight of the process in /proc. */
int process_pid_of_pidfd(int fd, pid_t *ret);

/* Whether process_place() can tell the executable of other users' processes. */
bool process_sees_executables(void);

/* Whose process a pidfd is, and its pid. Returns -EBADF if fd is no pidfd, -ESRCH if the
 * process is gone or not in sight of this namespace. */
int process_of_pidfd(int fd, pid_t *ret_pid, uid_t *ret_uid);
