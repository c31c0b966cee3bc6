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
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

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
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_partition_on(arbiter->leases[i], gpu))
			ledger_touch(arbiter, arbiter->leases[i], TOUCH_CHANGED);
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

/* What the lease gave up stays taken as long as its queues may use it. Without a holder no program
 * receives the new masks. */
static const char *resize_reason(const struct arbiter *arbiter, const struct lease *lease,
				 char buf[static REQUEST_TEXT])
{
	pid_t pid = lease->n_bound > 0 ? lease->bound[0] : lease->pid;
	unsigned left = 0;
	size_t n;

	for (size_t i = 0; i < lease->n_partitions; i++)
		left += cuset_count(&lease->partitions[i].occupied) -
			cuset_count(&lease->partitions[i].cus);
	if (lease->n_holders == 0) {
		snprintf(
			buf, REQUEST_TEXT,
			"pid %d does not follow the resize: its queues keep CUs and priority until "
			"it ends; start it again",
			pid);
		return buf;
	}
	n = (size_t)snprintf(buf, REQUEST_TEXT, "pid %d has not acknowledged the resize: ", pid);
	if (left == 0)
		snprintf(buf + n, REQUEST_TEXT - n,
			 "its queues may still have the former CUs and priority");
	else if (lease->adaptable)
		snprintf(buf + n, REQUEST_TEXT - n,
			 "%u CU%s taken until it has, or %llu ms after they are needed", left,
			 left == 1 ? " stays" : "s stay",
			 (unsigned long long)(arbiter->settings->activate_grace_usec / 1000));
	else
		snprintf(buf + n, REQUEST_TEXT - n, "%u CU%s taken until it has or the lease ends",
			 left, left == 1 ? " stays" : "s stay");
	return buf;
}

const char *arbiter_reason(const struct arbiter *arbiter, const struct lease *lease,
			   char buf[static REQUEST_TEXT])
{
	if (!*lease->reason && lease->resized && lease->state == STATE_GRANTED &&
	    lease->generation != lease->acknowledged && lease->deadline_usec == UINT64_MAX)
		return resize_reason(arbiter, lease, buf);
	if (*lease->reason)
		return lease->reason;
	if (!lease->reset.pending || lease->reset.partition >= lease->n_partitions)
		return intruders_text(arbiter, lease, buf);
	snprintf(buf, REQUEST_TEXT, "%s was reset: its queues there are lost: restart its program",
		 arbiter->gpus[lease->partitions[lease->reset.partition].gpu].info.name);
	return buf;
}
