/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shares of the adaptable leases of a GPU: weighted max-min, first among users (each in its tenant),
 * then among the leases of a user; or among leases, as policy says. Each has as many CUs for each unit of
 * weight as there are, but none less than its base or more than it asked for.
 */

#include "core/ledger/ledger.h"

/* An adaptable lease on one GPU. */
struct grower {
	struct lease *lease;
	struct partition *p;
	unsigned base, cap; /* CUs that it has at least and may have at most */
	unsigned quota;     /* CUs that the quota of its user leaves to it; UINT_MAX: no limit */
	unsigned held;      /* CUs that count for the quotas of the other leases of its user */
	unsigned weight;    /* of its tenant */
	unsigned share;     /* CUs */

	/* divide.c */
	struct cuset has;    /* its mask; of a lease that was not granted yet: its base */
	struct cuset target; /* the mask that it is to get; contains its base */
	struct cuset rebase; /* within the target: its base is to move here; empty: it stays */
	struct cuset best, best_rebase;
	bool begins;   /* it was not granted yet: its base may be anywhere in its target */
	bool grows;    /* it was granted: its base may move with its growth */
	bool keeps;    /* its mask: it has not acknowledged everything */
	bool anchored; /* its base does not move */
	bool fixed;    /* its mask stays as it is */
	bool restored; /* target is the mask before it shrank */
};

/* A part of a share, in 2^-SHARE_LEVEL_BITS. */
#define SHARE_LEVEL_BITS 16U

unsigned share_weight(const struct arbiter *arbiter, const struct lease *lease);

/* Without a target and a share. */
struct grower share_grower(const struct arbiter *arbiter, struct lease *lease, struct partition *p);

/* Do the leases of two growers have one quota? */
bool share_quota_is_common(const struct grower *a, const struct grower *b);

/* Finds the adaptable leases of a GPU that divide its CUs, without self (NULL: none), the CUs that they
 * divide, and those that each lease claims. Returns how many there are; ret has room for all leases. */
size_t share_find(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		  struct grower *ret, struct cuset *ret_claims, struct cuset *ret_pool);

/* Sets the share of each grower. The cap of those with a quota becomes their share of it. -ENOMEM. */
int share_divide(const struct arbiter *arbiter, struct grower *growers, size_t n, unsigned cus);
