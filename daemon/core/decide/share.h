/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shares of the adaptable leases of a GPU: weighted max-min. Each has as many CUs for each unit
 * of weight as there are, but none less than its base or more than it asked for.
 *
 * A lease that begins far below its share is promised a mask: the others shrink for it at once, and
 * it gets the mask when they have acknowledged, without grow-delay.
 */

#include "core/ledger/ledger.h"

/* An adaptable lease on one GPU. */
struct grower {
	struct lease *lease;
	struct partition *p;
	struct cuset target; /* the mask that it is to get; contains its base */
	struct cuset rebase; /* the base that it has then; within its present CUs */
	unsigned base, cap;  /* CUs that it has at least and may have at most */
	unsigned weight;     /* of its tenant */
	unsigned share;      /* CUs */
	bool restored;       /* target is the mask before it shrank */
};

/* All of CUs, for each unit of weight, in 2^-SHARE_LEVEL_BITS. */
#define SHARE_LEVEL_BITS 16U

unsigned share_weight(const struct arbiter *arbiter, const struct lease *lease);

/* Without a target and a share. */
struct grower share_grower(const struct arbiter *arbiter, struct lease *lease, struct partition *p);

/* Sets the share of each grower. */
void share_divide(struct grower *growers, size_t n, unsigned cus);

/* Gives a proposal whose claims are placed the state that it starts in, what it can borrow at once,
 * because its queues do not exist yet, and what it is promised. */
void share_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive);

/* Is a grower with this many CUs so far below its share that others shrink for it? */
bool share_is_starved(const struct grower *grower, unsigned cus);
