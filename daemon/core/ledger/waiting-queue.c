/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/waiting-queue.h"

#include <string.h>

/* ---- order ------------------------------------------------------------------------- */

/* How many waiting leases rank before this class and id. */
static size_t rank(const struct arbiter *arbiter, enum lease_class lease_class, uint64_t id)
{
	size_t low = 0, high = arbiter->n_waiting;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct lease *lease = arbiter->waiting[middle];

		if (queue_before(lease->class, lease->id, lease_class, id))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

unsigned queue_position(const struct arbiter *arbiter, const struct lease *lease)
{
	if (lease->state != STATE_WAITING)
		return 0;
	return (unsigned)rank(arbiter, lease->class, lease->id) + 1;
}

/* ---- barriers ---------------------------------------------------------------------- */

/* Does a waiting lease bar its candidates? */
static bool bars(const struct lease *lease)
{
	return lease->wait.passed >= LEASE_PASSES_MAX && !lease->wait.over_quota;
}

/* The GPUs that it bars, as bits. */
static uint64_t barred_by(const struct lease *lease)
{
	return lease->wait.preempts | (bars(lease) ? lease->wait.candidates : 0);
}

/* by: the lease that bars the GPU; NULL: none. Leases that rank between the old and the new one are
 * not barred any more. */
static void set_barrier(struct arbiter *arbiter, unsigned index, const struct lease *by)
{
	struct gpu *gpu = &arbiter->gpus[index];
	uint64_t old = gpu->barrier.id;
	enum lease_class old_class = gpu->barrier.class;

	gpu->barrier.id = by ? by->id : 0;
	gpu->barrier.class = by ? by->class : CLASS_BESTEFFORT;
	if (old && (!by || queue_before(old_class, old, by->class, by->id)))
		ledger_wake(arbiter, UINT64_C(1) << index);
}

void queue_find_barriers(struct arbiter *arbiter)
{
	uint64_t left = arbiter->n_gpus == 64 ? UINT64_MAX : (UINT64_C(1) << arbiter->n_gpus) - 1;

	for (size_t i = 0; i < arbiter->n_waiting && left; i++) {
		const struct lease *lease = arbiter->waiting[i];
		uint64_t barred = barred_by(lease) & left;

		left &= ~barred;
		for (; barred; barred &= barred - 1)
			set_barrier(arbiter, (unsigned)__builtin_ctzll(barred), lease);
	}
	for (; left; left &= left - 1)
		set_barrier(arbiter, (unsigned)__builtin_ctzll(left), NULL);
}

void queue_judged(struct arbiter *arbiter, struct lease *lease, uint64_t candidates,
		  bool over_quota)
{
	bool barred = bars(lease), same = lease->wait.candidates == candidates;

	lease->wait.candidates = candidates;
	lease->wait.over_quota = over_quota;
	if (bars(lease) != barred || (barred && !same))
		queue_find_barriers(arbiter);
}

/* Wakes the waiting leases of the same user: they may exceed the quota now, and then bar no GPU. */
static void wake_own(struct arbiter *arbiter, const struct lease *granted)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, granted->tenant);

	if (!tenant || (!tenant_bounds_parts(tenant) && tenant->max_gpus.kind == LIMIT_NONE))
		return;
	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		const struct lease *lease = arbiter->waiting[i];

		if (lease->owner == granted->owner && strcmp(lease->tenant, tenant->name) == 0)
			ledger_wake(arbiter, lease->wait.candidates);
	}
}

void queue_pass(struct arbiter *arbiter, const struct lease *granted, uint64_t gpus, uint64_t id)
{
	size_t before = gpus ? rank(arbiter, granted->class, id) : 0;
	bool barred = false;

	for (size_t i = 0; i < before; i++) {
		struct lease *lease = arbiter->waiting[i];

		if (!(lease->wait.candidates & gpus) || lease->wait.over_quota)
			continue;
		lease->wait.passed++;
		if (lease->wait.passed % LEASE_PASSES_SAVED == 0)
			ledger_touch(arbiter, lease, TOUCH_SAVE);
		barred |= lease->wait.passed == LEASE_PASSES_MAX;
	}
	if (barred)
		queue_find_barriers(arbiter);
	if (gpus)
		wake_own(arbiter, granted);
}

/* ---- insert and remove ------------------------------------------------------------- */

void queue_add(struct arbiter *arbiter, struct lease *lease)
{
	size_t at = rank(arbiter, lease->class, lease->id);

	memmove(&arbiter->waiting[at + 1], &arbiter->waiting[at],
		(arbiter->n_waiting - at) * sizeof(struct lease *));
	arbiter->waiting[at] = lease;
	arbiter->n_waiting++;
	if (barred_by(lease))
		queue_find_barriers(arbiter);
}

void queue_remove(struct arbiter *arbiter, struct lease *lease)
{
	size_t at = rank(arbiter, lease->class, lease->id);

	arbiter->n_waiting--;
	memmove(&arbiter->waiting[at], &arbiter->waiting[at + 1],
		(arbiter->n_waiting - at) * sizeof(struct lease *));
	if (at < arbiter->next_examined)
		arbiter->next_examined--;
	if (barred_by(lease))
		queue_find_barriers(arbiter);
}
