/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/base.h"

#define FILES FRONT_SCRATCH "/files"
#define DEVICE FILES "/dev/kfd"
#define PAGE 4096U

/* generation_id goes up when a GPU comes or goes: all below topology/ may be other then. */
static int write_topology(struct seccomp *seccomp)
{
	_cleanup_(freep) char *generation = NULL;
	struct tree *tree = seccomp->front->tree;
	size_t size;
	int r;

	r = tree_read(tree, "kfd/topology/generation_id", &generation, &size);
	if (r < 0)
		return r;
	if (seccomp->generation && strcmp(generation, seccomp->generation) == 0)
		return 0;
	r = mirror_tree(tree, "", FILES, DEVICE);
	if (r < 0)
		return r;
	free(seccomp->generation);
	seccomp->generation = TAKE_PTR(generation);
	return 0;
}

int seccomp_write_processes(struct seccomp *seccomp)
{
	int r = write_topology(seccomp);

	return r < 0 ? r : mirror_tree(seccomp->front->tree, "kfd/proc", FILES "/kfd/proc", DEVICE);
}

int seccomp_write_files(struct seccomp *seccomp)
{
	int r = seccomp_write_processes(seccomp);

	return r < 0 ? r : mirror_tree(seccomp->front->tree, "debug", FILES "/debug", DEVICE);
}

/* Page by page: the one behind its end may not be there. */
void seccomp_path(const struct seccomp *seccomp, const struct seccomp_call *call,
		  char path[PATH_MAX])
{
	const struct sim_world *world = &seccomp->front->world;
	size_t done = 0, n = PAGE - call->address % PAGE;

	memset(path, 0, PATH_MAX);
	while (done < PATH_MAX - 1 && !memchr(path, '\0', done)) {
		n = n < PATH_MAX - 1 - done ? n : PATH_MAX - 1 - done;
		if (world->read(world->userdata, call->tid, call->address + done, path + done, n) <
		    0)
			return;
		done += n;
		n = PAGE;
	}
}

/* Every path of the emulator's has "kfd" in it, or begins where that is so: returns which of
 * the two it is, or NULL. */
static const char *is_ours(const struct seccomp_call *call, const char *path, char base[PATH_MAX])
{
	char link[64];
	ssize_t n;

	if (strstr(path, "kfd"))
		return path;
	if (*path == '/')
		return NULL;
	if (call->fd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", call->tid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", call->tid, call->fd);
	n = readlink(link, base, PATH_MAX - 1);
	base[n > 0 ? n : 0] = '\0';
	return strstr(base, "kfd") ? base : NULL;
}

static int write_now(struct seccomp *seccomp)
{
	front_bury(seccomp->front);
	sim_work(seccomp->front->sim, front_now());
	return seccomp_write_files(seccomp);
}

/* open("/dev/kfd") is what makes a process the driver's, if it can be opened at all. */
static int note_open(struct seccomp *seccomp, const struct seccomp_call *call)
{
	struct front *front = seccomp->front;
	struct front_client *client, *first = front->clients;

	if (front_open(front, call->tid, &client) < 0)
		return 0;
	front_close(front, client);
	return front->clients == first ? 0 : seccomp_write_processes(seccomp);
}

int seccomp_open(struct seccomp *seccomp, const struct seccomp_call *call, const char *path)
{
	const char *ours;
	char base[PATH_MAX];
	int r;

	ours = is_ours(call, path, base);
	if (!seccomp_waits(seccomp, call->id) || !ours)
		r = 0;
	else if (strcmp(ours, "/dev/kfd") == 0)
		r = note_open(seccomp, call);
	else if (strstr(ours, "/topology/"))
		r = write_topology(seccomp);
	else
		r = write_now(seccomp);
	if (r < 0 || seccomp_open_whole(seccomp, call, path, &r))
		return r;
	return seccomp_reply(seccomp, call->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}
