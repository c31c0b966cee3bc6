/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What adaptable leases have beyond what they are charged.
 *
 * The ledger (gpu.h) is charged with claims: all CUs of fixed leases, those that an inactive
 * lease keeps, and of an adaptable lease its base. A claim is placed as if nothing were
 * borrowed; whoever borrows what a claim needs gives way, down to its base if need be, and the
 * claim is granted when the last of them has said so. So borrowing never makes a grant
 * impossible, only later.
 */

#include "core/change/arbiter.h"

static inline bool lease_borrows(const struct lease *lease)
{
	return lease->adaptable && lease->n_partitions > 0;
}

/* CUs of a GPU that this lease may not borrow: claims of others but the inactive ones, and
 * the engines of those that want to be alone. */
void lend_forbidden(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		    struct cuset *ret);

/* What other adaptable leases have there, or may still have. */
void lend_borrowed(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   struct cuset *ret);

/* The first lease that still has CUs which this one needs, and which on what GPU; NULL. */
const struct lease *lend_contested(const struct arbiter *arbiter, const struct lease *lease,
				   unsigned *ret_gpu, unsigned *ret_cus);

/* Who was killed is off the hardware by then, where the driver has its default time-out, after
 * which the GPU is reset; and the look that sees it. */
#define LEND_LET_GO_USEC (PREEMPTION_MSEC * UINT64_C(1000) + LOOK_WHILE_ENDING_USEC)

/* When the lease has let go of its CUs at the latest, if it never answers; UINT64_MAX: policy
 * does not go so far as to kill. */
uint64_t enforce_over_at(const struct arbiter *arbiter, const struct lease *lease,
			 uint64_t now_usec);

/* Of a proposal whose claims are placed: the state that it starts in, and what it borrows at
 * once, since its queues do not exist yet. */
void lend_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive);

/* Gives the partition this mask. What leaves it stays occupied. */
void lend_set_mask(const struct arbiter *arbiter, struct partition *partition,
		   const struct cuset *cus);

/* The masks of this lease on the GPU are others: queues of realtime leases there were taken
 * off the hardware for that. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu);

/* All CUs of the engines that the set has CUs of: what a lease that wants to be alone there
 * cannot share. */
void gpu_add_engines(const struct gpu *gpu, struct cuset *set);

/* What is borrowed of each GPU, counted anew. */
void lend_sum_up(struct arbiter *arbiter);
