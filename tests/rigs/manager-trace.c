/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-trace.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

static const struct watched {
	long number;
	const char *name;
	bool sockets_only;
} watched[] = {
#ifdef SYS_rename
	{ SYS_rename, "rename", false },     { SYS_unlink, "unlink", false },
#endif
	{ SYS_renameat, "renameat", false }, { SYS_renameat2, "renameat2", false },
	{ SYS_unlinkat, "unlinkat", false }, { SYS_sendto, "sendto", false },
	{ SYS_sendmsg, "sendmsg", false },   { SYS_sendmmsg, "sendmmsg", false },
	{ SYS_write, "write", true },        { SYS_writev, "writev", true },
};

static bool is_socket(pid_t pid, unsigned long fd)
{
	char path[64], target[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strncmp(target, "socket:", 7) == 0;
}

static const char *name_of(pid_t pid, const struct __ptrace_syscall_info *info)
{
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		if (watched[i].number == (long)info->entry.nr &&
		    (!watched[i].sockets_only || is_socket(pid, info->entry.args[0])))
			return watched[i].name;
	return NULL;
}

/* SIGKILL before the call is begun: it never is. */
static void take_syscall(struct manager_trace *trace)
{
	struct __ptrace_syscall_info info = { 0 };
	const char *name;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, trace->pid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	name = name_of(trace->pid, &info);
	if (!name || ++trace->count != trace->kill_at)
		return;
	trace->killed_before = name;
	CHECK(kill(trace->pid, SIGKILL) == 0);
}

/* Counts the call of this stop, if it is one; which signal it is to get when it goes on. */
static long take_stop(struct manager_trace *trace, int status)
{
	if (WSTOPSIG(status) == SYSCALL_STOP)
		take_syscall(trace);
	else if (status >> 16 == 0)
		return WSTOPSIG(status);
	return 0;
}

/* Where it is being killed, what is asked of it fails with ESRCH, here and below. */
void manager_trace_take(struct manager_trace *trace, int status)
{
	long number = take_stop(trace, status);

	ptrace(PTRACE_SYSCALL, trace->pid, 0, number);
}

/* Stops it; what it was about to do anyway takes the place of the stop. false: it has ended,
 * which is left for waitpid() to say. */
static bool interrupt(const struct manager_trace *trace, int *ret_status)
{
	siginfo_t info;

	if (ptrace(PTRACE_INTERRUPT, trace->pid, 0, 0) < 0)
		return false;
	CHECK(waitid(P_PID, (id_t)trace->pid, &info, WEXITED | WSTOPPED | WNOWAIT) == 0);
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return false;
	CHECK(waitpid(trace->pid, ret_status, 0) == trace->pid);
	return true;
}

int manager_trace_start(struct manager_trace *trace, pid_t pid, unsigned kill_at)
{
	bool traced = trace->pid == pid;
	int status;

	*trace = (struct manager_trace){ .pid = pid, .kill_at = kill_at };
	if (traced)
		return 0;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0) {
		trace->pid = 0;
		return -errno;
	}
	if (interrupt(trace, &status))
		manager_trace_take(trace, status);
	return 0;
}

void manager_trace_stop(struct manager_trace *trace)
{
	int status;

	if (trace->pid == 0)
		return;
	if (interrupt(trace, &status)) {
		long number = take_stop(trace, status);

		ptrace(PTRACE_DETACH, trace->pid, 0, number);
	}
	trace->pid = 0;
}
