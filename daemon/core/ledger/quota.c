/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/quota.h"

#include <limits.h>
#include <string.h>

static bool held_by(const struct lease *lease, const struct tenant *tenant, uid_t uid,
		    uint64_t except_lease)
{
	return lease->owner == uid && lease->id != except_lease &&
	       strcmp(lease->tenant, tenant->name) == 0;
}

struct holding quota_holding(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
			     uint64_t except_lease)
{
	struct holding holding = { 0 };

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (!held_by(lease, tenant, uid, except_lease))
			continue;
		holding.n_leases++;
		holding.gpus |= lease_gpus(lease);
	}
	return holding;
}

unsigned quota_free_base(const struct gpu *gpu)
{
	return gpu->info.geometry.xccs * geometry_step(&gpu->info.geometry);
}

void quota_add_share(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *partition, struct share *share)
{
	/* CUs that left the mask count until their release is certain: the lease may use them. */
	const struct cuset *cus = lease->verify.pending ||
						  lease->acknowledged < lease->generation ||
						  !cuset_empty(&partition->resize)
					  ? &partition->occupied
					  : &partition->cus;

	if (lease->lend.never_granted) /* no queue has what it is promised */
		cus = partition_claim(partition);
	cuset_add(&share->cus, cus);
	if (lease->adaptable) {
		/* What has left the mask makes it no smaller. */
		struct cuset borrowed = lease->lend.never_granted ? *cus : partition->cus;

		cuset_remove(&borrowed, partition_claim(partition));
		cuset_add(&share->borrowed, &borrowed);
		share->fixed_cus +=
			(unsigned)beyond(cuset_count(partition_claim(partition)),
					 quota_free_base(&arbiter->gpus[partition->gpu]));
	} else if (lease->class == CLASS_BESTEFFORT) {
		share->fixed_cus += cuset_count(cus);
	}
	share->engines |= cuset_engines(partition_claim(partition));
	budget_add(&share->budget, &partition->charged);
}

void quota_shares(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		  uint64_t except_lease, struct share ret[static REQUEST_WANTS])
{
	struct cuset claimed[REQUEST_WANTS];

	memset(ret, 0, arbiter->n_gpus * sizeof(*ret));
	memset(claimed, 0, arbiter->n_gpus * sizeof(*claimed));
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (lease->n_partitions == 0 || !held_by(lease, tenant, uid, except_lease))
			continue;
		for (size_t j = 0; j < lease->n_partitions; j++) {
			const struct partition *p = &lease->partitions[j];

			quota_add_share(arbiter, lease, p, &ret[p->gpu]);
			cuset_add(&claimed[p->gpu], partition_claim(p));
			ret[p->gpu].budget.vram += beyond(p->used.vram, p->charged.vram);
		}
	}
	/* They are returned for another lease, or lent by it. */
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		cuset_remove(&ret[i].borrowed, &claimed[i]);
}

unsigned quota_cus_left(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);
	struct share shares[REQUEST_WANTS];
	uint64_t limit;
	unsigned held;

	if (!tenant)
		return 0;
	limit = limit_of(&tenant->max_cus, arbiter->gpus[gpu].cus);
	if (limit >= UINT_MAX)
		return UINT_MAX;
	quota_shares(arbiter, tenant, lease->owner, lease->id, shares);
	held = cuset_count(&shares[gpu].cus);
	return limit > held ? (unsigned)limit - held : 0;
}
