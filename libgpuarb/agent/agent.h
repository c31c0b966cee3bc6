/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The thread behind gpuarb_lease_start_agent(). It has a connection of its own and never touches
 * the lease's handle; what it shares with the program's thread is here, under the lock.
 */

#include <pthread.h>

#include "libgpuarb/lease/apply.h"
#include "libgpuarb/agent/follow.h"

#define AGENT_VARIABLES 3U

struct agent {
	pid_t pid; /* of the process that has the thread: a forked child has not */
	pthread_t thread;
	int stop; /* an eventfd */

	/* The thread's alone. */
	struct follower *follower;
	uint64_t acknowledged; /* the highest generation that the daemon took */
	uint64_t pause;        /* between two looks for queues, in microseconds */

	pthread_mutex_t lock; /* of all that follows, and of the lease's book */
	struct mask_cache *mask_cache;
	struct apply seat; /* where queues and the driver are, and the environment: */
	char *values[AGENT_VARIABLES];
	struct snapshot now; /* what the daemon said last */
	uint64_t applied;    /* the highest generation that all queues have */
	int error;           /* why that is not the present one; 0: it is */
	char *sentence;      /* with it */
};

/* seat: sys, dev, pid, driver, get and userdata count. As gpuarb_lease_start_agent(). */
int agent_start(struct gpuarb_lease *lease, const struct apply *seat);

/* Ends the thread and takes leave of the lease. Takes NULL. */
void agent_stop(struct agent *agent);

/* What keeps it from following, noted in gpuarb; 0: nothing. */
int agent_error(struct agent *agent, struct gpuarb *gpuarb);

bool agent_has_applied(struct agent *agent, uint64_t generation);

/* For the program's thread: takes the lock and has *ret say what the agent knows, with failures
 * noted in gpuarb; and gives the lock back. */
void agent_enter(struct agent *agent, struct gpuarb *gpuarb, struct apply *ret);
void agent_leave(struct agent *agent);

/* All queues have the present masks: what failed before is forgotten. Within the lock. */
void agent_applied(struct agent *agent);
