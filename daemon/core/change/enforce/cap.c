/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which calls that create a queue may run. The call itself says neither GPU nor type: both are in
 * memory that the caller can change after the answer. So the decision is made from the queues that
 * exist, and from how many calls run already:
 *
 * - Compute queues, all GPUs together, never exceed what is granted on all of them.
 * - Of what the call does not tell, one can be too many: a queue on the wrong GPU of several, or an
 *   SDMA queue beyond a budget of SDMA queues. After that nothing is allowed until one is destroyed.
 */

#include <string.h>

#include "core/change/arbiter.h"

void cap_add(const struct arbiter *arbiter, struct cap_use *use, uint32_t kfd_gpu_id,
	     const struct budget *used)
{
	struct budget *sum = &use->elsewhere;

	for (size_t i = 0; i < use->lease->n_partitions; i++)
		if (arbiter->gpus[use->lease->partitions[i].gpu].info.kfd_gpu_id == kfd_gpu_id)
			sum = &use->used[i];
	budget_add(sum, used);
}

/* Does it use more queues of a kind than it was granted, or, with room 1, as many? */
static bool exceeds(const struct budget *used, const struct budget *granted, unsigned room)
{
	static const enum resource kinds[] = { RESOURCE_QUEUES, RESOURCE_SDMA_QUEUES,
					       RESOURCE_SDMA_XGMI_QUEUES };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (budget_counts(granted, kinds[i]) &&
		    used->of[kinds[i]] + room > granted->of[kinds[i]])
			return true;
	return false;
}

enum cap_decision cap_decide(const struct cap_use *use)
{
	const struct lease *lease = use->lease;
	uint64_t granted = 0, queues = use->elsewhere.queues;
	bool beyond = queues > 0, full = false;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		granted += p->granted.queues;
		queues += use->used[i].queues;
		beyond |= exceeds(&use->used[i], &p->granted, 0);
		full |= exceeds(&use->used[i], &p->granted, 1);
	}
	if (lease->state == STATE_ENDING || beyond || queues >= granted)
		return CAP_REFUSE;
	/* Where a budget is full, the one call that can exceed it runs alone. */
	if (queues + use->in_flight >= granted || (full && use->in_flight > 0))
		return CAP_LATER;
	return CAP_ALLOW;
}

static void review(struct arbiter *arbiter, struct lease *lease)
{
	bool capped = lease->cap.filtered || lease->cap.enforced;

	if (lease->cap.active == capped)
		return;
	lease->cap.active = capped;
	cap_mark(lease);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

void arbiter_set_filtered(struct arbiter *arbiter, struct lease *lease, bool filtered)
{
	lease->cap.filtered = filtered;
	review(arbiter, lease);
}

void arbiter_set_enforced(struct arbiter *arbiter, struct lease *lease, bool enforced)
{
	lease->cap.enforced = enforced;
	review(arbiter, lease);
}

void cap_mark(struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		p->capped = lease->cap.active;
}
