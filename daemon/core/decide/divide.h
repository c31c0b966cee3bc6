/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How the CUs of a GPU are divided among its adaptable leases: all are laid out together (layout.h), as
 * close as possible to the shares (share.h). Where that is not clearly better for the worst-off leases, no
 * lease loses CUs, and what is free is given away. So masks come to rest.
 *
 * A lease has its base in its target, and in the mask that it has now: its base moves there at once, and
 * it shrinks and grows around it. Where that leaves it too small, its base may be partly on idle CUs: it moves
 * together with the growth, and until then no other lease is promised the CUs of the base that it has.
 */

#include "core/decide/share.h"

/* The CUs of one GPU that are divided. */
struct division {
	const struct arbiter *arbiter;
	const struct gpu *gpu;
	struct cuset pool;      /* free CUs, and those that the growers have */
	struct grower *growers; /* owned; n: a proposal is among them */
	size_t n;

	struct cuset kept; /* by floors: no base moves there */
	struct cuset left; /* of the pool: in no target; used by divide() */
};

/* Finds the shares, the targets and the bases of the adaptable leases of a GPU. proposal: a lease to be
 * granted; NULL. settled: leases that have not acknowledged everything keep their masks, and what they have
 * not returned. -ENOMEM. */
int divide(const struct arbiter *arbiter, unsigned gpu, struct lease *proposal, bool settled,
	   struct division *ret);
void division_done(struct division *division);

/* Gives a proposal whose claims are placed the state that it starts in, what it can borrow at once,
 * because its queues do not exist yet, and what it is promised. */
void divide_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive);

/* Gives the partition of an adaptable lease the mask that it begins with: all of the promised mask if the lease
 * waits for CUs in any case, or what is free of it: it gets the rest when others have returned it. */
void divide_begin(const struct arbiter *arbiter, const struct lease *lease, struct partition *p,
		  bool waits);
