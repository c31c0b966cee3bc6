/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kills a process just before its n-th system call that others can see the effect of: what
 * renames or removes a file, sends, or writes to a socket. The process is traced from
 * manager_trace_start() to manager_trace_stop() and is left alone otherwise.
 */

#include <sys/types.h>

struct manager_trace {
	pid_t pid;        /* 0: nobody is traced */
	unsigned kill_at; /* 0: only count */
	unsigned count;
	const char *killed_before; /* the call; NULL: it lives */
};

/* -errno, as EPERM where tracing is forbidden. */
int manager_trace_start(struct manager_trace *trace, pid_t pid, unsigned kill_at);
void manager_trace_stop(struct manager_trace *trace);

/* What waitpid() said of it, if it is stopped. */
void manager_trace_take(struct manager_trace *trace, int status);
