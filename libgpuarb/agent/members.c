/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/members.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void drop(struct crowd *crowd, size_t i)
{
	close(crowd->members[i].fd);
	crowd->gone[crowd->left++ % CROWD_GONE] = crowd->members[i].pid;
	crowd->members[i] = crowd->members[--crowd->n];
}

void crowd_clear(struct crowd *crowd)
{
	while (crowd->n > 0)
		drop(crowd, crowd->n - 1);
	free(crowd->members);
	crowd->members = NULL;
}

static struct member *find(const struct crowd *crowd, int fd)
{
	for (size_t i = 0; i < crowd->n; i++)
		if (crowd->members[i].fd == fd)
			return &crowd->members[i];
	return NULL;
}

void crowd_dead(struct crowd *crowd, pid_t pid)
{
	for (size_t i = crowd->n; i-- > 0;)
		if (crowd->members[i].pid == pid)
			drop(crowd, i);
}

void crowd_leave(struct crowd *crowd, int fd)
{
	struct member *member = find(crowd, fd);

	if (member)
		drop(crowd, (size_t)(member - crowd->members));
}

int crowd_join(struct crowd *crowd, int fd, pid_t pid)
{
	struct member *members = realloc(crowd->members, (crowd->n + 1) * sizeof(*members));

	if (!members) {
		close(fd);
		return -ENOMEM;
	}
	crowd->members = members;
	crowd_dead(crowd, pid);
	crowd->members[crowd->n++] = (struct member){ .fd = fd, .pid = pid };
	return 0;
}

void crowd_tell(struct crowd *crowd, const struct agent_grant *grant)
{
	for (size_t i = 0; i < crowd->n; i++) {
		struct member *member = &crowd->members[i];

		if (member->sent == grant->generation || member->sent != member->answered)
			continue;
		if (send(member->fd, grant, agent_grant_size(grant), MSG_DONTWAIT | MSG_NOSIGNAL) >=
		    0)
			member->sent = grant->generation;
	}
}

int crowd_hear(struct crowd *crowd, int fd)
{
	struct member *member = find(crowd, fd);
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

bool crowd_has(const struct crowd *crowd, pid_t pid)
{
	for (size_t i = 0; i < crowd->n; i++)
		if (crowd->members[i].pid == pid)
			return true;
	return false;
}

bool crowd_had(const struct crowd *crowd, pid_t pid)
{
	for (size_t i = 0; i < CROWD_GONE && i < crowd->left; i++)
		if (crowd->gone[i] == pid)
			return true;
	return false;
}

bool crowd_follows(const struct crowd *crowd, uint64_t generation)
{
	for (size_t i = 0; i < crowd->n; i++)
		if (crowd->members[i].answered < generation || crowd->members[i].error < 0)
			return false;
	return true;
}
