/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/quota.h"

#include <limits.h>
#include <string.h>

#include "core/ledger/lease.h"

static bool held_by(const struct lease *lease, const struct tenant *tenant, uid_t uid,
		    uint64_t except_lease)
{
	return lease->owner == uid && lease->id != except_lease &&
	       strcmp(lease->tenant, tenant->name) == 0;
}

uint64_t quota_gpus(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		    uint64_t except_lease)
{
	uint64_t gpus = 0;

	FOR_EACH_LEASE(lease, arbiter)
		if (held_by(lease, tenant, uid, except_lease))
			gpus |= lease_gpus(lease);
	return gpus;
}

unsigned quota_free_base(const struct gpu *gpu)
{
	return gpu->info.geometry.xccs * geometry_step(&gpu->info.geometry);
}

void quota_add_share(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *partition, struct share *share)
{
	/* CUs that left the mask count until their release is certain: the lease may use them. */
	struct cuset claim = partition_claim(partition),
		     cus = lease->verify.pending || lease->acknowledged < lease->generation
				   ? partition->occupied
				   : partition->cus;

	cuset_add(&cus, &partition->resize);
	if (lease->lend.never_granted) /* no queue has what it is promised */
		cus = claim;
	cuset_add(&share->cus, &cus);
	if (lease->adaptable) {
		/* What has left the mask makes it no smaller. */
		struct cuset borrowed = lease->lend.never_granted ? cus : partition->cus;

		cuset_remove(&borrowed, &claim);
		cuset_add(&share->borrowed, &borrowed);
		share->fixed_cus += (unsigned)beyond(
			cuset_count(&claim), quota_free_base(&arbiter->gpus[partition->gpu]));
	} else if (lease->class == CLASS_BESTEFFORT) {
		share->fixed_cus += cuset_count(&cus);
	}
	share->engines |= cuset_engines(&claim);
	budget_add(&share->budget, &partition->charged);
}

void quota_shares(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		  uint64_t except_lease, struct share ret[static REQUEST_WANTS])
{
	struct cuset claimed[REQUEST_WANTS];

	memset(ret, 0, arbiter->n_gpus * sizeof(*ret));
	memset(claimed, 0, arbiter->n_gpus * sizeof(*claimed));
	FOR_EACH_LEASE(lease, arbiter) {
		if (lease->n_partitions == 0 || !held_by(lease, tenant, uid, except_lease))
			continue;
		FOR_EACH_PARTITION(p, lease) {
			const struct cuset claim = partition_claim(p);

			quota_add_share(arbiter, lease, p, &ret[p->gpu]);
			cuset_add(&claimed[p->gpu], &claim);
			ret[p->gpu].budget.vram += beyond(p->used.vram, p->charged.vram);
		}
	}
	/* They are returned for another lease, or lent by it. */
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		cuset_remove(&ret[i].borrowed, &claimed[i]);
}

void quota_parts(const struct gpu *gpu, const struct share *held,
		 struct quota_part ret[static QUOTA_PARTS])
{
	const struct quota_part parts[QUOTA_PARTS] = {
		{ RESOURCE_CUS, cuset_count(&held->cus), gpu->cus },
		{ RESOURCE_QUEUES, held->budget.queues, gpu->info.queue_slots },
		{ RESOURCE_PROCESSES, held->budget.processes, gpu->info.process_slots },
		{ RESOURCE_VRAM, held->budget.vram, gpu->info.vram_bytes },
		{ RESOURCE_CUS, held->fixed_cus, gpu->cus },
		{ RESOURCE_SHADER_ENGINES, (unsigned)__builtin_popcount(held->engines),
		  gpu->info.geometry.engines },
	};

	memcpy(ret, parts, sizeof(parts));
}

unsigned quota_left(const struct tenant *tenant, const struct gpu *gpu, const struct share *held)
{
	uint64_t limit = limit_of(&tenant->max_cus, gpu->cus);

	return limit < UINT_MAX ? (unsigned)beyond(limit, cuset_count(&held->cus)) : UINT_MAX;
}

/* The engine, except these, with the most of the CUs on each XCC. */
static unsigned widest_engine(const struct geometry *geometry, uint32_t except,
			      const struct cuset *cus)
{
	unsigned best = 0, most = 0;

	for (unsigned e = 0; e < geometry->engines; e++) {
		unsigned least = UINT_MAX;

		for (unsigned x = 0; x < geometry->xccs; x++)
			least = min_u(least, cuset_count_word(cus->pair[cuset_pair(x, e)]));
		if (except >> e & 1 || least < most)
			continue;
		most = least + 1;
		best = e;
	}
	return best;
}

void quota_keep_engines(const struct tenant *tenant, const struct gpu *gpu, uint32_t has,
			struct cuset *cus)
{
	const struct geometry *geometry = &gpu->info.geometry;
	uint64_t most = min_u64(limit_of(&tenant->max_engines, geometry->engines),
				geometry->engines);

	while ((unsigned)__builtin_popcount(has) < most)
		has |= UINT32_C(1) << widest_engine(geometry, has, cus);
	cuset_keep_engines(cus, has);
}

unsigned quota_cus_left(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);
	struct share held[REQUEST_WANTS];

	if (!tenant)
		return 0;
	if (tenant->max_cus.kind == LIMIT_NONE)
		return UINT_MAX;
	quota_shares(arbiter, tenant, lease->owner, lease->id, held);
	return quota_left(tenant, &arbiter->gpus[gpu], &held[gpu]);
}
