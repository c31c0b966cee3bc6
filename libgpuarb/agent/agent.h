/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The thread behind gpuarb_lease_start_agent(). It follows the lease on a connection of its own and
 * does not touch the handle of the program. A queue that the program creates has its mask, priority
 * and turn before ioctl() returns (libgpuarb/lease/kfd-ioctl.h). Queues that are created in another
 * way are found with the next change of the lease, and where ioctl() is not replaced by polling.
 */

#include <pthread.h>

#include "libgpuarb/agent/follower.h"
#include "libgpuarb/lease/apply.h"
#include "libgpuarb/lease/lease-handle.h"

#define AGENT_VARIABLES 3U

struct agent {
	pid_t pid; /* the process that has the thread; a forked child has none */
	pthread_t thread;
	int stop; /* an eventfd */

	/* Used by the thread alone. */
	struct follower *follower;
	uint64_t poll_usec; /* when to search for new queues again; UINT64_MAX: not */

	/* With kfd_lock(), as the mask cache. */
	struct agent *next;            /* of this process */
	struct mask_cache *mask_cache; /* of the lease */
	struct apply process;          /* the process to mask */
	char *values[AGENT_VARIABLES]; /* a copy of its environment */
	struct lease_copy now;         /* the last state that the daemon reported */
	uint64_t applied;              /* the last generation that all queues have */
	int error;                     /* why they do not have the present one; 0: they do */
	char *sentence;                /* with error */
};

/* Of *process the members below «The process» count. Failures as of gpuarb_lease_start_agent(). */
int agent_start(struct gpuarb_lease *lease, const struct apply *process);
