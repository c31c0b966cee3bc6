/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which row of policy a caller falls under, and what is left of its numbers. */

#include "core/change/arbiter.h"

/* The tenant for this caller: the first that matches, or the one it names if that matches
 * too. -ESRCH if there is none of that name, -EACCES if none matches. */
int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result);

/* NULL: policy has none of this name. */
const struct tenant *tenant_named(const struct settings *settings, const char *name);

/* Might the tenant be this user's? Groups were those of the process that asked and are not
 * kept: a tenant that has some may. */
bool tenant_may_match(const struct tenant *tenant, uid_t uid);

/* Has it limits for parts of a GPU? Else what a user holds there is of no interest. */
bool tenant_bounds_parts(const struct tenant *tenant);

/* What one user already holds under one tenant. */
struct holding {
	size_t n_leases;
	uint64_t gpus; /* bit i: holds a part of GPU i */
};

struct holding quota_holding(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
			     uint64_t except_lease);

/* What it holds of one GPU. */
struct share {
	struct budget budget;
	unsigned cus;
};

/* Of all GPUs, by index: what it holds, except by one lease. */
void quota_shares(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		  uint64_t except_lease, struct share ret[static REQUEST_WANTS]);

/* CUs of the GPU that this lease may have by its tenant's quota; UINT_MAX: as many as there
 * are. 0: policy has no such tenant any more. */
unsigned quota_cus_left(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu);
