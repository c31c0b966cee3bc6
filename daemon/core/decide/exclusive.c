/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/exclusive.h"

#include <string.h>

#include "core/ledger/lease.h"
#include "core/policy/request.h"

bool exclusive_asked(const struct tenant *tenant, enum lease_class lease_class,
		     const struct request *request)
{
	return lease_class == CLASS_REALTIME &&
	       (tenant->exclusive == EXCLUSIVE_ACTIVE || request->exclusive);
}

/* Has it a partition on one of these GPUs (bits) that is active, and exclusive or not adaptable? */
static bool is_active_on(const struct lease *lease, uint64_t gpus, const struct lease *self,
			 bool exclusive)
{
	if (lease->state == STATE_INACTIVE || lease->lend.idle || (self && lease->id == self->id))
		return false;
	FOR_EACH_PARTITION(p, lease)
		if (gpus >> p->gpu & 1 && (exclusive ? p->exclusive : !p->adaptation))
			return true;
	return false;
}

/* Most machines have no exclusive lease: then there is no need to walk through all leases. */
static bool any_exclusive(const struct arbiter *arbiter, unsigned gpu)
{
	size_t i = 0;

	while (i < arbiter->n_gpus &&
	       (arbiter->gpus[i].n_exclusive == 0 ||
		!gpu_info_share_memory(&arbiter->gpus[i].info, &arbiter->gpus[gpu].info)))
		i++;
	return i < arbiter->n_gpus;
}

const struct lease *exclusive_on(const struct arbiter *arbiter, unsigned gpu,
				 const struct lease *self)
{
	uint64_t gpus;

	if (!any_exclusive(arbiter, gpu))
		return NULL;
	gpus = ledger_sharing(arbiter, gpu);
	FOR_EACH_LEASE(lease, arbiter)
		if (is_active_on(lease, gpus, self, true))
			return lease;
	return NULL;
}

bool exclusive_refuses(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		       bool exclusive, struct refusal *refusal)
{
	uint64_t gpus = ledger_sharing(arbiter, gpu);

	if (exclusive || any_exclusive(arbiter, gpu))
		FOR_EACH_LEASE(lease, arbiter)
			if (is_active_on(lease, gpus, self, !exclusive))
				refusal_add_lease(refusal, lease->id);
	for (size_t g = 0; exclusive && g < arbiter->n_gpus; g++)
		if (gpus >> g & 1 && refusal->n_processes == 0 &&
		    arbiter->gpus[g].observed.unmanaged.queues > 0)
			gpu_name_processes(&arbiter->gpus[g], refusal);
	return refusal->n_leases + refusal->n_processes > 0;
}
