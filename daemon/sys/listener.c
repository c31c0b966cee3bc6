/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "util/fd.h"

/* Linux 6.6: the answer wakes the waiting thread on this CPU, which divides the time of a call by
 * more than ten. Debian 12 has older headers. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define LISTENER_LINK "anon_inode:seccomp notify" /* its link in /proc/self/fd: kernel/seccomp.c */

int listener_check(int fd)
{
	char path[32], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, link, sizeof(link) - 1) < 0 || strcmp(link, LISTENER_LINK) != 0)
		return -EBADF;
	/* An older kernel does not know it, and is only slower. */
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return 0;
}

/* ---- receiving --------------------------------------------------------------------------- */

static void on_alarm(int signal)
{
	(void)signal;
}

int listener_start(void)
{
	const struct sigaction action = { .sa_handler = on_alarm };

	return sigaction(SIGALRM, &action, NULL) < 0 ? -errno : 0;
}

/* SECCOMP_IOCTL_NOTIF_RECV has no form that does not wait, and whoever has a copy of the listener
 * can take the report that poll() announced. A signal each millisecond ends the wait; one signal
 * alone could come before it begins. */
static int receive(int fd, struct seccomp_notif *ret)
{
	static const struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, never;
	int r;

	memset(ret, 0, sizeof(*ret)); /* Linux refuses other bytes */
	setitimer(ITIMER_REAL, &each, NULL);
	r = ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, ret) < 0 ? -errno : 0;
	setitimer(ITIMER_REAL, &never, NULL);
	return r == -EINTR ? -EBUSY : r;
}

/* The process of a thread; 0: it has ended. */
static pid_t process_of(pid_t thread, pid_t guess)
{
	char path[64], text[4096] = "";
	const char *line;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)guess, (int)thread);
	if (guess > 0 && access(path, F_OK) == 0)
		return guess;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	(void)read_text_at(AT_FDCWD, path, text, sizeof(text));
	line = strstr(text, "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &pid) == 1 ? pid : 0;
}

int listener_receive(int fd, pid_t guess, struct notified_call *ret)
{
	/* Newer kernels may have a longer structure. */
	union {
		struct seccomp_notif report;
		unsigned char room[512];
	} buffer;
	struct seccomp_notif *report = &buffer.report;
	int r;

	memset(&buffer, 0, sizeof(buffer));
	r = receive(fd, report);
	if (r < 0)
		return r;
	*ret = (struct notified_call){
		.id = report->id,
		.thread = (pid_t)report->pid,
		.process = report->pid ? process_of((pid_t)report->pid, guess) : 0,
		.fd = (int)report->data.args[0],
	};
	/* While the call waits, the number of its thread belongs to no other thread. */
	if (ret->process && ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &ret->id) == 0)
		return 0;
	listener_refuse(fd, ret->id, EPERM);
	return -ENOENT;
}

/* ---- answering ----------------------------------------------------------------------------- */

static void answer(int fd, uint64_t id, int error, uint32_t flags)
{
	struct seccomp_notif_resp response = { .id = id, .error = error, .flags = flags };

	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void listener_allow(int fd, uint64_t id)
{
	answer(fd, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void listener_refuse(int fd, uint64_t id, int error)
{
	answer(fd, id, -error, 0);
}
