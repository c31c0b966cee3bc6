/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarb-agent: follows one lease for all processes of a `gpuarbctl run --adaptable`. It tells each
 * of them what is granted, and acknowledges a generation when every queue of every one has it.
 */

#include "libgpuarb/agent/members.h"
#include "libgpuarb/agent/follow.h"

struct server {
	const char *sys, *dev, *proc;
	const char *environment; /* HSA_CU_MASK as the processes have it; NULL: none */
	bool sees_queues;        /* strays can be looked for */
	bool debug;

	struct follower *follower;
	struct snapshot now;
	struct agent_grant grant;
	uint64_t acknowledged;

	pid_t root;
	int listening, process; /* process: a pidfd of the root */
	int epoll;              /* of these two, and of the members of the crowd */
	struct members members;
	pid_t unfollowed; /* for which an acknowledgement was held back; 0: none */
};

/* fds: taken over. -errno. */
int server_new(uint64_t lease, int listening, int process, pid_t root, struct server **ret);
struct server *server_free(struct server *server); /* takes NULL, returns it */
DEFINE_CLEANUP(struct server *, server_free)

/* Reads the lease for the first time, waiting for a daemon that is away. The failure is noted in
 * the follower's handle. */
int server_begin(struct server *server);

/* Until the lease or the process ends: 0. */
int server_run(struct server *server);
