/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/members.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/util/grow.h"
#include "libgpuarb/connection/basics.h"
#include "libgpuarb/lease/kfd-sysfs.h"

#define ANCESTORS_MAX 256

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(FILE *, fclose)

static void drop(struct members *members, size_t i)
{
	close(members->members[i].fd);
	members->gone[members->n_gone++ % MEMBERS_GONE] = members->members[i].pid;
	members->members[i] = members->members[--members->n];
}

void members_clear(struct members *members)
{
	while (members->n > 0)
		drop(members, members->n - 1);
	free(members->members);
	members->members = NULL;
}

static struct member *find(const struct members *members, int fd)
{
	for (size_t i = 0; i < members->n; i++)
		if (members->members[i].fd == fd)
			return &members->members[i];
	return NULL;
}

static void remove_process(struct members *members, pid_t pid)
{
	for (size_t i = members->n; i-- > 0;)
		if (members->members[i].pid == pid)
			drop(members, i);
}

void members_remove(struct members *members, int fd)
{
	struct member *member = find(members, fd);

	if (member)
		drop(members, (size_t)(member - members->members));
}

int members_add(struct members *members, int fd, pid_t pid)
{
	struct member *member;

	remove_process(members, pid);
	member = grow(&members->members, &members->n, sizeof(*member));
	if (!member) {
		close(fd);
		return -ENOMEM;
	}
	*member = (struct member){ .fd = fd, .pid = pid };
	return 0;
}

void members_send(struct members *members, const struct agent_grant *grant)
{
	for (size_t i = 0; i < members->n; i++) {
		struct member *member = &members->members[i];

		if (member->sent == grant->generation || member->sent != member->answered)
			continue;
		if (send(member->fd, grant, agent_grant_size(grant), MSG_DONTWAIT | MSG_NOSIGNAL) >=
		    0)
			member->sent = grant->generation;
	}
}

int members_receive(struct members *members, int fd)
{
	struct member *member = find(members, fd);
	struct agent_answer answer;
	ssize_t size;

	if (!member)
		return 0;
	size = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (size != (ssize_t)sizeof(answer) || answer.version != AGENT_VERSION ||
	    answer.generation > member->sent)
		return -ECONNRESET;
	if (answer.generation < member->sent)
		return 0; /* it repeated the answer to an older grant */
	member->answered = answer.generation;
	member->error = answer.error;
	return 0;
}

bool members_has(const struct members *members, pid_t pid)
{
	for (size_t i = 0; i < members->n; i++)
		if (members->members[i].pid == pid)
			return true;
	return false;
}

bool members_had(const struct members *members, pid_t pid)
{
	for (size_t i = 0; i < MEMBERS_GONE && i < members->n_gone; i++)
		if (members->gone[i] == pid)
			return true;
	return false;
}

bool members_follow(const struct members *members, uint64_t generation)
{
	for (size_t i = 0; i < members->n; i++)
		if (members->members[i].answered != generation || members->members[i].error < 0)
			return false;
	return true;
}

static FILE *open_file(const struct unfollowed_search *search, pid_t pid, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/%s", search->proc, (int)pid, name);
	return fopen(path, "re");
}

/* 0: the process is gone, or has no parent. */
static pid_t parent_of(const struct unfollowed_search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_file(search, pid, "stat");
	char text[1024];
	const char *end;
	int parent = 0;

	/* The fields follow the command name in parentheses, which may contain any character. */
	if (!file || !fgets(text, sizeof(text), file))
		return 0;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool descends(const struct unfollowed_search *search, pid_t pid)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == search->root)
			return true;
		pid = parent_of(search, pid);
	}
	return false;
}

static bool started_with(const struct unfollowed_search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_file(search, pid, "environ");
	_cleanup_(freep) char *line = NULL;
	char wanted[48];
	size_t room = 0;

	snprintf(wanted, sizeof(wanted), "GPUARB_LEASE=%" PRIu64, search->grant->lease);
	while (file && getdelim(&line, &room, '\0', file) > 0)
		if (strcmp(line, wanted) == 0)
			return true;
	return false;
}

/* 1: the process has compute queues on a GPU of the lease. 0: it has not. */
static int has_queues(const struct unfollowed_search *search, pid_t pid)
{
	struct queue_list list;
	int r = queues_read(search->sys, pid, &list), found = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		for (size_t k = 0; k < search->grant->n_partitions; k++)
			found |= list.queues[i].kfd_gpu_id ==
				 search->grant->partitions[k].kfd_gpu_id;
	free(list.queues);
	return found;
}

/* A member that has died, and whose queues the driver has not destroyed yet. */
static bool is_dead_member(const struct unfollowed_search *search, pid_t pid)
{
	_cleanup_(fclosep) FILE *file = open_file(search, pid, "stat");

	return !file && members_had(search->members, pid);
}

static int is_unfollowed(const struct unfollowed_search *search, pid_t pid)
{
	if (pid <= 0 || members_has(search->members, pid))
		return 0;
	if (!descends(search, pid) && !started_with(search, pid) && !is_dead_member(search, pid))
		return 0;
	return has_queues(search, pid);
}

pid_t members_find_unfollowed(const struct unfollowed_search *search)
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
