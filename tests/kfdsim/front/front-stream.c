/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Both ends are non-blocking: the driver's own reads EAGAIN, too, where it has nothing to tell. */
static int stream_open(void *userdata, uint64_t request, int *ret_stream, uint32_t *ret_fd)
{
	struct front *front = userdata;
	int ends[2], fd;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	fd = fuse_gate_give(front, request, ends[1]);
	close(ends[1]);
	if (fd < 0) {
		close(ends[0]);
		return fd;
	}
	*ret_stream = ends[0];
	*ret_fd = (uint32_t)fd;
	return 0;
}

/* The kernel tells in memory, not in bytes, what is not taken yet: so the count of bytes goes back to 0
 * when all is taken, and not before. */
static int stream_put(void *userdata, int stream, const void *data, size_t size, size_t room,
		      size_t *unread)
{
	int queued = 0;

	(void)userdata;
	if (ioctl(stream, SIOCOUTQ, &queued) == 0 && queued == 0)
		*unread = 0;
	if (*unread + size > room)
		return -ENOSPC;
	if (send(stream, data, size, MSG_NOSIGNAL) < 0)
		return -errno;
	*unread += size;
	return 0;
}

static int stream_get(void *userdata, int stream, void *buf, size_t size)
{
	ssize_t n = recv(stream, buf, size, 0);

	(void)userdata;
	if (n == 0 || (n < 0 && errno != EAGAIN))
		return -EPIPE;
	return n < 0 ? 0 : (int)n;
}

static void put_away(void *userdata, int stream)
{
	(void)userdata;
	close(stream);
}

static bool privileged(void *userdata, pid_t pid)
{
	uint64_t effective = 0;
	char path[64], line[256];
	FILE *stream;

	(void)userdata;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	while (fgets(line, sizeof(line), stream))
		if (strncmp(line, "CapEff:", 7) == 0)
			effective = strtoull(line + 7, NULL, 16);
	fclose(stream);
	return effective >> CAP_SYS_ADMIN & 1;
}

static int file_keep(void *userdata, pid_t pid, int fd)
{
	char path[64], target[64] = "";
	unsigned minor;
	int pidfd, file;

	(void)userdata;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		return -EBADF;
	if (front_render_minor(target, &minor) < 0)
		return -EINVAL;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return -errno;
	file = pidfd_getfd(pidfd, fd, 0);
	if (file < 0)
		file = -errno;
	close(pidfd);
	return file;
}

static bool file_same(void *userdata, int kept, pid_t pid, int fd)
{
	(void)userdata;
	return syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, kept, fd) == 0;
}

void front_streams(struct sim_world *world)
{
	world->stream_open = stream_open;
	world->stream_put = stream_put;
	world->stream_get = stream_get;
	world->put_away = put_away;
	world->privileged = privileged;
	world->file_keep = file_keep;
	world->file_same = file_same;
}
