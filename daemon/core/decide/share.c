/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/share.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/layout/fluid.h"
#include "core/ledger/lease.h"
#include "core/ledger/quota.h"

unsigned share_weight(const struct arbiter *arbiter, const struct lease *lease)
{
	return tenant_weight(tenant_named(arbiter->settings, lease->tenant));
}

/* CUs that a fixed lease of the same user has, or takes back: its quota counts them already. */
static void leave_fixed(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu,
			struct cuset *cus)
{
	FOR_EACH_LEASE(other, arbiter) {
		const struct partition *p = lease_partition_on(other, gpu);

		if (p && !other->adaptable && lease_same_account(other, lease)) {
			const struct cuset claim = partition_claim(p);

			cuset_remove(cus, &claim);
		}
	}
}

struct grower share_grower(const struct arbiter *arbiter, struct lease *lease, struct partition *p)
{
	struct grower grower = { .lease = lease,
				 .p = p,
				 .base = cuset_count(&p->adaptation->base),
				 .quota = quota_cus_left(arbiter, lease, p->gpu),
				 .weight = share_weight(arbiter, lease) };
	struct share held = { 0 };

	grower.cap = lease->lend.unbound ? grower.base : p->asked;
	if (grower.quota < UINT_MAX && ledger_find(arbiter, lease->id)) {
		quota_add_share(arbiter, lease, p, &held);
		leave_fixed(arbiter, lease, p->gpu, &held.cus);
	}
	grower.held = cuset_count(&held.cus);
	return grower;
}

bool share_quota_is_common(const struct grower *a, const struct grower *b)
{
	return a->quota < UINT_MAX && lease_same_account(a->lease, b->lease);
}

/* Divides CUs among all growers: among accounts first, or among leases. of: only among the leases that have a quota
 * in common with it. */
static void divide_among(const struct arbiter *arbiter, struct grower *growers, size_t n,
			 const struct grower *of, unsigned cus, struct fluid_term *terms)
{
	size_t n_terms = 0;

	for (size_t i = 0; i < n; i++) {
		size_t account = n_terms;

		if (of && !share_quota_is_common(of, &growers[i]))
			continue;
		if (!of && !arbiter->settings->share_by_lease)
			for (account = 0;
			     !lease_same_account(growers[account].lease, growers[i].lease);)
				account++;
		terms[n_terms++] = (struct fluid_term){ .least = growers[i].base,
							.most = growers[i].cap,
							.weight = growers[i].weight,
							.account = account };
	}
	fluid(terms, n_terms, cus);
	for (size_t i = 0, j = 0; i < n; i++)
		if (!of || share_quota_is_common(of, &growers[i]))
			growers[i].share = fluid_units(terms[j++].share);
}

/* Divides the quota of one user among its leases. */
static void cap_by_quota(const struct arbiter *arbiter, struct grower *growers, size_t n,
			 const struct grower *first, struct fluid_term *terms)
{
	uint64_t cus = first->quota;

	for (struct grower *g = growers; g < growers + n; g++)
		if (g != first && share_quota_is_common(first, g))
			cus += g->held;
	divide_among(arbiter, growers, n, first, (unsigned)min_u64(cus, FLUID_UNITS_MAX), terms);
	for (struct grower *g = growers; g < growers + n; g++)
		if (share_quota_is_common(first, g))
			g->cap = g->share;
}

int share_divide(const struct arbiter *arbiter, struct grower *growers, size_t n, unsigned cus)
{
	_cleanup_(freep) struct fluid_term *terms = calloc(n + 1, sizeof(*terms));

	if (!terms)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < i && !share_quota_is_common(&growers[j], &growers[i]))
			j++;
		if (j == i && growers[i].quota < UINT_MAX)
			cap_by_quota(arbiter, growers, n, &growers[i], terms);
	}
	divide_among(arbiter, growers, n, NULL, cus, terms);
	return 0;
}

size_t share_find(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		  struct grower *ret, struct cuset *ret_claims, struct cuset *ret_pool)
{
	size_t n = 0;

	borrow_others(arbiter, gpu, self, BORROW_CLAIMED, ret_claims);
	*ret_pool = arbiter->gpus[gpu].all;
	cuset_remove(ret_pool, ret_claims);
	FOR_EACH_LEASE(lease, arbiter) {
		struct partition *p = lease_borrows(lease) && !(self && lease->id == self->id)
					      ? lease_partition_on(lease, gpu)
					      : NULL;

		if (p && lease_joins(lease) && !p->paused)
			ret[n++] = share_grower(arbiter, lease, p);
		else if (p)
			cuset_remove(ret_pool, &p->occupied);
	}
	for (size_t i = 0; i < n; i++)
		cuset_add(ret_pool, &ret[i].p->adaptation->base);
	return n;
}
