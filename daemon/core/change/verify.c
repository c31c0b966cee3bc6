/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/change/verify.h"

#include <stdio.h>

/* The lease whose process this is, as it was settled when its use was seen. */
static uint64_t lease_of(const struct arbiter *arbiter, pid_t pid)
{
	for (size_t i = 0; i < arbiter->n_known; i++)
		if (arbiter->known[i].pid == pid && arbiter->known[i].lease)
			return arbiter->known[i].lease;
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_is_bound(arbiter->leases[i], pid))
			return arbiter->leases[i]->id;
	return 0;
}

/* A process may have several leases of its user: its own, and those that it asked for or that are
 * bound to it. */
static bool may_be_of(const struct lease *lease, const struct lease *own, pid_t pid)
{
	return lease == own || (lease->owner == own->owner && lease->state != STATE_WAITING &&
				(lease->pid == pid || lease_is_bound(lease, pid)));
}

/* Where the queue may be the lease's; NULL: nowhere. */
static struct partition *partition_of(const struct arbiter *arbiter, const struct lease *lease,
				      const struct lease *own, const struct observed_mask *row)
{
	if (!may_be_of(lease, own, row->pid))
		return NULL;
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (arbiter->gpus[lease->partitions[i].gpu].info.kfd_gpu_id == row->kfd_gpu_id)
			return &lease->partitions[i];
	return NULL;
}

static void note_queue(struct partition *p, const struct observed_mask *row)
{
	p->queues.verified = p->queues.wide_pid == 0;
	p->queues.priorities |= (uint16_t)(1U << row->priority);
}

/* The queue is that lease's within whose mask it is. One that is in none may be any's: where one
 * of them has not followed, none of them is known to have. */
static void look(const struct arbiter *arbiter, const struct observed_mask *row)
{
	uint64_t id = lease_of(arbiter, row->pid);
	const struct lease *own = id ? ledger_find(arbiter, id) : NULL;
	struct partition *p;

	if (!own)
		return;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		p = partition_of(arbiter, arbiter->leases[i], own, row);
		if (p && cuset_within(&row->cus, &p->cus)) {
			note_queue(p, row);
			return;
		}
	}
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		p = partition_of(arbiter, arbiter->leases[i], own, row);
		if (!p)
			continue;
		note_queue(p, row);
		p->queues.verified = false;
		p->queues.wide_pid = row->pid;
	}
}

static const struct partition *find_wide(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].queues.wide_pid)
			return &lease->partitions[i];
	return NULL;
}

static void judge(struct arbiter *arbiter, struct lease *lease)
{
	const struct partition *p = find_wide(lease);
	char reason[REQUEST_TEXT];

	if (!p) {
		ledger_follow(arbiter, lease);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
		return;
	}
	if (lease->verify.false_ack)
		return;
	lease->verify.false_ack = true;
	snprintf(reason, sizeof(reason),
		 "says that it follows generation %llu, but a queue of pid %d "
		 "has other CUs of %s too",
		 (unsigned long long)lease->generation, p->queues.wide_pid,
		 arbiter->gpus[p->gpu].info.name);
	lease_set_reason(lease, reason);
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_DRIFT);
}

static bool any_unjudged(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].used.queues > 0 && !lease->partitions[i].queues.scanned)
			return true;
	return false;
}

bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent)
{
	bool wanted = false;

	*ret_urgent = false;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		wanted |= lease->verify.pending || any_unjudged(lease);
		*ret_urgent |= lease->verify.pending && !lease->verify.false_ack;
	}
	return wanted;
}

static void forget(struct lease *lease, bool judged)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		lease->partitions[i].queues.verified = false;
		lease->partitions[i].queues.wide_pid = 0;
		lease->partitions[i].queues.priorities_before =
			lease->partitions[i].queues.priorities;
		lease->partitions[i].queues.priorities = 0;
		lease->partitions[i].queues.scanned = judged;
	}
}

static uint64_t verified(const struct lease *lease)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		bits |= (uint64_t)lease->partitions[i].queues.verified << i;
	return bits;
}

static bool other_priorities(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].queues.priorities !=
		    lease->partitions[i].queues.priorities_before)
			return true;
	return false;
}

void arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		arbiter->leases[i]->verify.before = verified(arbiter->leases[i]);
		forget(arbiter->leases[i], true);
	}
	for (size_t i = 0; i < n; i++)
		look(arbiter, &rows[i]);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (verified(lease) != lease->verify.before || other_priorities(lease))
			ledger_touch(arbiter, lease, TOUCH_REASON);
		if (lease->verify.pending)
			judge(arbiter, lease);
	}
}

void arbiter_masks_unreadable(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		lease->verify.before = verified(lease);
		forget(lease, true);
		if (lease->verify.before || other_priorities(lease))
			ledger_touch(arbiter, lease, TOUCH_REASON);
		if (!lease->verify.pending)
			continue;
		ledger_follow(arbiter, lease);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}
