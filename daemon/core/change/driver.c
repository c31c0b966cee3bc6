/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the driver does to leases: evictions of their queues, and resets of their GPUs. */

#include <stdio.h>

#include "core/change/arbiter.h"

void arbiter_evicted(struct arbiter *arbiter, uint64_t id, uint64_t usec)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return;
	lease->evicted.count++;
	if (lease->evicted.now++ == 0)
		lease->evicted.since_usec = usec;
	ledger_touch(arbiter, lease, TOUCH_REASON);
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
	ledger_touch(arbiter, lease, TOUCH_REASON);
}

void arbiter_gpu_reset(struct arbiter *arbiter, unsigned gpu)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (!lease_partition_on(lease, gpu) || lease->state == STATE_ENDING)
			continue;
		lease->reset.count++;
		lease->reset.gpu = gpu;
		lease->reset.pending = true;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

void arbiter_forget_resets(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (!lease->reset.pending || lease->observed.processes > 0)
			continue;
		lease->reset.pending = false;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

const char *arbiter_reason(const struct arbiter *arbiter, const struct lease *lease,
			   char buf[static REQUEST_TEXT])
{
	if (*lease->reason || !lease->reset.pending)
		return lease->reason;
	snprintf(buf, REQUEST_TEXT, "%s was reset: its queues there are lost: restart its program",
		 arbiter->gpus[lease->reset.gpu].info.name);
	return buf;
}
