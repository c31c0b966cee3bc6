/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What adaptable leases may borrow beyond what they are charged.
 *
 * The ledger (gpu.h) is charged with claims: all CUs of fixed leases, those that an inactive
 * lease keeps, and the base of each adaptable lease. A claim is placed as if nothing were
 * borrowed. The borrowers of its CUs shrink, down to their base if necessary, and the lease is
 * granted when the last of them has acknowledged. So borrowing delays a grant, but never
 * prevents it.
 */

#include "core/ledger/ledger.h"

/* The CUs that no other lease may have while the lease of this partition is active. */
void borrow_needed(const struct arbiter *arbiter, const struct partition *p, struct cuset *ret);

enum borrow {
	BORROW_CLAIMED =
		1
		<< 0, /* by leases that are not inactive, with the engines of those that exclude others */
	BORROW_OCCUPIED = 1 << 1, /* by adaptable leases */
	BORROW_PROMISED = 1 << 2, /* to adaptable leases */
	BORROW_LATE = 1 << 3,     /* by adaptable leases that do not return CUs in time */
};

/* CUs of a GPU that other leases than self (NULL: all leases) have in one of these ways. */
void borrow_others(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   unsigned what, struct cuset *ret);

/* The same of all leases, by GPU: one walk. */
void borrow_all(const struct arbiter *arbiter, unsigned what,
		struct cuset ret[static REQUEST_WANTS]);

/* How many CUs the borrower, another lease, still occupies of those that the lease needs, on the first GPU where
 * there are any. An exclusive lease needs all of them until the borrower has paused. 0: it borrows none of them. ret_gpu
 * may be NULL. */
unsigned borrow_overlap(const struct arbiter *arbiter, const struct lease *lease,
			const struct lease *borrower, unsigned *ret_gpu);

/* The first borrower that still occupies CUs which this lease needs; NULL. */
const struct lease *borrow_contested(const struct arbiter *arbiter, const struct lease *lease);

/* Does the partition need CUs of a lease that does not return them in time? An exclusive one needs the whole GPU. */
bool borrow_waits_in_vain(const struct arbiter *arbiter, const struct partition *p);

/* Counts anew which CUs of each GPU are borrowed. */
void borrow_sum_up(struct arbiter *arbiter);

/* ledger_copy() in which these next versions have replaced their leases. -ENOMEM. */
int borrow_copy_with(const struct arbiter *arbiter, struct lease *const *next, size_t n,
		     struct arbiter *ret);

/* Finds what is left of the CUs of an adaptable lease without those that other leases claim (claims:
 * of all leases): a rectangle that contains the base. false: they claim none of them. */
bool borrow_shrink(const struct gpu *gpu, const struct cuset *base, const struct cuset *cus,
		   const struct cuset *claims, struct cuset *ret);

/* Extends the mask of a partition, which is its base, by CUs that no other lease claims or occupies
 * and that are promised to none; where a quota bounds them, by none but CUs that it occupies. now: the partition that is
 * resized, whose CUs it keeps as far as it can. */
void borrow_free(const struct arbiter *arbiter, const struct lease *proposal, struct partition *p,
		 const struct partition *now);

/* Gives a lease what it was resized to, as a new generation: masks, or bases with free CUs around them. */
void borrow_finish_resize(const struct arbiter *arbiter, struct lease *lease);

/* Can the lease be granted the mask that is promised? */
bool borrow_may_join(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *p);
