/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <stdlib.h>
#include <string.h>

#include "core/decide/floor.h"

/* Does the next version claim more CUs, CUs that the present one does not occupy, or more of a
 * budget? The base of an adaptable lease may move. */
static bool takes_more(const struct partition *next, const struct partition *now)
{
	const struct cuset claim = partition_claim(next), claimed = partition_claim(now);

	return cuset_count(&claim) > cuset_count(&claimed) ||
	       (!next->adaptation && !cuset_within(&claim, &claimed)) ||
	       !budget_within(&next->charged, &now->charged);
}

/* Puts the next version of a lease into the lease in force, which others have pointers to. *proposal becomes the one
 * before. */
static void replace(struct arbiter *arbiter, struct lease *lease, struct lease *proposal)
{
	struct lease old = *lease;

	ledger_discharge(arbiter, lease);
	*lease = *proposal;
	lease->touched = old.touched;
	lease->touched_next = old.touched_next;
	if (lease->state != STATE_WAITING) /* arbiter_give_time() may have come between */
		lease->enforce = old.enforce;
	/* The masks that the holder acknowledged last are replaced: they need no check any more. */
	if (lease->generation != old.generation)
		lease->verify.pending = lease->verify.false_ack = false;
	*proposal = old;
	cap_mark(lease);
	ledger_recount_shared(arbiter, proposal);
	ledger_charge(arbiter, lease);
}

/* The lease has its next version. */
static void note_change(struct arbiter *arbiter, const struct lease *lease, const struct lease *old)
{
	const struct rank last = { lease->class, UINT64_MAX, UINT64_MAX };
	uint64_t more = 0, freed = 0;
	/* For other leases of its user: an active lease refuses an exclusive one. */
	bool less_room = old->state == STATE_INACTIVE && lease->state != STATE_INACTIVE;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i], *had = &old->partitions[i];
		const struct cuset claim = partition_claim(p), claimed = partition_claim(had);

		if (takes_more(p, had))
			more |= UINT64_C(1) << p->gpu;
		less_room |= p->count > had->count;
		if (!cuset_within(&claimed, &claim))
			freed |= UINT64_C(1) << p->gpu; /* the base of an adaptable lease */
		if (!cuset_equal(&p->cus, &had->cus))
			lend_disturb(arbiter, lease, p->gpu);
	}
	ledger_wake(arbiter, freed);
	if (lease->lend.moves != old->lend.moves) { /* it made room for the leases that wait */
		ledger_wake(arbiter, lease_gpus(lease));
	} else {
		queue_pass(arbiter, lease, more, &last);
		if (less_room && !more)
			queue_wake_own(arbiter, lease);
	}
	/* An inactive exclusive lease does not refuse others any more. */
	if (lease->state == STATE_INACTIVE)
		ledger_wake(arbiter, lease_gpus(lease));
}

/* It is granted, and passes the leases that rank before it. */
static void note_granted(struct arbiter *arbiter, const struct lease *lease,
			 const struct rank *rank)
{
	queue_pass(arbiter, lease, lease_gpus(lease), rank);
	ledger_grow(arbiter, lease_gpus(lease));
	growth_join(arbiter, lease);
}

static void add(struct arbiter *arbiter, struct lease *lease)
{
	const struct rank rank = lease_rank(lease);

	lease->wait.examined = arbiter->changes;
	ledger_insert(arbiter, lease);
	ledger_touch(arbiter, lease, TOUCH_ADDED);
	if (lease->state == STATE_WAITING)
		queue_add(arbiter, lease);
	else
		note_granted(arbiter, lease, &rank);
}

/* A grant changes which CUs the floors keep: others may be free for a waiting lease then. */
static void wake_for_floors(struct arbiter *arbiter, const struct lease *lease)
{
	if (floor_configured(arbiter->settings))
		ledger_examine_again(arbiter, lease_gpus(lease));
}

struct lease *arbiter_commit(struct arbiter *arbiter, struct lease *proposal)
{
	struct lease *lease = ledger_find(arbiter, proposal->id);
	struct rank rank;

	if (!lease) {
		add(arbiter, proposal);
		wake_for_floors(arbiter, proposal);
		return proposal;
	}
	rank = lease_rank(lease);
	if (lease->state == STATE_WAITING) {
		queue_served(arbiter, lease);
		queue_remove(arbiter, lease);
	}
	replace(arbiter, lease, proposal);
	if (proposal->state == STATE_WAITING) {
		note_granted(arbiter, lease, &rank);
	} else if (lease->state == STATE_WAITING) { /* again */
		queue_add(arbiter, lease);
		ledger_wake(arbiter, lease_gpus(proposal));
		ledger_touch_waiting(arbiter, proposal->revoked_for);
	} else {
		note_change(arbiter, lease, proposal);
	}
	wake_for_floors(arbiter, lease);
	ledger_touch(arbiter, lease, TOUCH_COMMITTED);
	lease_free(proposal);
	return lease;
}

void arbiter_commit_drain(struct arbiter *arbiter, uint64_t drained)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		bool drain = drained & UINT64_C(1) << i;

		if (gpu->draining == drain)
			continue;
		gpu->draining = drain;
		gpu->changed |= !gpu->absent;
		if (!drain)
			ledger_wake(arbiter, UINT64_C(1) << i);
	}
}

int arbiter_drain(struct arbiter *arbiter, const char *gpu, bool drain)
{
	uint64_t drained;
	int r = arbiter_plan_drain(arbiter, gpu, drain, &drained);

	if (r >= 0)
		arbiter_commit_drain(arbiter, drained);
	return r;
}

static uint64_t next_of_lease(const struct arbiter *arbiter, const struct lease *lease)
{
	uint64_t next = min_u64(lease->lend.give_up_usec, lease->enforce.due_usec);

	if (lease->abandoned && lease->state != STATE_ENDING)
		return 0;
	if (lease->claim_usec > 0)
		next = min_u64(next, lease->claim_usec);
	next = min_u64(next, lifecycle_notice_at(arbiter, lease));
	return min_u64(next, pause_report_at(arbiter, lease));
}

uint64_t arbiter_next_deadline(const struct arbiter *arbiter)
{
	uint64_t next = queue_next_limit(arbiter);

	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		const struct lease *lease = arbiter->waiting[i];

		next = min_u64(next, lease->deadline_usec);
		if (lease->wait.search_usec)
			next = min_u64(next, lease->wait.search_usec);
	}
	FOR_EACH_LEASE(lease, arbiter)
		next = min_u64(next, next_of_lease(arbiter, lease));
	FOR_EACH_GPU(gpu, arbiter) {
		if (arbiter->lending && gpu->lend.grow_usec > 0)
			next = min_u64(next, gpu->lend.grow_usec);
		if (arbiter->lending)
			next = min_u64(next, gpu->lend.join_usec);
		if (gpu->reset_until_usec > 0)
			next = min_u64(next, gpu->reset_until_usec);
	}
	return next;
}
