/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The waiting leases in the order in which they are granted: higher classes first, and in a class
 * the users take turns. Later requests of other users may overtake a waiting lease, small ones a
 * large one, LEASE_PASSES_MAX times. Then as many GPUs as it has wants are barred, of those that it
 * could use: nothing is granted there to a lease that ranks behind it. A lease that leases of its own user keep out bars
 * no GPU. A GPU is barred for max-wait of the tenant at a stretch. Unless the lease is granted, it is
 * open afterwards for three times as long as it was barred.
 */

#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

/* Does lease a rank before lease b? */
static inline bool queue_before(const struct rank *a, const struct rank *b)
{
	if (a->class != b->class)
		return a->class > b->class;
	return a->turn != b->turn ? a->turn < b->turn : a->id < b->id;
}

static inline struct rank lease_rank(const struct lease *lease)
{
	return (struct rank){ lease->class, lease->wait.turn, lease->id };
}

/* The turn of a request of this user that arrives now: after its own waiting leases of the class, and
 * not before the first turn that waits. */
uint64_t queue_next_turn(const struct arbiter *arbiter, enum lease_class lease_class, uid_t uid);

unsigned queue_position(const struct arbiter *arbiter,
			const struct lease *lease); /* from 1; 0: not waiting */

/* How many waiting leases rank before this one. */
size_t queue_count_before(const struct arbiter *arbiter, const struct rank *rank);

void queue_add(struct arbiter *arbiter, struct lease *lease);
void queue_remove(struct arbiter *arbiter, struct lease *lease);

/* Stores the result of examining a waiting lease. candidates: GPUs that could ever take one of
 * its wants (bits); over_quota: only the quota of its own user stops it. */
void queue_judged(struct arbiter *arbiter, struct lease *lease, uint64_t candidates,
		  bool over_quota, bool may_bar);

/* Wakes the waiting leases of the same user: the granted one, or one that got more CUs, may keep them out,
 * and they may exceed the quota now; then they bar no GPU. */
void queue_wake_own(struct arbiter *arbiter, const struct lease *granted);

/* A lease was granted something on these GPUs (bits): counts it against the waiting leases of other
 * users that rank before it, and wakes those of the same user: it may be in their way, and have used
 * up their quota. */
void queue_pass(struct arbiter *arbiter, const struct lease *granted, uint64_t gpus,
		const struct rank *rank);

/* Sets the barrier of every GPU: the first waiting lease that bars it. */
void queue_find_barriers(struct arbiter *arbiter);

/* The waiting lease is granted: what it barred may be barred for another one, as long again. */
void queue_served(struct arbiter *arbiter, const struct lease *lease);

/* Sets the beginning of each barrier that has none yet, and opens the GPUs that have been barred for max-wait,
 * and those whose barrier is gone without a grant, but none of the latter while waiting leases are left to
 * examine. Ends the time that they stay open. queue_next_limit(): when it has to be called next; UINT64_MAX: not
 * before something changes. */
void queue_time_barriers(struct arbiter *arbiter, uint64_t now_usec);
uint64_t queue_next_limit(const struct arbiter *arbiter);
