/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/kill.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/base.h"
#include "core/change/observe.h"
#include "util/text.h"
#include "util/fd.h"
#include "util/log.h"
#include "sys/process.h"

#define PF_KTHREAD 0x00200000U /* Linux, include/linux/sched.h */

/* The ninth field of /proc/PID/stat, where the second may hold anything. */
static bool read_flags(pid_t pid, unsigned *ret)
{
	_cleanup_fd_ int fd = -1;
	char path[32], text[1024];
	const char *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", ret) == 1;
}

/* Where /proc shows only what this process could trace, kernel threads are those without a
 * session. They would not take the signal anyway. */
static bool is_kernel_thread(pid_t pid)
{
	unsigned flags;

	return read_flags(pid, &flags) ? flags & PF_KTHREAD : getsid(pid) == 0;
}

/* What is read by number is of this process as long as the pidfd says that it lives. */
static bool is_alive(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, 0) == 0;
}

static int check(int pidfd, pid_t spared, struct observed *ret, char *why, size_t size)
{
	bool never;
	int r;

	r = process_pid_of_pidfd(pidfd, &ret->pid);
	if (r == -EBADF)
		return refuse(why, size, r, "what came with the request is no pidfd");
	if (r < 0)
		return refuse(why, size, r, "the process has ended, or is in another namespace");

	process_describe(ret);
	never = ret->pid == 1 || ret->pid == getpid() || ret->pid == spared ||
		is_kernel_thread(ret->pid);
	if (!is_alive(pidfd))
		return refuse(why, size, -ESRCH, "the process has ended");
	if (never)
		return refuse(why, size, -EPERM, "process %d (%s) is never killed", (int)ret->pid,
			      ret->command);
	return 0;
}

int kill_process(int pidfd, pid_t spared, char *why, size_t size)
{
	struct observed process = { 0 };
	int r;

	r = check(pidfd, spared, &process, why, size);
	if (r < 0)
		return r;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
		return refuse(why, size, -errno, "cannot kill process %d (%s): %s",
			      (int)process.pid, process.command, strerror(errno));
	log_notice("process %d (%s): SIGKILL", (int)process.pid, process.command);
	return 0;
}
