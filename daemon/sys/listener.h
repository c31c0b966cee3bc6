/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A seccomp listener (seccomp_unotify(2)): the file descriptor through which a filter reports
 * system calls that wait for an answer. What a report contains was copied by the kernel when the
 * call began; memory of the process is never read.
 */

#include <stdint.h>
#include <sys/types.h>

/* An ioctl() that waits for an answer. */
struct notified_call {
	uint64_t id;
	pid_t thread, process;
	int fd; /* its first argument */
};

/* -EBADF: the file descriptor is no listener. */
int listener_check(int fd);

/* Call it once before the first listener_receive(): installs a handler of SIGALRM. */
int listener_start(void);

/*
 * Reads the next report, which poll() has announced. Never waits for longer than a millisecond.
 * -ENOENT: the call was withdrawn, or its process has ended or cannot be seen from here. -EBUSY:
 * there is no report, so another process reads from this listener, too. guess: the process that
 * probably makes the call, which saves time; 0: none.
 */
int listener_receive(int fd, pid_t guess, struct notified_call *ret);

/* Lets the call run, or fails it with this errno (positive). A call that was withdrawn since is
 * ignored. */
void listener_allow(int fd, uint64_t id);
void listener_refuse(int fd, uint64_t id, int error);
