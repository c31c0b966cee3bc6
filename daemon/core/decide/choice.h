/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Chooses among GPUs that fit, by what the machine would be like with the request on each of them: what
 * the request has after borrowing, and what others lose. CUs are divided as in share.h, as if masks had
 * no shape.
 *
 * Users share the machine as they share a GPU. Where policy divides CUs by user, a GPU comes last if a
 * user would lose CUs there, and then have less on all GPUs, for each unit of weight, than the user of
 * the request. Then comes the GPU where the worst-off of these users has most on all GPUs, so that a user with
 * little does not begin beside one lease of a user with much if it gets more beside many. What a user has
 * beyond each other one does not count: only the next lines decide for a user alone.
 *
 * The level of a GPU is that of its worst-off adaptable lease, the request included: CUs for each unit of
 * weight, of a lease that has less than it asked for. A share counts as the part of the largest GPU that it is,
 * so it is taken of an idle GPU that is a little smaller than a busy one.
 * Nobody loses on the other GPUs, so the GPU with the highest level is also the best one for the
 * worst-off of the machine. Levels that differ by less than an eighth are equal. Then comes the GPU
 * where the fewest leases shrink or pause; then for an adaptable request the one with the fewest
 * neighbours, on it and on its card, and for others the one with the fewest free CUs, which keeps large
 * requests possible.
 */

#include "core/decide/admit.h"
#include "core/decide/share.h"
#include "core/ledger/lease.h"

/* What comes of a want on a GPU. */
struct prospect {
	unsigned worth; /* of CUs that are not borrowed, by how many were asked for; 0: a lease that
			 * does not return CUs in time has some of them */
	unsigned cus;   /* of the request, with those that it borrows */
	uint64_t
		level; /* in 2^-SHARE_LEVEL_BITS; UINT64_MAX: each lease has about what it asked for */
	unsigned
		changes; /* adaptable leases that shrink or pause; 1 more: it shares CUs of others */
	unsigned others; /* adaptable leases of other users that shrink or pause */
	bool robs;       /* one of these users would have less than the user of the request */
	uint64_t users;  /* level of the worst-off of these users and that of the request */
};

/* What a user holds under a tenant, on all GPUs. */
struct holding {
	const struct lease *lease; /* one of its leases; the others have the same user and tenant */
	unsigned cus, lost;        /* lost: of them, on the GPU of choice_add() */
};

struct choice {
	const struct admit_context *context;
	struct ledger_view view;  /* owned, with the next one */
	struct grower *growers;   /* adaptable leases of a GPU, and the request */
	struct lease user;        /* whose quota counts for the request */
	struct holding *holdings; /* sorted; that of the user is one of them */
	size_t n_holdings;
	uint64_t richest; /* the highest level of a user, except that of the request */
	uint64_t gpus;    /* that fit, as bits */
	unsigned cus;     /* of the largest of them */
	struct prospect prospects[REQUEST_WANTS];
};

/* gpus: that fit, as bits. -ENOMEM. */
int choice_begin(const struct admit_context *context, uint64_t gpus, struct choice *ret);

/* Chooses among some of these for the next want. */
void choice_start(struct choice *choice, uint64_t gpus);
void choice_done(struct choice *choice);

/* The want fits there with this partition: once for each of the GPUs. -ENOMEM. */
int choice_add(struct choice *choice, const struct want *want, const struct partition *partition);

/* The GPUs that fit, in the order in which they should be used. */
void choice_order(const struct choice *choice, size_t order[static REQUEST_WANTS]);
