/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kfdsim/front/seccomp.h"
#include "util/base.h"

/*
 * SMI_EVENTS answers with a new descriptor in the caller, which FUSE cannot give it. So that one
 * request comes another way, by a filter on the command and all that it starts. Where another
 * listener is there already, SMI_EVENTS fails with EOPNOTSUPP and all else works.
 */

static int watch(const struct fuse *fuse, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(fuse->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int fuse_gate_prepare(struct fuse *fuse)
{
	int r;

	fuse->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (fuse->epoll_fd < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fuse->pair) < 0)
		return -errno;
	r = watch(fuse, fuse->fd);
	return r < 0 ? r : watch(fuse, fuse->pair[0]);
}

void fuse_gate_done(struct fuse *fuse)
{
	close_fd(&fuse->epoll_fd);
	close_fd(&fuse->pair[0]);
	close_fd(&fuse->pair[1]);
	close_fd(&fuse->gate_fd);
}

int fuse_gate_install(struct fuse *fuse)
{
	int r = seccomp_there() ? seccomp_install(fuse->pair[1]) : 0;

	return r == -EBUSY ? 0 : r;
}

int fuse_gate_give(struct front *front, uint64_t request, int fd)
{
	const struct fuse *fuse = front->fuse;

	return request == fuse->gated ? seccomp_give(fuse->gate_fd, request, fd) : -EOPNOTSUPP;
}

/* The emulator's /dev/kfd, and not another file with requests of that number. */
static bool is_kfd(const struct seccomp_notif *request)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)request->pid,
		 (int)request->data.args[0]);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       strcmp(basename(target), "kfd") == 0;
}

/* kfd_ioctl() copies the argument back whatever came of the call. */
static int serve_call(struct fuse *fuse, const struct seccomp_notif *request,
		      struct front_client *client)
{
	const struct sim_world *world = &fuse->front->world;
	pid_t tid = (pid_t)request->pid;
	uint64_t address = request->data.args[2];
	size_t room = _IOC_SIZE(request->data.args[1]);
	uint8_t argument[SIM_ARGUMENT_MAX] = { 0 };
	int r;

	r = world->read(world->userdata, tid, address, argument, room);
	if (!seccomp_waits(fuse->gate_fd, request->id))
		return 0;
	fuse->gated = request->id;
	r = r < 0 ? r
		  : front_ioctl(fuse->front, client, NULL, tid, request->id,
				(unsigned)request->data.args[1], argument, room);
	fuse->gated = 0;
	if (!seccomp_waits(fuse->gate_fd, request->id))
		return 0;
	if (room > 0 && world->write(world->userdata, tid, address, argument, room) < 0)
		r = -EFAULT;
	return seccomp_reply(fuse->gate_fd, request->id, r, 0);
}

/* Who has not opened /dev/kfd itself goes on to FUSE, which refuses what is another's. */
static int serve(struct fuse *fuse)
{
	struct seccomp_notif request = { 0 };
	struct front_client *client = NULL;

	if (ioctl(fuse->gate_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	if (is_kfd(&request))
		client = front_find(fuse->front, (pid_t)request.pid);
	if (!client)
		return seccomp_reply(fuse->gate_fd, request.id, 0,
				     SECCOMP_USER_NOTIF_FLAG_CONTINUE);
	return serve_call(fuse, &request, client);
}

/* The command closes its end when it is run, with a listener sent or without. */
static int meet(struct fuse *fuse)
{
	int r = seccomp_receive(fuse->pair[0], &fuse->gate_fd);

	close_fd(&fuse->pair[0]);
	return r < 0 ? 0 : watch(fuse, fuse->gate_fd);
}

int fuse_gate_ready(struct fuse *fuse)
{
	struct pollfd fds[] = { { .fd = fuse->pair[0], .events = POLLIN },
				{ .fd = fuse->gate_fd, .events = POLLIN } };

	close_fd(&fuse->pair[1]);
	if (poll(fds, ARRAY_SIZE(fds), 0) <= 0)
		return 0;
	if (fds[0].revents)
		return meet(fuse);
	if (fds[1].revents & POLLIN)
		return serve(fuse);
	close_fd(&fuse->gate_fd); /* nobody is left who has the filter */
	return 0;
}
