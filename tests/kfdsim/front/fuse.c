/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/base.h"
#include "kfdsim/program/namespace.h"

#define FILES FRONT_SCRATCH "/files"
#define BATCH 64U /* requests before others have their turn */

int fuse_reply_two(struct fuse *fuse, uint64_t unique, const void *head, size_t head_size,
		   const void *data, size_t size)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + head_size + size),
		.unique = unique,
	};
	struct iovec parts[] = {
		{ .iov_base = &out, .iov_len = sizeof(out) },
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = head_size },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = size },
	};

	return writev(fuse->fd, parts, ARRAY_SIZE(parts)) < 0 ? -errno : 0;
}

int fuse_reply(struct fuse *fuse, uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + size),
		.error = error,
		.unique = unique,
	};
	struct iovec parts[] = {
		{ .iov_base = &out, .iov_len = sizeof(out) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = size },
	};

	return writev(fuse->fd, parts, ARRAY_SIZE(parts)) < 0 ? -errno : 0;
}

static int statfs_reply(struct fuse *fuse, const struct fuse_request *request)
{
	struct fuse_statfs_out out = { .st = { .namelen = 255, .bsize = 4096 } };

	return fuse_reply(fuse, request->in->unique, 0, &out, sizeof(out));
}

static const struct {
	fuse_handler *handler;
	bool silent; /* no reply is expected */
} handlers[] = {
	[FUSE_LOOKUP] = { fuse_lookup, false },
	[FUSE_FORGET] = { fuse_forget, true },
	[FUSE_BATCH_FORGET] = { fuse_batch_forget, true },
	[FUSE_GETATTR] = { fuse_getattr, false },
	[FUSE_SETATTR] = { fuse_setattr, false },
	[FUSE_OPEN] = { fuse_open, false },
	[FUSE_READ] = { fuse_read, false },
	[FUSE_WRITE] = { fuse_write, false },
	[FUSE_RELEASE] = { fuse_release, false },
	[FUSE_OPENDIR] = { fuse_opendir, false },
	[FUSE_READDIR] = { fuse_readdir, false },
	[FUSE_RELEASEDIR] = { fuse_release, false },
	[FUSE_STATFS] = { statfs_reply, false },
	[FUSE_IOCTL] = { fuse_ioctl, false },
	[FUSE_INTERRUPT] = { fuse_interrupt, true },
};

/* A reply that comes too late is -ENOENT: its caller was killed meanwhile. */
static int serve(struct fuse *fuse, const struct fuse_request *request)
{
	uint32_t opcode = request->in->opcode;
	bool known = opcode < ARRAY_SIZE(handlers) && handlers[opcode].handler;
	bool silent = known && handlers[opcode].silent;
	int r;

	if (opcode != FUSE_IOCTL)
		front_bury(fuse->front);
	r = known ? handlers[opcode].handler(fuse, request) : -ENOSYS;
	if (r < 0 && !silent)
		r = fuse_reply(fuse, request->in->unique, r, NULL, 0);
	return r == -ENOENT || silent ? 0 : r;
}

/* Reads one request. -EAGAIN: none there. */
static int receive(struct fuse *fuse, struct fuse_request *ret)
{
	const struct fuse_in_header *in = (const struct fuse_in_header *)(void *)fuse->buffer;
	ssize_t n;

	do
		n = read(fuse->fd, fuse->buffer, sizeof(fuse->buffer));
	while (n < 0 && (errno == EINTR || errno == ENOENT));
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(*in) || in->len != (size_t)n)
		return -EPROTO;
	*ret = (struct fuse_request){
		.in = in,
		.body = in + 1,
		.size = (size_t)n - sizeof(*in),
		.node = fuse_node_of(fuse, in->nodeid),
	};
	return 0;
}

static int ready(struct front *front)
{
	struct fuse *fuse = front->fuse;
	struct fuse_request request;
	int r = 0;

	for (unsigned i = 0; i < BATCH && r == 0; i++) {
		r = receive(fuse, &request);
		r = r < 0 ? r : serve(fuse, &request);
	}
	if (r == 0 || r == -EAGAIN)
		r = fuse_gate_ready(fuse);
	if (r == 0)
		return 0;
	fprintf(stderr, "kfdsim: /dev/fuse: %s\n", strerror(-r));
	return r;
}

static int mount_files(struct fuse *fuse)
{
	char options[128];

	fuse->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fuse->fd < 0 || (mkdir(FILES, 0755) < 0 && errno != EEXIST))
		return -errno;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,"
		 "allow_other,default_permissions",
		 fuse->fd);
	if (mount("kfdsim", FILES, "fuse.kfdsim", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	return 0;
}

/* The first request, and what it takes for devices to have memory behind them. */
static int shake_hands(struct fuse *fuse)
{
	struct wire_backing backing = { .fd = fuse->front->arena_fd };
	struct wire_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = WIRE_MINOR,
		.flags = WIRE_INIT_EXT,
		.flags2 = WIRE_PASSTHROUGH,
		.max_stack_depth = 1,
		.max_write = FUSE_MAX_WRITE,
		.time_gran = 1,
	};
	const struct fuse_init_in *in;
	struct fuse_request request;
	int r;

	r = receive(fuse, &request);
	if (r < 0)
		return r;
	in = request.body;
	if (request.in->opcode != FUSE_INIT || request.size < sizeof(*in) ||
	    in->minor < WIRE_MINOR || !(in->flags2 & WIRE_PASSTHROUGH))
		return -EPROTONOSUPPORT;
	r = fuse_reply(fuse, request.in->unique, 0, &out, sizeof(out));
	if (r < 0)
		return r;
	fuse->backing_id = ioctl(fuse->fd, WIRE_BACKING_OPEN, &backing);
	return fuse->backing_id < 0 ? -errno : 0;
}

static const char *trouble(int error)
{
	switch (error) {
	case -EPROTONOSUPPORT:
		return "this kernel's FUSE has no passthrough: Linux 6.9 and later have it";
	case -ENOENT:
	case -ENODEV:
	case -ENXIO: return "there is no FUSE here (/dev/fuse)";
	case -EPERM:
	case -EACCES: return "FUSE passthrough takes CAP_SYS_ADMIN in the first user namespace";
	}
	return strerror(-error);
}

void fuse_free(struct fuse *fuse)
{
	size_t room;

	while (fuse->waits)
		fuse_take_wait(fuse, fuse->waits->unique, &room);
	while (!LIST_EMPTY(
		&fuse->handles)) /* of a program whose end the kernel did not report yet */
		fuse_handle_free(LIST_FIRST(&fuse->handles));
	fuse_nodes_done(&fuse->nodes);
	fuse_gate_done(fuse);
	if (fuse->fd >= 0)
		close(fuse->fd);
	free(fuse);
}
DEFINE_CLEANUP(struct fuse *, fuse_free)

int fuse_start(struct front *front, char *why, size_t size)
{
	_cleanup_(fuse_freep) struct fuse *fuse = calloc(1, sizeof(*fuse));
	static char root[] = "";
	int r;

	if (!fuse)
		return -ENOMEM;
	fuse->fd = fuse->epoll_fd = fuse->gate_fd = fuse->pair[0] = fuse->pair[1] = -1;
	fuse->front = front;
	fuse->nodes.root = (struct fuse_node){ .path = root, .kind = TREE_DIRECTORY };
	r = namespace_private(FRONT_SCRATCH, why, size);
	if (r < 0)
		return r;
	r = front_arena(front);
	r = r < 0 ? r : mount_files(fuse);
	r = r < 0 ? r : shake_hands(fuse);
	if (r < 0) {
		snprintf(why, size, "%s", trouble(r));
		return r;
	}
	front->fuse = TAKE_PTR(fuse);
	return 0;
}

static int enter(struct front *front)
{
	int r = namespace_cover(FRONT_SCRATCH, FRONT_SYSFS);

	r = r < 0 || front->no_smi ? r : fuse_gate_install(front->fuse);
	if (r < 0)
		fprintf(stderr, "kfdsim: seccomp: %s\n", strerror(-r));
	return r;
}

int fuse_run(struct front *front, char *const command[])
{
	struct fuse *fuse = front->fuse;
	int r;

	r = fuse_gate_prepare(fuse);
	r = r < 0 ? r : front_spawn(front, command, enter);
	return r < 0 ? r : front_loop(front, fuse->epoll_fd, ready);
}
