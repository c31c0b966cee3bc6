/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filtered.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check-cond.h"
#include "live.h"

#define CREATE_QUEUE 0xc0584b02U /* of Linux 6.1 */
#define OTHER 0x80084b01U        /* GET_VERSION */

static int install(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_QUEUE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_SIZE(program), program };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &filter);
}

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

static uint64_t now_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int measure(struct filtered_shared *shared, int fd, unsigned number, long pause_nsec)
{
	const struct timespec pause = { .tv_nsec = pause_nsec };
	int r = 0;

	for (unsigned i = 0; i < FILTERED_SAMPLES; i++) {
		uint64_t begin = now_nsec();

		r = request(fd, number);
		shared->nsec[i] = now_nsec() - begin;
		if (pause_nsec > 0)
			nanosleep(&pause, NULL);
	}
	return r;
}

static int carry_out(const struct filtered *process, int fd, char command)
{
	switch (command) {
	case FILTERED_PROVE: return request(-1, CREATE_QUEUE);
	case FILTERED_FORK: return create_in_child(fd);
	case FILTERED_LEAVE: return leave_child(process->socket);
	case FILTERED_MEASURE: return measure(process->shared, fd, CREATE_QUEUE, 1000000);
	case FILTERED_OTHER: return measure(process->shared, fd, OTHER, 0);
	case FILTERED_FLOOD:
		for (;; process->shared->calls++)
			request(fd, CREATE_QUEUE);
	default: return request(fd, CREATE_QUEUE);
	}
}

static _Noreturn void be_filtered(const struct filtered *process, bool filter)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), listener = filter ? install() : -1, r;
	char command;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(fd >= 0 && listener >= (filter ? 0 : -1));
	if (filter) {
		pass(process->socket, listener);
		close(listener);
	}
	while (read(process->socket, &command, 1) == 1) {
		r = carry_out(process, fd, command);
		CHECK(write(process->socket, &r, sizeof(r)) == sizeof(r));
	}
	_exit(0);
}

struct filtered filtered_start(bool filter)
{
	struct filtered process = { .listener = -1 };
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
		be_filtered(&process, filter);
	process.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	CHECK(process.pidfd >= 0);
	if (filter)
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
