/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libgpuarb/connection/basics.h"

/* Above the fds that programs assume to be free, and that daemons close one by one. */
#define FD_HIGH 500

/* Moves the fd to a higher number if RLIMIT_NOFILE allows that. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_HIGH);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* Root is trusted for programs that have dropped their privileges. */
static bool trusted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == getuid() || peer.uid == 0);
}

static int connect_to(const char *name, bool file)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	_cleanup_(close_fd) int fd = -1;

	memcpy(address.sun_path + !file, name, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int link_open(struct link *link, const char *name)
{
	_cleanup_(close_fd) int fd = connect_to(name, true);
	struct stat st;

	if (fd < 0)
		fd = connect_to(name, false);
	if (fd < 0)
		return fd;
	if (!trusted(fd))
		return -EPERM;
	fd = move_up(fd);
	if (fstat(fd, &st) < 0)
		return -EIO;
	link->fd = TAKE_FD(fd);
	link->inode = st.st_ino;
	return 0;
}

bool link_is_ours(const struct link *link)
{
	struct stat st;

	return link->fd >= 0 && fstat(link->fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_ino == link->inode;
}

void link_close(struct link *link)
{
	if (link_is_ours(link))
		close(link->fd);
	link->fd = -1;
}

bool link_wait(int fd, int msec)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char c;

	if (msec >= 0)
		return poll(&poll_fd, 1, msec) != 0;
	(void)recv(fd, &c, 1, MSG_PEEK);
	return true;
}

int link_receive(const struct link *link, int msec, struct agent_grant *ret)
{
	struct pollfd poll_fd = { .fd = link->fd, .events = POLLIN };
	ssize_t size;
	int r = 1;

	if (msec > 0)
		do /* a process that was stopped is interrupted, although signals are blocked */
			r = poll(&poll_fd, 1, msec);
		while (r < 0 && errno == EINTR);
	if (r == 0)
		return 0;
	if (!link_is_ours(link))
		return -ECONNRESET;
	size = recv(link->fd, ret, sizeof(*ret), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (size <= 0)
		return -ECONNRESET;
	return agent_grant_valid(ret, (size_t)size) ? 1 : -EPROTO;
}

void link_answer(const struct link *link, uint64_t generation, int error)
{
	struct agent_answer answer = { .version = AGENT_VERSION,
				       .error = error,
				       .generation = generation };

	if (link_is_ours(link))
		(void)send(link->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
}
