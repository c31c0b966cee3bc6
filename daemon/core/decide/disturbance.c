/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/disturbance.h"

#include <string.h>

#include "core/ledger/lease.h"

bool disturbance_excludes(enum lease_class class, const struct partition *p)
{
	return (class == CLASS_REALTIME && p->isolation == ISOLATION_SHADER_ENGINE) || p->alone;
}

void disturbance_find_cus(const struct arbiter *arbiter, const struct lease *lease,
			  const struct partition *p, struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (lease->class == CLASS_BESTEFFORT)
		return;
	cover_outside(arbiter, p->gpu, lease, ret);
	if (disturbance_excludes(lease->class, p))
		gpu_add_engines(&arbiter->gpus[p->gpu], ret);
}

/* Policy has no say: a queue that computes without a mask for as long as it likes is not a frame. */
static bool has_user_queues(const struct gpu *gpu, struct refusal *refusal)
{
	if (!gpu->info.drm_queues || (gpu->user_queues.counted && gpu->user_queues.compute == 0))
		return false;
	refusal->user_queues = gpu->user_queues.counted ? (int)gpu->user_queues.compute : -1;
	return true;
}

/* Work of the graphics driver has no CU mask: it runs on the CUs of every lease. */
bool disturbance_draws(const struct arbiter *arbiter, unsigned gpu, const struct lease *lease,
		       struct refusal *refusal)
{
	const struct gpu_graphics *graphics = &arbiter->gpus[gpu].graphics;

	if (lease->class == CLASS_REALTIME && has_user_queues(&arbiter->gpus[gpu], refusal))
		return true;
	if (lease->class != CLASS_REALTIME || arbiter->gpus[gpu].info.kfd_gpu_id == 0 ||
	    arbiter->settings->graphics != GRAPHICS_REFUSE_REALTIME)
		return false;
	for (size_t i = 0; i < graphics->n_clients; i++) {
		const struct gpu_client *client = &graphics->clients[i];
		const struct unmanaged_process process = { .who = client->who };

		if (client->draws &&
		    !cover_is_own(arbiter, lease, client->lease, client->pid, client->uid))
			refusal_add_process(refusal, &process);
	}
	return refusal->n_processes > 0 || graphics->state == GRAPHICS_UNKNOWN;
}

bool disturbance_refuses(const struct arbiter *arbiter, const struct lease *lease,
			 const struct partition *partition, struct refusal *refusal)
{
	const struct gpu *gpu = &arbiter->gpus[partition->gpu];
	struct cuset needed = partition_claim(partition), outside, left;

	*refusal = (struct refusal){ .reason = REASON_GRAPHICS, .retry = true };
	memcpy(refusal->gpu, gpu->info.name, sizeof(refusal->gpu));
	if (disturbance_draws(arbiter, partition->gpu, lease, refusal))
		return true;
	disturbance_find_cus(arbiter, lease, partition, &outside);
	if (!cuset_overlap(&needed, &outside))
		return false;
	left = needed;
	cuset_remove(&left, &outside);
	refusal->reason = REASON_UNMASKED;
	refusal->resource = RESOURCE_CUS;
	refusal->asked = cuset_count(&needed);
	refusal->free = cuset_count(&left);
	refusal->total = gpu->cus;
	if (disturbance_excludes(lease->class, partition))
		gpu_add_engines(gpu, &needed);
	cover_name(arbiter, partition->gpu, lease, &needed, refusal);
	return true;
}
