/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filtered.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check-cond.h"
#include "ioctl-listener.h"
#include "live.h"

#define CREATE_QUEUE 0xc0584b02U /* of Linux 6.1 */

static int request(int fd, unsigned number)
{
	return ioctl(fd, number, NULL) < 0 ? errno : 0;
}

static int create_in_child(int fd)
{
	int ends[2], r;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	if (fork() == 0) {
		r = request(fd, CREATE_QUEUE);
		_exit(write(ends[1], &r, sizeof(r)) != sizeof(r));
	}
	close(ends[1]);
	CHECK(read(ends[0], &r, sizeof(r)) == sizeof(r));
	CHECK(read(ends[0], &(char){ 0 }, 1) == 0); /* it has closed its files */
	close(ends[0]);
	return r;
}

/* Its end of the socket keeps it: filtered_end() closes the other one. */
static int leave_child(int socket)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0)
		_exit(read(socket, &byte, 1) != 0);
	return pid < 0 ? errno : 0;
}

static int carry_out(const struct filtered *process, int fd, char command)
{
	switch (command) {
	case FILTERED_PROVE: return request(-1, CREATE_QUEUE);
	case FILTERED_FORK: return create_in_child(fd);
	case FILTERED_LEAVE: return leave_child(process->socket);
	case FILTERED_FLOOD:
		for (;; process->shared->calls++)
			request(fd, CREATE_QUEUE);
	default: return request(fd, CREATE_QUEUE);
	}
}

static _Noreturn void be_filtered(const struct filtered *process)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), listener, r;
	char command;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	listener = ioctl_listener(CREATE_QUEUE, 0);
	CHECK(fd >= 0 && listener >= 0);
	pass(process->socket, listener);
	close(listener);
	while (read(process->socket, &command, 1) == 1) {
		r = carry_out(process, fd, command);
		CHECK(write(process->socket, &r, sizeof(r)) == sizeof(r));
	}
	_exit(0);
}

struct filtered filtered_start(void)
{
	struct filtered process = { 0 };
	int ends[2];

	process.shared = mmap(NULL, sizeof(*process.shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(process.shared != MAP_FAILED);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	process.pid = fork();
	CHECK(process.pid >= 0);
	process.socket = ends[process.pid == 0];
	close(ends[process.pid != 0]);
	if (process.pid == 0)
		be_filtered(&process);
	process.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	CHECK(process.pidfd >= 0);
	process.listener = pass(process.socket, -1);
	return process;
}

void filtered_end(struct filtered *process)
{
	end_process(process->pid);
	close(process->pidfd);
	close(process->socket);
	if (process->listener >= 0)
		close(process->listener);
	munmap(process->shared, sizeof(*process->shared));
}

void filtered_say(const struct filtered *process, enum filtered_command command)
{
	const char byte = (char)command;

	CHECK(write(process->socket, &byte, 1) == 1);
}

int filtered_hear(const struct filtered *process)
{
	int r;

	CHECK(read(process->socket, &r, sizeof(r)) == sizeof(r));
	return r;
}

int filtered_after(const struct filtered *process, enum filtered_command command)
{
	filtered_say(process, command);
	return filtered_hear(process);
}
