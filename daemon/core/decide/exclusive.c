/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/exclusive.h"

#include <string.h>

bool exclusive_asked(const struct tenant *tenant, enum lease_class lease_class,
		     const struct request *request)
{
	return lease_class == CLASS_REALTIME &&
	       (tenant->exclusive == EXCLUSIVE_ACTIVE || request->exclusive);
}

/* Its partition on the GPU while it is active; NULL. */
static const struct partition *active_on(const struct lease *lease, unsigned gpu,
					 const struct lease *self)
{
	if (lease->state == STATE_INACTIVE || lease->lend.idle || (self && lease->id == self->id))
		return NULL;
	return lease_partition_on(lease, gpu);
}

const struct lease *exclusive_on(const struct arbiter *arbiter, unsigned gpu,
				 const struct lease *self)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct partition *p = active_on(arbiter->leases[i], gpu, self);

		if (p && p->exclusive)
			return arbiter->leases[i];
	}
	return NULL;
}

uint64_t exclusive_gpus(const struct arbiter *arbiter, bool exclusive)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		for (size_t j = 0; j < lease->n_partitions; j++) {
			const struct partition *p = &lease->partitions[j];

			if (exclusive ? !p->adaptation : p->exclusive)
				gpus |= UINT64_C(1) << p->gpu;
		}
	}
	for (size_t g = 0; exclusive && g < arbiter->n_gpus; g++)
		if (arbiter->gpus[g].observed.unmanaged.queues > 0)
			gpus |= UINT64_C(1) << g;
	return gpus;
}

bool exclusive_refuses(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		       bool exclusive, struct refusal *refusal)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = active_on(lease, gpu, self);

		if (!p || !(exclusive ? !p->adaptation : p->exclusive))
			continue;
		if (refusal->n_leases < REFUSAL_LEASES)
			refusal->leases[refusal->n_leases] = lease->id;
		refusal->n_leases++;
	}
	if (exclusive && arbiter->gpus[gpu].observed.unmanaged.queues > 0)
		gpu_name_processes(&arbiter->gpus[gpu], refusal);
	return refusal->n_leases + refusal->n_processes > 0;
}
