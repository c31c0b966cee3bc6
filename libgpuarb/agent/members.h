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

#define CROWD_GONE 1024U

struct crowd {
	struct member *members;
	size_t n;

	/* Those that left last: the driver may not have torn their queues down yet. */
	pid_t gone[CROWD_GONE];
	size_t left; /* how many did, in all */
};

void crowd_clear(struct crowd *crowd);

/* Takes the connection over, in place of another that this process had. -ENOMEM: it is closed. */
int crowd_join(struct crowd *crowd, int fd, pid_t pid);

/* Closes the connection of the member with that fd, or of that process. */
void crowd_leave(struct crowd *crowd, int fd);
void crowd_dead(struct crowd *crowd, pid_t pid);

/* Sends the grant to all that do not have it; those that have not answered the one before get the
 * newest when they have. */
void crowd_tell(struct crowd *crowd, const struct agent_grant *grant);

/* Reads what came from the member with that fd. 0, also where nothing did; -ECONNRESET: it is to
 * leave. */
int crowd_hear(struct crowd *crowd, int fd);

bool crowd_has(const struct crowd *crowd, pid_t pid);
bool crowd_had(const struct crowd *crowd, pid_t pid); /* not long ago */

/* Whether every queue of every member has that generation. */
bool crowd_follows(const struct crowd *crowd, uint64_t generation);
