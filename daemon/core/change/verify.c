/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <stdio.h>

/* The lease that the last scan attributed this process to, or that it is bound to; NULL. */
static const struct lease *lease_of(const struct arbiter *arbiter, pid_t pid)
{
	uint64_t id = known_lease(arbiter, pid);

	if (id)
		return ledger_find(arbiter, id);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_is_bound(arbiter->leases[i], pid))
			return arbiter->leases[i];
	return NULL;
}

/* May the process use this lease? own: the lease that it is attributed to. It may use other leases
 * of the same user that it asked for or is bound to. */
static bool may_be_of(const struct lease *lease, const struct lease *own, pid_t pid)
{
	return lease == own || (lease->owner == own->owner && lease->state != STATE_WAITING &&
				(lease->pid == pid || lease_is_bound(lease, pid)));
}

/* The partition of the lease that the queue may belong to; NULL. */
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

static void add_queue(struct partition *p, const struct observed_mask *row)
{
	p->queues.verified = p->queues.wide_pid == 0;
	p->queues.priorities |= (uint16_t)(1U << row->priority);
	if (p->paused && row->active)
		p->queues.active_pid = row->pid;
}

/* Attributes a queue to the first lease whose mask contains it. A queue within no mask may belong to
 * any lease of the process: then none of them is verified. */
static void compare(const struct arbiter *arbiter, const struct observed_mask *row)
{
	const struct lease *own = lease_of(arbiter, row->pid);
	struct partition *p;

	if (!own)
		return;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		p = partition_of(arbiter, arbiter->leases[i], own, row);
		if (p && cuset_within(&row->cus, &p->cus)) {
			add_queue(p, row);
			return;
		}
	}
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		p = partition_of(arbiter, arbiter->leases[i], own, row);
		if (!p)
			continue;
		add_queue(p, row);
		p->queues.verified = false;
		p->queues.wide_pid = row->pid;
	}
}

/* The first partition with a queue that has CUs beyond its mask, or runs although the partition is
 * paused. Before the holder has acknowledged the pause, its queues may run. */
static const struct partition *find_drift(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		if ((lease->verify.pending && p->queues.wide_pid) ||
		    (p->queues.active_pid && (lease->verify.pending || p->stopped)))
			return p;
	}
	return NULL;
}

static void judge(struct arbiter *arbiter, struct lease *lease)
{
	const struct partition *p = find_drift(lease);
	char reason[REQUEST_TEXT];

	if (!p) {
		if (lease->verify.false_ack && lease->state == STATE_GRANTED)
			lease_set_reason(lease, "");
		lease->verify.false_ack = false;
		if (lease->verify.pending)
			ledger_follow(arbiter, lease);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
		return;
	}
	if (lease->verify.false_ack)
		return;
	lease->verify.false_ack = true;
	if (p->queues.active_pid)
		snprintf(
			reason, sizeof(reason),
			"acknowledged generation %llu, but a queue of pid %d still runs on %s, where "
			"it is paused",
			(unsigned long long)lease->generation, p->queues.active_pid,
			arbiter->gpus[p->gpu].info.name);
	else
		snprintf(reason, sizeof(reason),
			 "acknowledged generation %llu, but a queue of pid %d still has CUs of %s "
			 "outside its mask",
			 (unsigned long long)lease->generation, p->queues.wide_pid,
			 arbiter->gpus[p->gpu].info.name);
	lease_set_reason(lease, reason);
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_DRIFT);
}

static bool any_unscanned(const struct lease *lease)
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

		wanted |= lease->verify.pending || any_unscanned(lease);
		*ret_urgent |= lease->verify.pending && !lease->verify.false_ack;
	}
	return wanted;
}

static void clear(struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct partition *p = &lease->partitions[i];

		p->queues.verified_before = p->queues.verified;
		p->queues.verified = false;
		p->queues.wide_pid = p->queues.active_pid = 0;
		p->queues.priorities_before = p->queues.priorities;
		p->queues.priorities = 0;
		p->queues.scanned = true;
	}
}

static bool has_changed(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		if (p->queues.verified != p->queues.verified_before ||
		    p->queues.priorities != p->queues.priorities_before)
			return true;
	}
	return false;
}

void arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		clear(arbiter->leases[i]);
	for (size_t i = 0; i < n; i++)
		compare(arbiter, &rows[i]);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (has_changed(lease))
			ledger_touch(arbiter, lease, TOUCH_REASON);
		if (lease->verify.pending || (lease->state == STATE_GRANTED &&
					      (lease->verify.false_ack || find_drift(lease))))
			judge(arbiter, lease);
	}
}
