/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes that belong to the lease, have queues, and are not followed. */

#include <sys/types.h>

#include "libgpuarb/agent/members.h"

struct search {
	const char *sys, *proc;
	pid_t root; /* what gpuarbctl run became */
	const struct members *members;
	const struct agent_grant *grant;
};

/*
 * The first one, by its number; 0: there is none. A process belongs to the lease that descends
 * from the root, or was started with GPUARB_LEASE of this lease. One that left the crowd and is
 * dead is one for as long as the driver has its queues. -errno: it cannot be told.
 */
pid_t unfollowed_find(const struct search *search);
