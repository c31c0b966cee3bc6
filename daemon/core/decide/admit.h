/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One want against one GPU: is there room, may this caller have it, and which CUs. */

#include "core/ledger/quota.h"

/* How far a refusal goes; ordered. */
enum outcome {
	OUTCOME_FITS,
	OUTCOME_NOT_NOW, /* trying again may help */
	OUTCOME_QUOTA,   /* the tenant's numbers do not allow it */
	OUTCOME_NEVER,   /* not on this GPU, were it empty */
};

/* What stays the same for all GPUs of a request. */
struct admit_context {
	const struct arbiter *arbiter;
	const struct tenant *tenant;
	enum lease_class class;
	uint64_t id; /* its place in its class, where others wait */
	uid_t uid;
	bool alone;                   /* nobody else in its shader engines */
	bool adaptable;               /* claims no more than cus-min */
	const struct lease *previous; /* the lease that is resized; else NULL */
	const struct share *shares;   /* by GPU, quota_shares(); NULL: no quota asks */
};

/* want: complete. On OUTCOME_FITS *ret is the partition, else *ret_refusal says why. */
enum outcome admit(const struct admit_context *admit_context, const struct want *want, unsigned gpu,
		   struct partition *ret, struct refusal *ret_refusal);

/* The CUs that a partition of this class may be made of on the GPU as it is now. */
void admit_available(const struct gpu *gpu, enum lease_class lease_class, enum isolation isolation,
		     bool alone, struct cuset *ret);
