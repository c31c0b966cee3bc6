/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

bool seccomp_waits(const struct seccomp *seccomp, uint64_t id)
{
	return ioctl(seccomp->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Whoever was killed meanwhile wants no answer. */
int seccomp_reply(const struct seccomp *seccomp, uint64_t id, int result, uint32_t flags)
{
	struct seccomp_notif_resp response = { .id = id, .error = result, .flags = flags };

	if (ioctl(seccomp->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

/* kfd_ioctl() copies the argument back whatever came of the call. */
int seccomp_reply_call(const struct seccomp *seccomp, const struct seccomp_wait *wait, int result,
		       const void *argument)
{
	const struct sim_world *world = &seccomp->front->world;

	if (!seccomp_waits(seccomp, wait->id))
		return 0;
	if (wait->room > 0 &&
	    world->write(world->userdata, wait->tid, wait->address, argument, wait->room) < 0)
		result = -EFAULT;
	return seccomp_reply(seccomp, wait->id, result, 0);
}

bool seccomp_take_wait(struct seccomp *seccomp, uint64_t id, struct seccomp_wait *ret)
{
	struct seccomp_wait **at = &seccomp->waits, *wait;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	wait = *at;
	if (!wait)
		return false;
	*ret = *wait;
	*at = wait->next;
	free(wait);
	return true;
}

void seccomp_answer(struct front *front, uint64_t id, int result, const void *argument, size_t size)
{
	struct seccomp *seccomp = front->data;
	struct seccomp_wait wait;

	if (!seccomp_take_wait(seccomp, id, &wait))
		return;
	wait.room = size < wait.room ? size : wait.room;
	(void)seccomp_reply_call(seccomp, &wait, result, argument);
}

/* True if a signal would be delivered to the thread if it were not waiting here. */
static bool has_signal(pid_t tid)
{
	uint64_t thread = 0, process = 0, blocked = 0;
	char path[64], line[256];
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	while (fgets(line, sizeof(line), stream)) {
		if (strncmp(line, "SigPnd:", 7) == 0)
			thread = strtoull(line + 7, NULL, 16);
		else if (strncmp(line, "ShdPnd:", 7) == 0)
			process = strtoull(line + 7, NULL, 16);
		else if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	}
	fclose(stream);
	return ((thread | process) & ~blocked) != 0;
}

void seccomp_look_at_waits(struct seccomp *seccomp)
{
	struct seccomp_wait wait;

	for (struct seccomp_wait *at = seccomp->waits, *next; at; at = next) {
		bool there = seccomp_waits(seccomp, at->id);

		next = at->next;
		if (there && !has_signal(at->tid))
			continue;
		sim_cancel(seccomp->front->sim, at->id);
		if (seccomp_take_wait(seccomp, at->id, &wait) && there)
			(void)seccomp_reply(seccomp, wait.id, -EINTR, 0);
	}
}

void seccomp_forget(struct seccomp *seccomp)
{
	struct seccomp_wait wait;
	struct seccomp_file *file;

	while (seccomp->waits)
		seccomp_take_wait(seccomp, seccomp->waits->id, &wait);
	while ((file = seccomp->files)) {
		seccomp->files = file->next;
		free(file);
	}
}
