/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/ledger/quota.h"

struct review {
	const struct arbiter *arbiter;
	const struct lease *lease;
	const struct tenant *tenant;
	char reason[512]; /* arbiter_end() cuts it */
};

/* Sets the reason; returns false, so that a check can end with it. */
static bool forbidden(struct review *review, const char *format, ...) PRINTF_LIKE(2, 3);

static bool forbidden(struct review *review, const char *format, ...)
{
	size_t n = (size_t)snprintf(review->reason, sizeof(review->reason),
				    "policy was reloaded: ");
	va_list args;

	va_start(args, format);
	vsnprintf(review->reason + n, sizeof(review->reason) - n, format, args);
	va_end(args);
	return false;
}

static bool check_tenant(struct review *review)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct lease *lease = review->lease;
	const struct tenant *tenant;
	unsigned most;

	if (tenant_of_lease(review->arbiter->settings, lease->tenant, lease->owner, &tenant,
			    &result) < 0)
		return forbidden(review, "%s", result.sentence);
	review->tenant = tenant;
	if (lease->class > tenant->class)
		return forbidden(review, "class %s is above class %s of tenant %s",
				 class_names[lease->class], class_names[tenant->class],
				 tenant->name);
	most = max_u(tenant->priority, PRIORITY_NORMAL);
	FOR_EACH_PARTITION(p, lease)
		if (p->priority > most)
			return forbidden(review,
					 "priority %u is above %u, the highest of tenant %s",
					 p->priority, most, tenant->name);
	return true;
}

/* ---- quotas ------------------------------------------------------------------------ */

/* What the user holds under this tenant with the leases up to and including this one: a quota is
 * exceeded by the latest leases. */
struct held {
	uint64_t leases, gpus; /* gpus: as bits */
	struct share on[REQUEST_WANTS];
};

/* Counts what the partition is to have, or what it waits for, if that is more: it does not get both. CUs that have left its
 * mask, and its queues may still have, do not count: they would not be free any sooner if the lease ended. */
static void hold(const struct arbiter *arbiter, const struct lease *lease,
		 const struct partition *partition, struct share *held)
{
	struct adaptation adaptation = { .base = partition->resize };
	struct partition p = *partition;

	if (p.count < cuset_count(&p.resize))
		p.cus = p.resize;
	p.occupied = p.cus;
	p.charged = p.granted;
	if (p.adaptation && cuset_count(&p.resize) > cuset_count(&p.adaptation->base))
		p.adaptation = &adaptation;
	p.resize = (struct cuset){ 0 };
	quota_add_share(arbiter, lease, &p, held);
}

static void hold_all(const struct review *review, struct held *ret)
{
	const struct arbiter *arbiter = review->arbiter;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < arbiter->n_leases && arbiter->leases[i]->id <= review->lease->id;
	     i++) {
		const struct lease *lease = arbiter->leases[i];

		if (lease->n_partitions == 0 || lease->state == STATE_ENDING ||
		    !lease_same_account(lease, review->lease))
			continue;
		ret->leases++;
		ret->gpus |= lease_gpus(lease);
		FOR_EACH_PARTITION(p, lease)
			hold(arbiter, lease, p, &ret->on[p->gpu]);
	}
}

static bool check_limit(struct review *review, const char *key, uint64_t limit, uint64_t has)
{
	return has <= limit || forbidden(review, "%s of tenant %s is %llu, and uid %u has %llu",
					 key, review->tenant->name, (unsigned long long)limit,
					 review->lease->owner, (unsigned long long)has);
}

static unsigned count_gpus(const struct arbiter *arbiter)
{
	unsigned n = 0;

	FOR_EACH_GPU(gpu, arbiter)
		n += !gpu->absent;
	return n;
}

static bool check_gpu(struct review *review, const struct held *held, unsigned index)
{
	const struct tenant *tenant = review->tenant;
	const struct gpu *gpu = &review->arbiter->gpus[index];
	struct quota_part parts[QUOTA_PARTS];

	quota_parts(gpu, &held->on[index], parts);
	for (unsigned i = 0; i < QUOTA_PARTS; i++)
		if (!check_limit(review, tenant_limits[QUOTA_FIRST + i].key,
				 limit_of(tenant_limit(tenant, QUOTA_FIRST + i), parts[i].total),
				 parts[i].held))
			return false;
	return tenant_allows_gpu(tenant, gpu->info.name) ||
	       forbidden(review, "only-gpus of tenant %s does not name %s", tenant->name,
			 gpu->info.name);
}

static bool check_quotas(struct review *review)
{
	const struct tenant *tenant = review->tenant;
	const struct lease *lease = review->lease;
	struct held held;

	hold_all(review, &held);
	if (!check_limit(review, "max-leases", limit_of(&tenant->max_leases, 100), held.leases) ||
	    !check_limit(review, "max-gpus",
			 limit_of(&tenant->max_gpus, count_gpus(review->arbiter)),
			 (unsigned)__builtin_popcountll(held.gpus)))
		return false;
	FOR_EACH_PARTITION(p, lease)
		if (!check_gpu(review, &held, p->gpu))
			return false;
	return true;
}

void arbiter_review(struct arbiter *arbiter)
{
	FOR_EACH_LEASE(lease, arbiter) {
		struct review review = { .arbiter = arbiter, .lease = lease };

		if (lease->n_partitions == 0 || lease->state == STATE_ENDING)
			continue;
		if (!check_tenant(&review) || !check_quotas(&review))
			arbiter_end(arbiter, lease, RESULT_NOT_PERMITTED, review.reason);
	}
}
