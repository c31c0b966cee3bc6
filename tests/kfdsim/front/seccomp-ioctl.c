/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/base.h"

#define KFD_TYPE 'K'

/* The filter sees numbers only: consoles have ioctls of those types too. Render nodes are the
 * same file by another name. False: a file that is none of both. */
static bool device_name(const struct seccomp *seccomp, const struct seccomp_call *call,
			char target[64])
{
	char path[64];

	memset(target, 0, 64);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", call->tid, call->fd);
	return seccomp_is_device(seccomp, path) && readlink(path, target, 63) >= 0;
}

static bool alive(const struct front *front, pid_t pid)
{
	for (const struct front_client *client = front->clients; client; client = client->next)
		if (client->pid == pid)
			return true;
	return false;
}

static bool same_file(pid_t pid, int fd, const struct seccomp_call *call)
{
	return syscall(SYS_kcmp, pid, call->pid, KCMP_FILE, fd, call->fd) == 0;
}

/*
 * An open file that another process was seen to use, or has by the same number where this one
 * never opened any, is that one's: a fork has it, and the driver refuses it there. Returns
 * whose it is; descriptors of the dead are forgotten.
 */
static pid_t opener_of(struct seccomp *seccomp, const struct seccomp_call *call)
{
	struct seccomp_file **at = &seccomp->files, *file;
	const struct front_client *client;

	while ((file = *at)) {
		if (file->pid == call->pid && file->fd == call->fd)
			return call->pid;
		if (!alive(seccomp->front, file->pid)) {
			*at = file->next;
			free(file);
			continue;
		}
		if (file->pid != call->pid && same_file(file->pid, file->fd, call))
			return file->pid;
		at = &file->next;
	}
	if (!alive(seccomp->front, call->pid))
		for (client = seccomp->front->clients; client; client = client->next)
			if (same_file(client->pid, call->fd, call))
				return client->pid;
	file = calloc(1, sizeof(*file));
	if (file) {
		*file = (struct seccomp_file){ .pid = call->pid, .fd = call->fd };
		file->next = seccomp->files;
		seccomp->files = file;
	}
	return call->pid;
}

/* CREATE_, DESTROY_ and UPDATE_QUEUE, SET_CU_MASK and ALLOC_QUEUE_GWS, whose own numbers are in
 * a header that wants those of libdrm. */
static bool changes_queues(unsigned cmd)
{
	static const unsigned numbers[] = { 0x02, 0x03, 0x07, 0x1a, 0x1e };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (_IOC_NR(cmd) == numbers[i])
			return true;
	return false;
}

/* sim_ioctl() may answer others while it is called, but this one only later: so it is in the
 * list before. Whoever has an answer finds the texts as they are then. */
static int kfd_call(struct seccomp *seccomp, const struct seccomp_call *call,
		    struct front_client *client, void *argument)
{
	struct seccomp_wait *wait = calloc(1, sizeof(*wait)), taken;
	int result, r;

	if (!wait)
		return -ENOMEM;
	*wait = (struct seccomp_wait){
		.id = call->id,
		.tid = call->tid,
		.address = call->address,
		.room = call->cmd & IOC_OUT ? _IOC_SIZE(call->cmd) : 0,
		.next = seccomp->waits,
	};
	seccomp->waits = wait;
	result = front_ioctl(seccomp->front, client, NULL, call->tid, call->id, call->cmd, argument,
			     _IOC_SIZE(call->cmd));
	if (result == -EINPROGRESS)
		return 0;
	if (!seccomp_take_wait(seccomp, call->id, &taken))
		return 0;
	r = changes_queues(call->cmd) ? seccomp_write_processes(seccomp) : 0;
	return r < 0 ? r : seccomp_reply_call(seccomp, &taken, result, argument);
}

/* As kfd_ioctl() takes its argument. */
static int take_argument(struct seccomp *seccomp, const struct seccomp_call *call, void *argument)
{
	const struct sim_world *world = &seccomp->front->world;
	size_t size = _IOC_SIZE(call->cmd);

	if (size > SIM_ARGUMENT_MAX)
		return -ENOTTY;
	if (!(call->cmd & IOC_IN))
		return 0;
	return world->read(world->userdata, call->tid, call->address, argument, size);
}

static int serve(struct seccomp *seccomp, const struct seccomp_call *call)
{
	uint8_t argument[SIM_ARGUMENT_MAX] = { 0 };
	struct front *front = seccomp->front;
	struct front_client *client;
	pid_t opener;
	int r;

	r = take_argument(seccomp, call, argument);
	if (r < 0)
		return seccomp_reply(seccomp, call->id, r, 0);
	opener = opener_of(seccomp, call);
	r = front_open(front, opener, &client);
	if (r < 0)
		return seccomp_reply(seccomp, call->id, r, 0);
	r = seccomp_waits(seccomp, call->id) ? kfd_call(seccomp, call, client, argument) : 0;
	front_close(front, client);
	return r;
}

static int serve_render(struct seccomp *seccomp, const struct seccomp_call *call, unsigned minor)
{
	const struct seccomp_wait wait = {
		.id = call->id,
		.tid = call->tid,
		.address = call->address,
		.room = call->cmd & IOC_OUT ? _IOC_SIZE(call->cmd) : 0,
	};
	uint8_t argument[SIM_ARGUMENT_MAX] = { 0 };
	int r = take_argument(seccomp, call, argument);

	r = r < 0 ? r
		  : sim_render_ioctl(seccomp->front->sim, minor, call->tid, call->cmd, argument,
				     _IOC_SIZE(call->cmd), front_now());
	return seccomp_reply_call(seccomp, &wait, r, argument);
}

int seccomp_ioctl(struct seccomp *seccomp, struct seccomp_call *call)
{
	char name[64];
	unsigned minor;

	if (device_name(seccomp, call, name) && front_process_of(call->tid, &call->pid) == 0) {
		if (strcmp(basename(name), "kfd") == 0)
			return _IOC_TYPE(call->cmd) == KFD_TYPE
				       ? serve(seccomp, call)
				       : seccomp_reply(seccomp, call->id, -ENOTTY, 0);
		if (front_render_minor(name, &minor) == 0)
			return serve_render(seccomp, call, minor);
	}
	return seccomp_reply(seccomp, call->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}
