/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The waiting leases in the order in which they are granted. Later requests may overtake a
 * waiting lease, small ones a large one, LEASE_PASSES_MAX times. Then the GPUs that the lease
 * could use are barred: nothing is granted there to a lease that ranks behind it.
 */

#include "core/ledger/ledger.h"

/* Does lease a rank before lease b? Higher classes first, then lower ids. */
static inline bool queue_before(enum lease_class a_class, uint64_t a, enum lease_class b_class,
				uint64_t b)
{
	return a_class != b_class ? a_class > b_class : a < b;
}

unsigned queue_position(const struct arbiter *arbiter,
			const struct lease *lease); /* from 1; 0: not waiting */

void queue_add(struct arbiter *arbiter, struct lease *lease);
void queue_remove(struct arbiter *arbiter, struct lease *lease);

/* Stores the result of examining a waiting lease. candidates: GPUs that could ever take one of
 * its wants (bits); over_quota: only the quota of its own user stops it. */
void queue_judged(struct arbiter *arbiter, struct lease *lease, uint64_t candidates,
		  bool over_quota);

/* A lease was granted something on these GPUs (bits): counts it against the waiting leases that
 * rank before it, and wakes those of the same user, whose quota it may have used up. id: the
 * rank in its class, UINT64_MAX for the last. */
void queue_pass(struct arbiter *arbiter, const struct lease *granted, uint64_t gpus, uint64_t id);

/* Sets the barrier of every GPU: the first waiting lease that bars it. */
void queue_find_barriers(struct arbiter *arbiter);
