/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The processes of one lease: members, which follow it through a connection, and unfollowed
 * processes, which have queues and no connection. */

#include <stddef.h>
#include <sys/types.h>

#include "libgpuarb/agent/link.h"

struct member {
	int fd;
	pid_t pid;
	uint64_t sent, answered; /* generations; 0: none yet */
	int error;               /* in the last answer */
};

#define MEMBERS_GONE 1024U

struct members {
	struct member *members;
	size_t n;

	/* A ring of the last processes that left: the driver may still have their queues. */
	pid_t gone[MEMBERS_GONE];
	size_t n_gone; /* how many have left, in total */
};

void members_clear(struct members *members);

/* Adds a member and takes its fd over; replaces an earlier connection of the process. -ENOMEM: the
 * fd is closed. */
int members_add(struct members *members, int fd, pid_t pid);

/* Closes and removes the member with this fd. */
void members_remove(struct members *members, int fd);

/* Sends the grant to every member that does not have it and has answered the previous one. */
void members_send(struct members *members, const struct agent_grant *grant);

/* Reads an answer of the member with this fd. 0: read, or nothing came. -ECONNRESET: remove it. */
int members_receive(struct members *members, int fd);

bool members_has(const struct members *members, pid_t pid);
bool members_had(const struct members *members, pid_t pid); /* one of the last that left */

/* Whether every queue of every member has the masks of this generation. */
bool members_follow(const struct members *members, uint64_t generation);

struct unfollowed_search {
	const char *sys, *proc;
	pid_t root; /* the process that `gpuarbctl run` became */
	const struct members *members;
	const struct agent_grant *grant;
};

/*
 * Returns the first unfollowed process, or 0. A process belongs to the lease if it descends from
 * the root, or if GPUARB_LEASE in its environment has the number of the lease. A member that left
 * and has died counts as long as the driver has queues of it. -errno: unknown.
 */
pid_t members_find_unfollowed(const struct unfollowed_search *search);
