/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What one user holds under one tenant, against the limits of the tenant. */

#include "core/ledger/ledger.h"

/* The GPUs of which the user holds a partition, as bits, without one lease. */
uint64_t quota_gpus(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		    uint64_t except_lease);

/* CUs of the least base of an adaptable lease on the GPU, which does not count as fixed: one unit (a CU, or a
 * pair) on each XCC. */
unsigned quota_free_base(const struct gpu *gpu);

/* On one GPU. */
struct share {
	struct budget budget;
	struct cuset cus;
	struct cuset borrowed; /* of them: what its adaptable leases return for another lease */
	unsigned fixed_cus;    /* that best-effort leases never return; quota_free_base() is free */
	uint32_t engines;      /* with CUs that were granted, as bits */
};

/* Adds a partition of the lease to what its user holds on the GPU. */
void quota_add_share(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *partition, struct share *share);

/* For every GPU, by index, with the memory that was observed beyond what was granted; without one lease. */
void quota_shares(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		  uint64_t except_lease, struct share ret[static REQUEST_WANTS]);

/* What is held of what a tenant limits by GPU: the last entries of tenant_limits, from max-cus on, in their order. */
#define QUOTA_FIRST 3U
#define QUOTA_PARTS (TENANT_LIMITS - QUOTA_FIRST)
struct quota_part {
	enum resource resource;
	uint64_t held, total;
};
void quota_parts(const struct gpu *gpu, const struct share *held,
		 struct quota_part ret[static QUOTA_PARTS]);

/* CUs of the GPU that max-cus leaves to a user with this share of it; UINT_MAX: no limit. */
unsigned quota_left(const struct tenant *tenant, const struct gpu *gpu, const struct share *held);

/* Keeps of these CUs those in the shader engines that a user may have under max-shader-engines: the engines that the user has
 * already, and as many more as the limit leaves, those with the most of these CUs on each XCC first. */
void quota_keep_engines(const struct tenant *tenant, const struct gpu *gpu, uint32_t has,
			struct cuset *cus);

/* CUs of the GPU that the tenant's quota leaves to this lease; UINT_MAX: no limit. 0: policy has
 * no such tenant any more. */
unsigned quota_cus_left(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu);
