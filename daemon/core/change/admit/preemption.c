/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Preemption, after decide/preempt.h has chosen: revokes leases for a waiting lease of a higher class,
 * keeps them if it no longer waits, and lets those with the option requeue wait again.
 */

#include "core/change/arbiter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/policy/request.h"

/* ---- leases that are kept after all -------------------------------------------------------- */

static void keep(struct arbiter *arbiter, struct lease *lease)
{
	/* After a restart borrowers may have its CUs still. */
	lease->state = lease->lend.idle ? STATE_ACTIVATING : STATE_GRANTED;
	lease->lend.idle = false;
	lease->revoked = false;
	lease->revoked_for = 0;
	lease->returned = false;
	lease->generation++; /* an acknowledgement of the revocation that arrives now is void */
	lease->verify.pending = lease->verify.false_ack = false;
	lease->deadline_usec = lease->enforce.due_usec = UINT64_MAX;
	memset(lease->reason, 0, sizeof(lease->reason));
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_PREEMPT);
}

static bool is_waited_for(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct lease *by = ledger_find(arbiter, lease->revoked_for);

	return by && by->state == STATE_WAITING;
}

/* ---- leases that wait again ------------------------------------------------------------------ */

static void make_waiting(struct lease *next)
{
	if (next->revoked_for)
		snprintf(next->reason, sizeof(next->reason),
			 "waits again: it was revoked for lease %" PRIu64, next->revoked_for);
	else
		snprintf(next->reason, sizeof(next->reason),
			 "waits again: a lease does not return CUs to it in time");
	next->state = STATE_WAITING;
	next->revoked = next->returned = false;
	next->revoked_for = 0;
	next->generation++; /* it has no partitions any more */
	next->acknowledged = next->generation;
	next->deadline_usec = next->lend.give_up_usec;
	next->lend.give_up_usec = next->enforce.due_usec = UINT64_MAX;
	next->lend.idle = next->lend.never_granted = false;
	next->reset.pending = false; /* no queue of it is left that was lost */
	next->reset.partition = 0;
	memset(&next->wait, 0, sizeof(next->wait));
}

int arbiter_plan_requeue(struct arbiter *arbiter, struct lease **ret)
{
	FOR_EACH_LEASE(lease, arbiter) {
		if (!(lease->returned && lease_requeues(lease)) &&
		    !wait_begins_elsewhere(arbiter, lease))
			continue;
		if (lease_next_version(lease, 0, ret) < 0)
			return 0;
		make_waiting(*ret);
		(*ret)->lend.late_seen = arbiter->times_late;
		return 1;
	}
	return 0;
}

/* ---- leases that are revoked --------------------------------------------------------------- */

static bool any_revoked_for(const struct arbiter *arbiter, uint64_t id)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease->revoked_for == id)
			return true;
	return false;
}

/* An administrator may have revoked the lease before, with a later deadline: it stays revoked, and this is false. */
static bool revoke(struct arbiter *arbiter, struct lease *lease, const struct lease *by,
		   uint64_t now_usec)
{
	char reason[REQUEST_TEXT];

	if (lease->state == STATE_REVOKING) {
		lend_shorten_grace(arbiter, lease, now_usec);
		return false;
	}
	snprintf(reason, sizeof(reason), "revoked for lease %" PRIu64 " of class %s", by->id,
		 class_names[by->class]);
	lease->revoked_for = by->id;
	lifecycle_revoke(arbiter, lease, now_usec + arbiter->settings->activate_grace_usec, reason);
	ledger_touch(arbiter, lease, TOUCH_PREEMPT);
	return true;
}

static void set_preempts(struct arbiter *arbiter, struct lease *lease, uint64_t gpus)
{
	if (lease->wait.preempts == gpus)
		return;
	lease->wait.preempts = gpus;
	queue_find_barriers(arbiter);
	ledger_touch(arbiter, lease, TOUCH_REASON);
}

/* A request that may not wait does so only for leases that make room for it. */
static void end_if_vain(struct arbiter *arbiter, struct lease *lease)
{
	char wait[REFUSAL_TEXT], reason[REFUSAL_TEXT + 64];

	if (lease_may_wait(lease))
		return;
	refusal_wait(&lease->refusal, wait);
	snprintf(reason, sizeof(reason), "no lease makes room for it any more: needs %s", wait);
	arbiter_end(arbiter, lease,
		    lease->wait.over_quota ? RESULT_QUOTA_EXCEEDED : RESULT_NO_CAPACITY, reason);
}

/* Was the lease refused since leases were last searched that make room for it? For one above its quota there are
 * none. */
static bool needs_room(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->wait.searched < lease->wait.examined &&
	       !(lease->wait.over_quota && lease_may_wait(lease)) &&
	       wait_is_examined(arbiter, lease);
}

/* Revokes what is in the way of a waiting lease. Returns the steps of finding it. */
static unsigned preempt(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	struct advice advice = { 0 };
	uint64_t gpus = 0;
	bool revokes = false;
	int found = 0;

	if (lease->class != CLASS_BESTEFFORT)
		found = advice_find(arbiter, lease, ADVICE_REVOCABLE, &advice);
	if (found < 0) {
		lease->wait.searched = 0;
		return advice.steps;
	}
	for (size_t i = 0; i < advice.n; i++) {
		struct lease *revoked = ledger_find(arbiter, advice.ids[i]);

		gpus |= lease_gpus(revoked);
		revokes |= revoke(arbiter, revoked, lease, now_usec);
	}
	set_preempts(arbiter, lease, gpus);
	if (found == 0)
		end_if_vain(arbiter, lease);
	if (revokes)
		ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE | TOUCH_PREEMPT);
	return advice.steps;
}

/* Leases move for a waiting lease, or are revoked for it where moves do not help, unless some are already. */
static bool make_room_for(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec,
			  unsigned *steps, struct move_set *ret)
{
	int found = -EAGAIN;
	unsigned taken = gang_walk_steps(arbiter);

	*ret = (struct move_set){ 0 };
	if (!any_revoked_for(arbiter, lease->id))
		found = wait_plan_moves(arbiter, lease, now_usec, ret);
	taken += ret->steps;
	if (found <= 0)
		lease->wait.searched = lease->wait.examined;
	if (found == 0)
		taken += preempt(arbiter, lease, now_usec);
	lease->wait.steps += taken;
	*steps -= min_u(*steps, taken);
	return found > 0;
}

/* For each waiting lease once, those first that the last turn has left. */
static bool make_room_for_all(struct arbiter *arbiter, uint64_t now_usec, unsigned *steps,
			      struct move_set *ret)
{
	size_t at = arbiter->next_searched;

	arbiter->next_searched = 0;
	for (size_t left = arbiter->n_waiting; left > 0 && arbiter->n_waiting > 0; left--) {
		size_t n = arbiter->n_waiting;

		at = at < n ? at : 0;
		if (needs_room(arbiter, arbiter->waiting[at])) {
			arbiter->next_searched = at;
			if (*steps == 0)
				return false;
			if (make_room_for(arbiter, arbiter->waiting[at], now_usec, steps, ret))
				return true;
			arbiter->next_searched = 0;
		}
		at += arbiter->n_waiting == n; /* a lease that ends has left the queue */
	}
	return false;
}

int arbiter_make_room(struct arbiter *arbiter, uint64_t now_usec, unsigned *steps,
		      struct move_set *ret)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease->revoked_for && lease->state == STATE_REVOKING &&
		    !is_waited_for(arbiter, lease))
			keep(arbiter, lease);
	return make_room_for_all(arbiter, now_usec, steps, ret);
}

void preemption_adopted(struct arbiter *arbiter)
{
	FOR_EACH_LEASE(lease, arbiter) {
		struct lease *by = ledger_find(arbiter, lease->revoked_for);

		if (by && by->state == STATE_WAITING)
			set_preempts(arbiter, by, by->wait.preempts | lease_gpus(lease));
	}
}
