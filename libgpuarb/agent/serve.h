/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarb-agent: follows one lease for all processes of a `gpuarbctl run --adaptable`. It sends them
 * each grant, and acknowledges a generation when every queue of every process has its masks.
 */

#include "libgpuarb/agent/follower.h"
#include "libgpuarb/agent/members.h"

struct server {
	const char *sys, *dev, *proc;
	const char *environment; /* HSA_CU_MASK of the processes; NULL: none */
	bool queues_visible;     /* so unfollowed processes can be found */
	bool debug;

	struct follower *follower;
	struct lease_copy now; /* the last state that the daemon reported */
	struct agent_grant grant;
	uint64_t acknowledged;

	pid_t root;             /* the process that `gpuarbctl run` became */
	int listening, process; /* a socket; a pidfd of the root */
	int epoll;              /* of these two and of the fds of the members */
	struct members members;
	pid_t unfollowed; /* the process that prevents an acknowledgement; 0: none */
};

/* Takes over both fds. -errno. */
int server_new(uint64_t lease, int listening, int process, pid_t root, struct server **ret);
struct server *server_free(struct server *server); /* takes NULL, returns NULL */
DEFINE_CLEANUP(struct server *, server_free)

/* Reads the lease for the first time, and waits for a daemon that is restarting. A failure is noted
 * in the handle of the follower. */
int server_begin(struct server *server);

/* Runs until the lease or the root process ends. 0. */
int server_run(struct server *server);
