/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

#define KFD_TYPE 'K'

/* The argument goes back whatever came of it, as kfd_ioctl() copies it. */
static int reply_ioctl(struct fuse *fuse, uint64_t unique, int result, const void *argument,
		       size_t size)
{
	struct fuse_ioctl_out out = { .result = result };

	return fuse_reply_two(fuse, unique, &out, sizeof(out), argument, size);
}

static int add_wait(struct fuse *fuse, uint64_t unique, size_t room)
{
	struct fuse_wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return -ENOMEM;
	wait->unique = unique;
	wait->room = room;
	wait->next = fuse->waits;
	fuse->waits = wait;
	return 0;
}

/* Forgets one: true and its room if it was there. */
bool fuse_take_wait(struct fuse *fuse, uint64_t unique, size_t *ret_room)
{
	struct fuse_wait **at = &fuse->waits, *wait;

	while (*at && (*at)->unique != unique)
		at = &(*at)->next;
	wait = *at;
	if (!wait)
		return false;
	*at = wait->next;
	*ret_room = wait->room;
	free(wait);
	return true;
}

void fuse_answer(struct front *front, uint64_t unique, int result, const void *argument,
		 size_t size)
{
	struct fuse *fuse = front->fuse;
	size_t room;

	if (fuse_take_wait(fuse, unique, &room))
		(void)reply_ioctl(fuse, unique, result, argument, size < room ? size : room);
}

/* sim_ioctl() may answer others while it is called, but this one only later: so it is in the
 * list before. */
static int kfd_ioctl(struct fuse *fuse, const struct fuse_request *request,
		     struct fuse_handle *handle, const struct fuse_ioctl_in *in)
{
	uint64_t unique = request->in->unique;
	uint8_t argument[SIM_ARGUMENT_MAX] = { 0 };
	size_t size = _IOC_SIZE(in->cmd), room = in->out_size;
	int r;

	if (_IOC_TYPE(in->cmd) != KFD_TYPE || size > sizeof(argument) || room > size)
		return -ENOTTY;
	if (in->in_size > size || request->size - sizeof(*in) < in->in_size)
		return -EINVAL;
	memcpy(argument, in + 1, in->in_size);
	r = add_wait(fuse, unique, room);
	if (r < 0)
		return r;
	r = front_ioctl(fuse->front, handle->client, &handle->context, (pid_t)request->in->pid,
			unique, in->cmd, argument, size);
	if (r == -EINPROGRESS)
		return 0;
	fuse_take_wait(fuse, unique, &room);
	return reply_ioctl(fuse, unique, r, argument, room);
}

static int render_ioctl(struct fuse *fuse, const struct fuse_request *request, unsigned minor,
			const struct fuse_ioctl_in *in)
{
	uint8_t argument[SIM_ARGUMENT_MAX] = { 0 };
	size_t size = _IOC_SIZE(in->cmd);
	int r;

	if (size > sizeof(argument) || in->out_size > size || in->in_size > size ||
	    request->size - sizeof(*in) < in->in_size)
		return -EINVAL;
	memcpy(argument, in + 1, in->in_size);
	r = sim_render_ioctl(fuse->front->sim, minor, (pid_t)request->in->pid, in->cmd, argument,
			     size, front_now());
	return reply_ioctl(fuse, request->in->unique, r, argument, in->out_size);
}

int fuse_ioctl(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_ioctl_in *in = request->body;
	struct fuse_handle *handle;

	if (request->size < sizeof(*in))
		return -EINVAL;
	handle = (struct fuse_handle *)(uintptr_t)in->fh;
	if (handle->render)
		return render_ioctl(fuse, request, handle->minor, in);
	return handle->client ? kfd_ioctl(fuse, request, handle, in) : -ENOTTY;
}

int fuse_interrupt(struct fuse *fuse, const struct fuse_request *request)
{
	const struct fuse_interrupt_in *in = request->body;
	size_t room;

	if (request->size < sizeof(*in) || !fuse_take_wait(fuse, in->unique, &room))
		return 0;
	sim_cancel(fuse->front->sim, in->unique);
	return fuse_reply(fuse, in->unique, -EINTR, NULL, 0);
}
