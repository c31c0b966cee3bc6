/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Judges one want on one GPU: whether there is room, whether policy allows it, and which CUs. */

#include "core/decide/floor.h"
#include "core/ledger/quota.h"

struct want;

/* Ordered: a want that is NEVER granted on this GPU is further from a grant than one that is
 * refused now. */
enum outcome {
	OUTCOME_FITS,
	OUTCOME_NOT_NOW, /* may succeed later */
	OUTCOME_QUOTA,   /* above a quota of the tenant */
	OUTCOME_NEVER,   /* would not fit this GPU if it were empty */
};

/* What stays the same for all GPUs of a request. */
struct admit_context {
	const struct arbiter *arbiter;
	const struct tenant *tenant;
	uid_t uid;                    /* whose quota counts */
	const struct lease *self;     /* the lease that is resized, or that waits, or would */
	const struct lease *previous; /* the lease that is resized; else NULL */

	/* Set by gang_assign(). */
	bool alone;                 /* no other lease in its shader engines */
	bool exclusive;             /* adaptable leases on its GPUs pause while it is active */
	bool inactive;              /* it starts inactive */
	bool adaptable;             /* is granted cus-min and borrows the rest */
	const struct share *shares; /* by GPU, quota_shares(); NULL: no quota asks */
	const struct floor *floors; /* by GPU; NULL: policy has none */
};

/* want: complete. Sets *ret on OUTCOME_FITS; else *ret_refusal, all but its leases. The two may be
 * members of one union. */
enum outcome admit(const struct admit_context *admit_context, const struct want *want, unsigned gpu,
		   struct partition *ret, struct refusal *ret_refusal);

/* The CUs that a partition of this class and isolation may take on the GPU as it is now, apart from
 * those that queues cover outside their lease (ledger/cover.h). */
void admit_available(const struct gpu *gpu, enum lease_class lease_class, enum isolation isolation,
		     bool alone, struct cuset *ret);

/* ---- gang.c: all wants of a request, or none ---------------------------------------- */

/*
 * Finds a GPU for each want, a different GPU for each, and fills partitions[] in the order of
 * the wants. Wants on different GPUs do not influence each other, so the assignment is a
 * bipartite matching, and it is found whenever there is one that max-gpus allows. Of several
 * the largest want gets the best GPU (choice.h), then the next one the best of the others.
 *
 * *ret_candidates: the GPUs that could ever take one of the wants, as bits; 0 if there are too
 * few GPUs.
 */
int gang_assign(const struct admit_context *admit_context, const struct request *request,
		struct partition *partitions, uint64_t *ret_candidates, struct result *result);

/*
 * Searches that place a request again and again are bounded in steps, so that no request takes longer than
 * 5 ms. A step is about a microsecond: of a walk through all leases; of finding CUs for one partition,
 * other leases considered; and of gang_assign() with all that arbiter_plan() does for it; one: where only
 * one GPU is left for each want.
 */
unsigned gang_walk_steps(const struct arbiter *arbiter);
unsigned gang_lease_steps(const struct arbiter *arbiter);
unsigned gang_steps(const struct arbiter *arbiter, const struct request *request, bool one);
