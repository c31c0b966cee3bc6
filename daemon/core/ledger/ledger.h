/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that change the arbiter share; nobody outside core needs it. */

#include "core/change/arbiter.h"

/* A process whose lease is settled. */
#define KNOWN_UNSEEN UINT64_MAX /* it was bound, and died before it was seen */

struct known_process {
	pid_t pid;
	uint64_t start_time; /* 0: it was gone when first seen; or KNOWN_UNSEEN */
	uint64_t lease;      /* 0: none */
	bool own;            /* it is bound, or was started by one that is */
};

/* Something of these GPUs (as bits) may be had now: arbiter_plan_next() has to look.
 * UINT64_MAX: and at leases that wait for other GPUs as well. */
void ledger_look_again(struct arbiter *arbiter, uint64_t gpus);

/* The same, and masks may grow there. */
void ledger_wake(struct arbiter *arbiter, uint64_t gpus);

/* A lease enters and leaves the queue of those that wait: arbiter_commit(), recover.c. */
void queue_add(struct arbiter *arbiter, struct lease *lease);
void queue_remove(struct arbiter *arbiter, struct lease *lease);

/* Finds anew which GPUs could ever take a want of a waiting lease: recover.c, before it is
 * added. */
void queue_candidates(const struct arbiter *arbiter, struct lease *lease);

/* What was found out about a waiting lease. over_quota: its own quota is what stops it. */
void queue_judged(struct arbiter *arbiter, struct lease *lease, uint64_t candidates,
		  bool over_quota);

/* The GPUs are others: candidates and barriers of all that wait. */
void queue_gpus_changed(struct arbiter *arbiter);

/* What the lease was granted on these GPUs (as bits) has passed the waiting leases that rank
 * before it, and may have used up a quota that they count on; id: its place in its class,
 * UINT64_MAX for the last. */
void queue_pass(struct arbiter *arbiter, const struct lease *lease, uint64_t gpus, uint64_t id);

/* Does a lease of this class and place rank before another? */
static inline bool queue_before(enum lease_class a_class, uint64_t a, enum lease_class b_class,
				uint64_t b)
{
	return a_class != b_class ? a_class > b_class : a < b;
}

/* The GPU that this name or index stood for and that is absent; NULL. */
const struct gpu *ledger_find_absent(const struct arbiter *arbiter, const char *gpu);

/* What of these GPUs (as bits) is free may be borrowed, after a while. */
void ledger_grow(struct arbiter *arbiter, uint64_t gpus);

/* The holder has followed: what left its masks is free. */
void ledger_follow(struct arbiter *arbiter, struct lease *lease);

/* Cut where a character begins: it goes over the bus, which wants UTF-8. */
void lease_set_reason(struct lease *lease, const char *reason);

/* Where the lease with this id stands among arbiter->leases, or would. */
size_t ledger_position(const struct arbiter *arbiter, uint64_t id);

void ledger_touch(struct arbiter *arbiter, struct lease *lease, unsigned touch);
void ledger_charge(struct arbiter *arbiter, const struct lease *lease);

/* Leaves the CUs of partitions that share: ledger_recount_shared() once the lease has
 * gone, or has others. */
void ledger_discharge(struct arbiter *arbiter, const struct lease *lease);
void ledger_recount_shared(struct arbiter *arbiter, const struct lease *gone);

/* Puts a lease where its id belongs; there has to be room. next_id is above it then. */
void ledger_insert(struct arbiter *arbiter, struct lease *lease);

/* Takes the lease out; it stays on the touched list until the daemon takes it. */
void ledger_remove(struct arbiter *arbiter, struct lease *lease);
