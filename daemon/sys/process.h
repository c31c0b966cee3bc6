/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Properties of a process from /proc, pidfds and cgroups. All are hints, except those of a
 * pidfd. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct caller;
struct observed;

/* Fills start_time, uid, command and ancestors of the row from its pid. If the process has ended
 * they are 0, -1, "" and none. */
void process_describe(struct observed *row);

/* Adds one beyond those that it descends from, unless it is younger. */
void process_add_ancestor(struct observed *row, pid_t pid);

/* Fills start_time, unit, slice and executable of the caller from its pid; 0 and "": unknown. */
void process_place(pid_t pid, struct caller *caller);

/* Where /proc does not show the process, a kernel thread is one without a session. */
bool process_is_kernel_thread(pid_t pid);

/* Whether the process of a pidfd has not ended. Then all that was read by its pid before belongs to
 * it: until then the kernel does not give the number away again. */
bool process_is_alive(int pidfd);

/* Distinguishes processes that had the same pid; 0: it has ended. */
uint64_t process_start_time(pid_t pid);

/* Its real, effective and saved uid. */
int process_uids(pid_t pid, uid_t ret[static 3]);

/* The device number of its controlling terminal; 0: it has none. */
dev_t process_terminal(pid_t pid);

/* A pidfd of the process that had this pid and start time before, or -ESRCH, and its effective uid now. */
int process_open(pid_t pid, uint64_t start_time, uid_t *ret_uid);

/* Whether a thread of a process exists and has not ended; a zombie has. */
bool process_runs(pid_t pid, pid_t thread);

/* The pid of a pidfd, which is valid as long as process_is_alive(). Like process_of_pidfd(), but the
 * process need not be visible in /proc. */
int process_pid_of_pidfd(int fd, pid_t *ret);

/* Whether process_place() can find the executable of processes of other users. */
bool process_sees_executables(void);

/* The pid and uid of the process of a pidfd. -EBADF: not a pidfd; -ESRCH: the process has ended or
 * is outside of this pid namespace; -EPERM: a kernel thread, which never ends; -EINVAL: a thread,
 * but not the first one of its process. Other errors of open(2), such as -EMFILE and -ENFILE:
 * nothing is known. */
int process_of_pidfd(int fd, pid_t *ret_pid, uid_t *ret_uid);

/* As fork(2), of a process that nobody has to wait for: returns 0 in it, 1 in this one. */
int process_fork(void);
