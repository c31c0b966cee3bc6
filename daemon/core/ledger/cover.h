/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The CUs that the queues of each process cover, as the last scan of the hardware queue descriptors
 * showed them: arbiter->covers, replaced by every such scan.
 */

#include "core/ledger/ledger.h"

/* The compute queues of one process on one GPU. */
struct cover {
	unsigned gpu; /* index */
	NAMED_PROCESS;
	uint64_t lease; /* of the process, with a partition on this GPU; 0: none */
	bool unknown;   /* no scan has shown the process: it is new, or was gone before */
	unsigned queues;
	struct cuset cus; /* of all its queues */
	struct cuset
		outside; /* those that no lease of the process has: without a lease, all of cus */
};

/* May the CUs in cover->outside be granted to no other lease? Those of a lease may once they are drift:
 * a new queue gets its mask a moment after it appears. */
bool cover_is_outside(const struct arbiter *arbiter, const struct cover *cover);

/* Does cover->outside contain CUs of this lease, or for a realtime lease that shares no shader engine CUs
 * of its engines? */
bool cover_disturbs(const struct cover *cover, const struct lease *lease);

/* The lease of the highest class in use that it disturbs so; NULL: none, or its CUs may be granted. */
const struct lease *cover_over(const struct arbiter *arbiter, const struct cover *cover);

/* Sets gpu->outside anew. Where some may have become free, waiting leases are examined again. */
void cover_sum_up(struct arbiter *arbiter);

/* Removes the covers of processes that no scan shows any more: without a process that uses a GPU, the
 * descriptors are not read again. */
void cover_forget_gone(struct arbiter *arbiter);

/* Is the process, which was attributed to a lease (0: none), one of this lease, which it does not disturb? Another
 * process may have the pid by now: it counts with the user alone, except where root bound the process. */
bool cover_is_own(const struct arbiter *arbiter, const struct lease *self, uint64_t lease,
		  pid_t pid, uid_t uid);

/* The CUs of a GPU that queues of others than self cover outside their lease. */
void cover_outside(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   struct cuset *ret);

/* Names in the refusal the processes and leases of these queues; over: only of queues that cover one of
 * these CUs so. */
void cover_name(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		const struct cuset *over, struct refusal *refusal);
