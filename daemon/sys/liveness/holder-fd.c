/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/liveness/holder.h"
#include "sys/process.h"

/* What one holder's queue may take of kernel memory: a few of the largest records. Readers
 * want the latest one only, and there can be thousands of holders that nobody reads. */
#define QUEUE_BYTES 32768

int holder_fd_pair(int pair[static 2])
{
	const int queue = QUEUE_BYTES;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;

	/* From here on the other end can send nothing, and when it goes, however it does,
	 * both directions are shut down: EPOLLHUP, which comes unasked. EPOLLRDHUP would
	 * be there for ever. */
	if (shutdown(pair[0], SHUT_RD) < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue)) < 0) {
		r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	return 0;
}

int holder_fd_copy(int pidfd, pid_t pid)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int copy = fcntl(pidfd, F_DUPFD_CLOEXEC, 3), own;

	if (copy < 0)
		return -errno;
	own = (int)syscall(SYS_pidfd_open, pid, 0);
	if (own < 0 && errno == ESRCH)
		return copy;
	if (own < 0)
		own = -errno;
	if (own < 0 || poll(&end, 1, 0) == 0) {
		close(copy);
		return own;
	}
	close(own); /* it may be of somebody else, who has the number now */
	return copy;
}

static bool is_end_of_pair(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* Of one that has ended nobody knows whose it was. */
static bool is_pidfd_of(int fd, pid_t pid)
{
	pid_t of;
	uid_t uid;
	int r = process_of_pidfd(fd, &of, &uid);

	return r == -ESRCH || (r == 0 && of == pid);
}

bool holder_fd_is(int fd, pid_t pid)
{
	return pid ? is_pidfd_of(fd, pid) : is_end_of_pair(fd);
}

static void write_name(char name[static STORE_NAME_MAX], uint64_t lease, pid_t pid, uint64_t inode)
{
	if (pid)
		snprintf(name, STORE_NAME_MAX, "lease-%" PRIu64 "-pid-%d", lease, (int)pid);
	else
		snprintf(name, STORE_NAME_MAX, "lease-%" PRIu64 "-%" PRIu64, lease, inode);
}

unsigned holders_most(uint64_t id)
{
	/* MAX_ARG_STRLEN, and room for what else may be there. */
	const unsigned names = 32 * 4096 - 128;
	char name[STORE_NAME_MAX];

	/* Ids that this daemon will come to, in years; and the largest pid. An inode is shorter. */
	write_name(name, id < 10000000000 ? 10000000000 : id, 4194304, 0);
	return names / ((unsigned)strlen(name) + 1);
}

void holder_fd_name(char name[static STORE_NAME_MAX], uint64_t lease, pid_t pid, int fd)
{
	struct stat st = { 0 };

	fstat(fd, &st);
	write_name(name, lease, pid, st.st_ino);
}

bool holders_parse_name(const char *name, uint64_t *ret_lease, pid_t *ret_pid)
{
	char again[STORE_NAME_MAX];
	uint64_t lease, inode = 0;
	int pid = 0;

	if (sscanf(name, "lease-%" SCNu64 "-pid-%d", &lease, &pid) != 2 &&
	    sscanf(name, "lease-%" SCNu64 "-%" SCNu64, &lease, &inode) != 2)
		return false;
	if (pid < 0 || (pid == 0 && inode == 0))
		return false;
	write_name(again, lease, pid, inode); /* neither signs nor zeros nor anything behind */
	if (strcmp(again, name) != 0)
		return false;
	*ret_lease = lease;
	*ret_pid = pid;
	return true;
}
