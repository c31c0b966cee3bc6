/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/base.h"
#include "kfdsim/program/namespace.h"

#define FILES FRONT_SCRATCH "/files"
#define CONTROL "debug/kfdsim/control"

/* Files are looked over so often, and a tenth of the time at most. */
#define LOOK_NS 5000000U
#define LOOK_SHARE 10U
#define BATCH 64U /* requests before others have their turn */

static void seccomp_free(struct seccomp *seccomp)
{
	int *const fds[] = { &seccomp->pair[0],  &seccomp->pair[1],    &seccomp->listener_fd,
			     &seccomp->timer_fd, &seccomp->control_fd, &seccomp->epoll_fd };

	seccomp_forget(seccomp);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	free(seccomp->generation);
	free(seccomp);
}
DEFINE_CLEANUP(struct seccomp *, seccomp_free)

/* ---- start ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* The same user inside as outside, with what mounting takes until the next exec. */
static int own_users(char *why, size_t size)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char line[64];
	int r;

	if (unshare(CLONE_NEWUSER) < 0) {
		r = -errno;
		snprintf(why, size, "no user namespace (%s): it takes root, or user namespaces",
			 strerror(-r));
		return r;
	}
	r = write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	r = r < 0 ? r : write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	r = r < 0 ? r : write_file("/proc/self/gid_map", line);
	if (r < 0)
		snprintf(why, size, "the user namespace cannot be set up: %s", strerror(-r));
	return r;
}

static int own_mounts(char *why, size_t size)
{
	int r = namespace_private(FRONT_SCRATCH, why, size);

	if (r != -EPERM)
		return r;
	r = own_users(why, size);
	return r < 0 ? r : namespace_private(FRONT_SCRATCH, why, size);
}

static int make_device(struct front *front)
{
	int r;

	if (mkdir(FILES, 0755) < 0 || mkdir(FILES "/dev", 0755) < 0 || chmod(FILES, 0755) < 0 ||
	    chmod(FILES "/dev", 0755) < 0)
		return -errno;
	r = front_arena(front, FILES "/dev/kfd");
	return r == 0 && fchmod(front->arena_fd, 0666) < 0 ? -errno : r;
}

static int start(struct front *front, char *why, size_t size)
{
	_cleanup_(seccomp_freep) struct seccomp *seccomp = calloc(1, sizeof(*seccomp));
	int r;

	if (!seccomp)
		return -ENOMEM;
	*seccomp = (struct seccomp){
		.front = front,
		.pair = { -1, -1 },
		.listener_fd = -1,
		.timer_fd = -1,
		.control_fd = -1,
		.epoll_fd = -1,
	};
	if (!seccomp_there()) {
		snprintf(why, size, "seccomp cannot hand over system calls here: Linux 5.19 can");
		return -EOPNOTSUPP;
	}
	r = own_mounts(why, size);
	if (r < 0)
		return r;
	r = make_device(front);
	if (r < 0) {
		snprintf(why, size, "%s/dev/kfd: %s", FILES, strerror(-r));
		return r;
	}
	front->data = TAKE_PTR(seccomp);
	return 0;
}

/* ---- run ---- */

static int enter(struct front *front)
{
	const struct seccomp *seccomp = front->data;
	int r;

	r = namespace_cover(FRONT_SCRATCH, FRONT_SYSFS);
	if (r < 0)
		return r;
	r = seccomp_install(seccomp->pair[1], SECCOMP_CALLS_ALL);
	if (r < 0)
		fprintf(stderr, "kfdsim: seccomp: %s\n",
			r == -EBUSY ? "this is run under another's listener" : strerror(-r));
	return r;
}

/* Each line is a fault; there is nobody to tell but who reads stderr. */
static void take_control(struct seccomp *seccomp)
{
	char text[4096], why[FRONT_WHY];
	ssize_t n = read(seccomp->control_fd, text, sizeof(text) - 1);
	char *line, *rest = text;

	if (n <= 0)
		return;
	text[n] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		if (*line == '\0')
			continue;
		*why = '\0';
		if (tree_write(seccomp->front->tree, CONTROL, line, strlen(line), front_now(), why,
			       sizeof(why)) < 0)
			fprintf(stderr, "kfdsim: %s: %s\n", CONTROL, why);
	}
}

static int set_timer(const struct seccomp *seccomp, uint64_t ns)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = (time_t)(ns / 1000000000U),
			      .tv_nsec = (long)(ns % 1000000000U) },
	};

	return timerfd_settime(seccomp->timer_fd, 0, &when, NULL) < 0 ? -errno : 0;
}

static int look_around(struct seccomp *seccomp)
{
	uint64_t began = front_now(), took, expired;
	int r;

	if (read(seccomp->timer_fd, &expired, sizeof(expired)) < 0)
		return 0;
	front_bury(seccomp->front);
	if (seccomp->listener_fd >= 0)
		seccomp_look_at_waits(seccomp);
	r = seccomp_write_files(seccomp);
	took = (front_now() - began) * LOOK_SHARE;
	return r < 0 ? r : set_timer(seccomp, took > LOOK_NS ? took : LOOK_NS);
}

static int serve_call(struct seccomp *seccomp, struct seccomp_call *call)
{
	char path[PATH_MAX] = "";

	if (call->number == SYS_ioctl)
		return seccomp_ioctl(seccomp, call);
	if (call->number == SYS_openat || call->number == SYS_truncate)
		seccomp_path(seccomp, call, path);
	if (call->number == SYS_openat)
		return seccomp_open(seccomp, call, path);
	return seccomp_resize(seccomp, call, path);
}

static int serve(struct seccomp *seccomp)
{
	struct seccomp_notif request = { 0 };
	struct seccomp_call call;

	if (ioctl(seccomp->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	take_control(seccomp); /* what was written before this was called */
	call = (struct seccomp_call){
		.id = request.id,
		.number = request.data.nr,
		.tid = (pid_t)request.pid,
		.fd = (int)request.data.args[0],
		.cmd = (unsigned)request.data.args[1],
		.address = request.data.args[2],
		.flags = request.data.args[2],
	};
	if (call.number == SYS_openat)
		call.address = request.data.args[1];
	if (call.number == SYS_truncate) {
		call.address = request.data.args[0];
		call.fd = AT_FDCWD;
	}
	return serve_call(seccomp, &call);
}

/* The listener hangs up with the last process that has the filter. */
static int take_requests(struct seccomp *seccomp)
{
	struct pollfd there = { .fd = seccomp->listener_fd, .events = POLLIN };
	int r = 0;

	for (unsigned i = 0; i < BATCH && r >= 0; i++) {
		there.revents = 0;
		if (there.fd < 0 || poll(&there, 1, 0) <= 0)
			return 0;
		if (there.revents & POLLIN) {
			r = serve(seccomp);
			continue;
		}
		close(seccomp->listener_fd);
		seccomp->listener_fd = there.fd = -1;
	}
	return r;
}

/* Faults first: they were written before what comes then was called. */
static int ready(struct front *front)
{
	struct seccomp *seccomp = front->data;
	int r;

	take_control(seccomp);
	r = take_requests(seccomp);
	r = r < 0 ? r : look_around(seccomp);
	if (r < 0)
		fprintf(stderr, "kfdsim: --front seccomp: %s\n", strerror(-r));
	return r;
}

static int watch(const struct seccomp *seccomp, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(seccomp->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int prepare(struct seccomp *seccomp)
{
	int r = seccomp_write_files(seccomp);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, seccomp->pair) < 0)
		return -errno;
	seccomp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	seccomp->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	seccomp->control_fd = open(FILES "/" CONTROL, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (seccomp->epoll_fd < 0 || seccomp->timer_fd < 0 || seccomp->control_fd < 0)
		return -errno;
	r = watch(seccomp, seccomp->timer_fd);
	r = r < 0 ? r : watch(seccomp, seccomp->control_fd);
	return r < 0 ? r : set_timer(seccomp, LOOK_NS);
}

/* Without a listener the command was not started: it ends, and has said why. */
static int meet(struct seccomp *seccomp)
{
	close(seccomp->pair[1]);
	seccomp->pair[1] = -1;
	if (seccomp_receive(seccomp->pair[0], &seccomp->listener_fd) < 0)
		return 0;
	return watch(seccomp, seccomp->listener_fd);
}

static int run(struct front *front, char *const command[])
{
	struct seccomp *seccomp = front->data;
	int r;

	r = prepare(seccomp);
	if (r < 0) {
		fprintf(stderr, "kfdsim: %s: %s\n", FILES, strerror(-r));
		return r;
	}
	r = front_spawn(front, command, enter);
	r = r < 0 ? r : meet(seccomp);
	return r < 0 ? r : front_loop(front, seccomp->epoll_fd, ready);
}

static int give(struct front *front, uint64_t request, int fd)
{
	const struct seccomp *seccomp = front->data;

	return seccomp_give(seccomp->listener_fd, request, fd);
}

static void done(struct front *front)
{
	seccomp_free(front->data);
	front->data = NULL;
}

const struct front_end front_seccomp = {
	.name = "seccomp",
	.start = start,
	.run = run,
	.done = done,
	.give = give,
	.answer = seccomp_answer,
};
