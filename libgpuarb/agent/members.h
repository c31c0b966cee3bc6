/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The processes that follow one lease, each by its connection, and how far each has come. */

#include <stddef.h>
#include <sys/types.h>

#include "libgpuarb/agent/message.h"

struct member {
	int fd;
	pid_t pid;
	uint64_t sent, answered; /* generations; 0: none yet */
	int error;               /* of the answer */
};

#define MEMBERS_GONE 1024U

struct members {
	struct member *members;
	size_t n;

	/* Those that left last: the driver may not have torn their queues down yet. */
	pid_t gone[MEMBERS_GONE];
	size_t left; /* how many did, in all */
};

void members_clear(struct members *members);

/* Takes the connection over, in place of another that this process had. -ENOMEM: it is closed. */
int members_join(struct members *members, int fd, pid_t pid);

/* Closes the connection of the member with that fd, or of that process. */
void members_leave(struct members *members, int fd);
void members_dead(struct members *members, pid_t pid);

/* Sends the grant to all that do not have it; those that have not answered the one before get the
 * newest when they have. */
void members_tell(struct members *members, const struct agent_grant *grant);

/* Reads what came from the member with that fd. 0, also where nothing did; -ECONNRESET: it is to
 * leave. */
int members_hear(struct members *members, int fd);

bool members_has(const struct members *members, pid_t pid);
bool members_had(const struct members *members, pid_t pid); /* not long ago */

/* Whether every queue of every member has that generation. */
bool members_follows(const struct members *members, uint64_t generation);
