/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util/fd.h"

/* Newer managers close a descriptor that they do not keep in a thread, perhaps after the
 * barrier. */
#define LATE_CLOSE_MSEC 5

int notify_connect(int socket, const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(address);

	if (address[0] != '/' && address[0] != '@')
		return -EAFNOSUPPORT;
	if (length >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, address, length);
	if (address[0] == '@')
		un.sun_path[0] = '\0'; /* an abstract name has no final NUL */
	else
		length++;
	length += offsetof(struct sockaddr_un, sun_path);
	return connect(socket, (const struct sockaddr *)&un, (socklen_t)length) < 0 ? -errno : 0;
}

int notify_open(const char *address)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	r = notify_connect(fd, address);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int notify_send(int socket, const char *text, int fd)
{
	return send_with_fd(socket, text, strlen(text), fd);
}

/* ---- the probe ----------------------------------------------------------------------- */

static int64_t now_msec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the events or a hang-up. */
static int await(int fd, short events, int64_t deadline)
{
	struct pollfd end = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = deadline - now_msec();
		n = poll(&end, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n > 0 ? 0 : -ETIMEDOUT;
}

static int send_patiently(int socket, const char *text, int fd, int64_t deadline)
{
	int r;

	while ((r = notify_send(socket, text, fd)) == -EAGAIN) {
		r = await(socket, POLLOUT, deadline);
		if (r < 0)
			return r;
	}
	return r;
}

static int pass_barrier(int socket, int64_t deadline)
{
	_cleanup_fd_ int passed = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	passed = ends[0];
	r = send_patiently(socket, "BARRIER=1", ends[1], deadline);
	close(ends[1]);
	return r < 0 ? r : await(passed, 0, deadline);
}

int notify_probe(int socket, int patience_msec)
{
	int64_t deadline = now_msec() + patience_msec;
	_cleanup_fd_ int other = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	other = pair[0];
	r = send_patiently(socket, "FDSTORE=1\nFDNAME=" NOTIFY_PROBE, pair[1], deadline);
	close(pair[1]);
	if (r == 0)
		r = pass_barrier(socket, deadline);
	if (r < 0)
		return r;

	if (await(other, 0, now_msec() + LATE_CLOSE_MSEC) == 0)
		return -ENOSPC;
	return send_patiently(socket, "FDSTOREREMOVE=1\nFDNAME=" NOTIFY_PROBE, -1, deadline);
}
