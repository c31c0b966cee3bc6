/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/members.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void drop(struct members *members, size_t i)
{
	close(members->members[i].fd);
	members->gone[members->left++ % MEMBERS_GONE] = members->members[i].pid;
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

void members_dead(struct members *members, pid_t pid)
{
	for (size_t i = members->n; i-- > 0;)
		if (members->members[i].pid == pid)
			drop(members, i);
}

void members_leave(struct members *members, int fd)
{
	struct member *member = find(members, fd);

	if (member)
		drop(members, (size_t)(member - members->members));
}

int members_join(struct members *members, int fd, pid_t pid)
{
	struct member *list = realloc(members->members, (members->n + 1) * sizeof(*list));

	if (!list) {
		close(fd);
		return -ENOMEM;
	}
	members->members = list;
	members_dead(members, pid);
	members->members[members->n++] = (struct member){ .fd = fd, .pid = pid };
	return 0;
}

void members_tell(struct members *members, const struct agent_grant *grant)
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

int members_hear(struct members *members, int fd)
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
		return 0; /* it tried again what is old by now */
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
	for (size_t i = 0; i < MEMBERS_GONE && i < members->left; i++)
		if (members->gone[i] == pid)
			return true;
	return false;
}

bool members_follows(const struct members *members, uint64_t generation)
{
	for (size_t i = 0; i < members->n; i++)
		if (members->members[i].answered < generation || members->members[i].error < 0)
			return false;
	return true;
}
