/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Preemption, after decide/preempt.h has chosen: revokes leases for a waiting lease of a higher class,
 * keeps them if it no longer waits, and lets those with the option requeue wait again.
 */

#include "core/change/arbiter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
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
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

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
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->revoked_for == id)
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

	if (lease->request->wait_usec > 0 || lease->request->requeue)
		return;
	refusal_wait(lease_refusal(lease), wait);
	snprintf(reason, sizeof(reason), "no lease makes room for it any more: needs %s", wait);
	arbiter_end(arbiter, lease, RESULT_NO_CAPACITY, reason);
}

/* Was the lease refused since leases were last searched that make room for it? */
static bool needs_room(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->wait.searched < lease->wait.examined && !lease->wait.over_quota &&
	       wait_is_examined(arbiter, lease);
}

/* Revokes what is in the way of a waiting lease. Returns the steps of finding it. */
static unsigned preempt(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	const struct asker asker = { .waiting = lease, .request = lease->request };
	struct advice advice = { 0 };
	uint64_t gpus = 0;
	bool revokes = false;
	int found = 0;

	if (lease->class != CLASS_BESTEFFORT)
		found = advice_find(arbiter, &asker, ADVICE_REVOCABLE, &advice);
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
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (lease->revoked_for && lease->state == STATE_REVOKING &&
		    !is_waited_for(arbiter, lease))
			keep(arbiter, lease);
	}
	return make_room_for_all(arbiter, now_usec, steps, ret);
}

void preemption_adopted(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		struct lease *by = ledger_find(arbiter, lease->revoked_for);

		if (by && by->state == STATE_WAITING)
			set_preempts(arbiter, by, by->wait.preempts | lease_gpus(lease));
	}
}

/* ---- what a plan would do ------------------------------------------------------------------ */

/* The lease returns what it must within this time. */
static void add_time(const struct arbiter *arbiter, const struct lease *lease, uint64_t now_usec,
		     uint64_t *within_usec)
{
	uint64_t over = enforce_over_at(arbiter, lease, now_usec);
	uint64_t usec = over == UINT64_MAX ? UINT64_MAX : over - now_usec;

	if (usec > *within_usec)
		*within_usec = usec;
}

/* The CUs of the GPUs of the proposal that it and all leases claim, and those that it is promised. */
static void find_claims(const struct arbiter *arbiter, const struct lease *proposal,
			struct cuset ret[static REQUEST_WANTS])
{
	borrow_all(arbiter, BORROW_CLAIMED, ret);
	for (size_t i = 0; i < proposal->n_partitions; i++) {
		const struct partition *p = &proposal->partitions[i];
		struct cuset needed;

		borrow_needed(arbiter, p, &needed);
		cuset_add(&ret[p->gpu], &needed);
		if (p->adaptation)
			cuset_add(&ret[p->gpu], &p->adaptation->promised);
	}
}

/* The lease has fewer CUs there when others have moved, or when those are claimed. now: before that. */
static void add_shrink(const struct gpu *gpu, const struct lease *now, const struct partition *p,
		       const struct cuset *claims, struct effects *effects)
{
	struct shrinking shrinking = { .lease = now->id,
				       .from = lease_partition_on(now, p->gpu)->count };
	struct cuset left = p->cus;

	if (claims)
		borrow_shrink(gpu, &p->adaptation->base, &p->cus, claims, &left);
	shrinking.to = cuset_count(&left);
	memcpy(shrinking.gpu, gpu->info.name, sizeof(shrinking.gpu));
	if (shrinking.to < shrinking.from)
		effects->shrinks[effects->n_shrinks++] = shrinking;
}

static bool is_paused_by(const struct lease *proposal, const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = lease_partition_on(proposal, lease->partitions[i].gpu);

		if (p && p->exclusive)
			return true;
	}
	return false;
}

/* The adaptable leases that shrink or pause for a grant. then: the ledger when leases have moved. proposal:
 * NULL: none is granted, or it is not active. */
static int add_borrowers(const struct arbiter *arbiter, const struct arbiter *then,
			 const struct lease *proposal, uint64_t now_usec, struct effects *effects)
{
	struct cuset claims[REQUEST_WANTS];
	size_t room = 1;

	for (size_t i = 0; i < then->n_leases; i++)
		room += lease_borrows(then->leases[i]) ? then->leases[i]->n_partitions : 0;
	effects->shrinks = calloc(room, sizeof(*effects->shrinks));
	effects->pauses = calloc(room, sizeof(*effects->pauses));
	if (!effects->shrinks || !effects->pauses)
		return -ENOMEM;
	if (proposal)
		find_claims(then, proposal, claims);
	for (size_t i = 0; i < then->n_leases; i++) {
		const struct lease *lease = then->leases[i];

		if (!lease_borrows(lease) || lease->state == STATE_ENDING)
			continue;
		for (size_t j = 0; j < lease->n_partitions; j++) {
			unsigned gpu = lease->partitions[j].gpu;
			bool there = proposal && lease_partition_on(proposal, gpu);

			add_shrink(&arbiter->gpus[gpu], ledger_find(arbiter, lease->id),
				   &lease->partitions[j], there ? &claims[gpu] : NULL, effects);
		}
		if (proposal && is_paused_by(proposal, lease))
			effects->pauses[effects->n_pauses++] = lease->id;
		if (proposal && borrow_overlap(then, proposal, lease, NULL) > 0)
			add_time(then, lease, now_usec, &effects->within_usec);
	}
	return 0;
}

static bool is_named(const struct advice *advice, uint64_t id)
{
	for (size_t i = 0; i < advice->n; i++)
		if (advice->ids[i] == id)
			return true;
	return false;
}

/* The leases that are revoked for a request, and those that shrink or pause when they have ended. */
static int add_revoked(const struct arbiter *arbiter, const struct arbiter *then,
		       const struct asker *asker, uint64_t now_usec, struct effects *effects)
{
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	uint64_t end_usec = 0;
	struct arbiter without;
	int found, r;

	found = advice_find(then, asker, ADVICE_REVOCABLE, &effects->revoked);
	r = found < 0 ? found : ledger_copy(then, &without);
	if (r < 0)
		return r;
	for (size_t i = 0; found > 0 && i < then->n_leases; i++) {
		const struct lease *lease = then->leases[i];

		if (!advice_is_leaving(lease) && !is_named(&effects->revoked, lease->id))
			continue;
		ledger_leave_out(&without, lease);
		add_time(then, lease, now_usec, &end_usec);
	}
	if (found > 0)
		plan_new(&without, asker->caller, asker->request, false, &proposal, &result);
	r = add_borrowers(arbiter, &without, proposal, now_usec, effects);
	ledger_copy_done(&without);
	if (__builtin_add_overflow(effects->within_usec, end_usec, &effects->within_usec))
		effects->within_usec = UINT64_MAX;
	return r;
}

/* The leases that move, in one step or in two. */
static void add_moves(const struct arbiter *arbiter, const struct move_set *set, uint64_t now_usec,
		      struct effects *effects)
{
	uint64_t steps[2] = { 0, 0 };

	for (size_t i = 0; i < set->n; i++) {
		const struct lease *lease = ledger_find(arbiter, set->next[i]->id);

		if (set->next[i]->lend.moves > lease->lend.moves)
			effects->moves[effects->n_moves++] = lease->id;
		add_time(arbiter, lease, now_usec, &steps[i >= set->n_first]);
	}
	if (__builtin_add_overflow(steps[0], steps[1], &steps[0]))
		steps[0] = UINT64_MAX;
	effects->within_usec = max_u64(effects->within_usec, steps[0]);
}

static int find_effects(const struct arbiter *arbiter, const struct arbiter *then,
			const struct asker *asker, const struct lease *proposal, uint64_t now_usec,
			struct effects *ret)
{
	struct effects effects = { 0 };
	int r;

	if (proposal && proposal->state == STATE_WAITING)
		r = add_revoked(arbiter, then, asker, now_usec, &effects);
	else
		r = add_borrowers(arbiter, then,
				  proposal && proposal->state != STATE_INACTIVE ? proposal : NULL,
				  now_usec, &effects);
	if (r < 0)
		effects_done(&effects);
	else
		*ret = effects;
	return r;
}

int arbiter_effects(const struct arbiter *arbiter, const struct caller *caller,
		    const struct request *request, const struct lease *proposal, uint64_t now_usec,
		    struct effects *ret)
{
	const struct asker asker = { .caller = caller, .request = request };

	return find_effects(arbiter, arbiter, &asker, proposal, now_usec, ret);
}

int arbiter_plan_after(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, const struct move_set *set, uint64_t now_usec,
		       struct lease **ret, struct effects *effects, struct result *result)
{
	const struct asker asker = { .caller = caller, .request = request };
	struct arbiter after;
	int r;

	if (ledger_copy(arbiter, &after) < 0)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < set->n; i++)
		ledger_leave_out(&after, ledger_find(arbiter, set->next[i]->id));
	for (size_t i = 0; i < set->n; i++)
		ledger_put_back(&after, set->next[i]);
	r = arbiter_plan(&after, caller, request, ret, result);
	if (r >= 0 && find_effects(arbiter, &after, &asker, *ret, now_usec, effects) < 0) {
		*ret = lease_free(*ret);
		r = result_set(result, RESULT_NO_MEMORY, "out of memory");
	}
	if (r >= 0)
		add_moves(arbiter, set, now_usec, effects);
	ledger_copy_done(&after);
	return r;
}

void effects_done(struct effects *effects)
{
	free(effects->shrinks);
	free(effects->pauses);
	*effects = (struct effects){ 0 };
}
