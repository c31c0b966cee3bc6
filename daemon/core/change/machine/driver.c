/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the driver does to leases: evictions of their queues, and resets of their GPUs. */

#include "core/change/arbiter.h"

void arbiter_evicted(struct arbiter *arbiter, uint64_t id, uint64_t usec)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return;
	lease->evicted.count++;
	if (lease->evicted.now++ == 0)
		lease->evicted.since_usec = usec;
	ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE);
}

void arbiter_restored(struct arbiter *arbiter, uint64_t id, uint64_t usec)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease || lease->evicted.now == 0)
		return;
	if (--lease->evicted.now == 0) {
		if (usec > lease->evicted.since_usec)
			lease->evicted.usec += usec - lease->evicted.since_usec;
		lease->evicted.since_usec = 0;
	}
	ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE);
}

void arbiter_gpu_reset(struct arbiter *arbiter, unsigned gpu, uint64_t now_usec)
{
	arbiter->gpus[gpu].reset_until_usec = now_usec + RESET_USEC;
	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = lease_partition_on(lease, gpu);

		if (!p || lease->state == STATE_ENDING)
			continue;
		lease->reset.count++;
		lease->reset.partition = (size_t)(p - lease->partitions);
		lease->reset.pending = true;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

void arbiter_gpu_reset_ended(struct arbiter *arbiter, unsigned gpu)
{
	if (arbiter->gpus[gpu].reset_until_usec == 0)
		return;
	arbiter->gpus[gpu].reset_until_usec = 0;
	ledger_wake(arbiter, UINT64_C(1) << gpu);
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_partition_on(lease, gpu))
			ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

void arbiter_forget_resets(struct arbiter *arbiter)
{
	FOR_EACH_LEASE(lease, arbiter) {
		if (!lease->reset.pending || lease->observed.processes > 0)
			continue;
		lease->reset.pending = false;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}
