/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/unfollowed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuarb/lease/apply.h"

#define DEPTH 256 /* of ancestors */

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(FILE *, fclose)

static FILE *open_of(const struct search *search, pid_t pid, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/%s", search->proc, (int)pid, name);
	return fopen(path, "re");
}

/* 0: it is gone, or nobody's child. */
static pid_t parent_of(const struct search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_of(search, pid, "stat");
	char text[1024];
	const char *end;
	int parent = 0;

	/* After the name, which may have anything in it. */
	if (!file || !fgets(text, sizeof(text), file))
		return 0;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool descends(const struct search *search, pid_t pid)
{
	for (int i = 0; i < DEPTH && pid > 1; i++) {
		if (pid == search->root)
			return true;
		pid = parent_of(search, pid);
	}
	return false;
}

static bool started_with(const struct search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_of(search, pid, "environ");
	_cleanup_(free_charp) char *line = NULL;
	char wanted[48];
	size_t room = 0;

	snprintf(wanted, sizeof(wanted), "GPUARB_LEASE=%" PRIu64, search->grant->lease);
	while (file && getdelim(&line, &room, '\0', file) > 0)
		if (strcmp(line, wanted) == 0)
			return true;
	return false;
}

/* 1: it has compute queues on one of the lease's GPUs. */
static int has_queues(const struct search *search, pid_t pid)
{
	struct queue_list list;
	int r = queues_read(search->sys, pid, &list), found = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		for (size_t k = 0; k < search->grant->n_parts; k++)
			found |= list.queues[i].kfd_gpu_id == search->grant->parts[k].kfd_gpu_id;
	free(list.queues);
	return found;
}

/* One that was followed, and is dead: the driver has yet to tear its queues down. */
static bool left_behind(const struct search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_of(search, pid, "stat");

	return !file && members_had(search->members, pid);
}

static int is_unfollowed(const struct search *search, pid_t pid)
{
	if (pid <= 0 || members_has(search->members, pid))
		return 0;
	if (!descends(search, pid) && !started_with(search, pid) && !left_behind(search, pid))
		return 0;
	return has_queues(search, pid);
}

pid_t unfollowed_find(const struct search *search)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc", search->sys);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;

	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		int r = is_unfollowed(search, pid);

		if (r != 0)
			return r < 0 ? r : pid;
	}
	return 0;
}
