/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/decide/disturbance.h"
#include "core/decide/divide.h"
#include "core/decide/exclusive.h"
#include "util/base.h"

/* What the leases of each GPU claim, and what they are promised. */
struct claims {
	struct cuset claimed[REQUEST_WANTS], promised[REQUEST_WANTS];
};

/* ---- promises ---------------------------------------------------------------------- */

/* Ends a promise that is kept, that CUs were claimed of, or whose lease takes no part in rounds of growth any more. */
static void end_promise(const struct lease *lease, const struct partition *p,
			const struct cuset *claimed)
{
	struct cuset others = *claimed, *promised = &p->adaptation->promised;

	cuset_remove(&others, &p->adaptation->base);
	if (cuset_overlap(promised, &others) ||
	    (lease->state == STATE_GRANTED &&
	     (!lease_joins(lease) || cuset_within(promised, &p->cus))))
		*promised = (struct cuset){ 0 };
}

static void find_claims(struct arbiter *arbiter, struct claims *ret)
{
	borrow_all(arbiter, BORROW_CLAIMED, ret->claimed);
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease)
			if (partition_is_promised(p))
				end_promise(lease, p, &ret->claimed[p->gpu]);
	borrow_all(arbiter, BORROW_PROMISED, ret->promised);
}

/* ---- shrink ------------------------------------------------------------------------ */

/* To change the mask of one queue, HWS takes all queues of the GPU off the hardware:
 * execute_queues_cpsch(), kfd_device_queue_manager.c. MES (gfx11) takes only that one. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu)
{
	const struct partition *changed = lease_partition_on(by, gpu);

	if (!changed || arbiter->gpus[gpu].info.scheduler == SCHEDULER_MES)
		return;
	FOR_EACH_LEASE(lease, arbiter) {
		if (lease == by || lease->class != CLASS_REALTIME ||
		    lease->state != STATE_GRANTED || !lease_partition_on(lease, gpu))
			continue;
		lease->lend.disturbances += max_u64(changed->used.queues, 1);
		ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE);
	}
}

void lend_rest(const struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	lease->lend.rests_usec = now_usec + arbiter->settings->activate_min_interval_usec;
}

/* Takes from the mask the CUs that other leases claim or are promised. false: there were none. */
static bool shrink_partition(struct arbiter *arbiter, const struct lease *lease,
			     struct partition *p, const struct claims *claims)
{
	const struct cuset claim = partition_claim(p);
	struct cuset cus, others = claims->promised[p->gpu];

	if (lease_joins(lease))
		cuset_remove(&others, &p->adaptation->promised);
	cuset_add(&others, &claims->claimed[p->gpu]);
	cuset_remove(&others, &claim);
	cuset_add(&others, &p->adaptation->yields);
	p->adaptation->yields = (struct cuset){ 0 };
	if (lease->lend.unbound)
		others = arbiter->gpus[p->gpu].all;
	if (!borrow_shrink(&arbiter->gpus[p->gpu], &p->adaptation->base, &p->cus, &others, &cus)) {
		/* It keeps more than it was promised. */
		if (lease->state == STATE_GRANTED &&
		    cuset_count(&p->adaptation->promised) <= p->count)
			p->adaptation->promised = (struct cuset){ 0 };
		return false;
	}
	if (cuset_empty(&p->adaptation->before))
		p->adaptation->before = p->cus;
	partition_set_mask(p, &arbiter->gpus[p->gpu].info.geometry, &cus);
	if (lease->lend.never_granted)
		p->occupied = cus; /* no queue ever had the other CUs */
	else
		lend_disturb(arbiter, lease, p->gpu);
	return true;
}

static void shrink(struct arbiter *arbiter, struct lease *lease, const struct claims *claims,
		   uint64_t now_usec)
{
	bool changed = false, paused;

	FOR_EACH_PARTITION(p, lease) {
		paused = pause_partition(p, lease, exclusive_on(arbiter, p->gpu, lease));
		if (paused && !lease->lend.never_granted)
			lend_disturb(arbiter, lease, p->gpu);
		changed |= paused;
		changed |= shrink_partition(arbiter, lease, p, claims);
	}
	pause_count(lease, now_usec);
	if (!changed)
		return;
	lease->generation++;
	lend_rest(arbiter, lease, now_usec);
	lease->verify.pending = lease->verify.false_ack = false;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	ledger_examine_again(arbiter, lease_gpus(lease)); /* its quota has room again */
}

/* What an unbound borrower has not acknowledged counts as returned once its deadline has passed and no
 * process of it is on a GPU, whichever comes last. */
static void expire(struct arbiter *arbiter, struct lease *lease)
{
	bool returned = true;

	if (lease->enforce.step == ENFORCE_STEP_NONE || !enforce_expires(arbiter, lease))
		return;
	FOR_EACH_PARTITION(p, lease)
		returned &= cuset_equal(&p->occupied, &p->cus);
	if (returned)
		return;
	ledger_follow(arbiter, lease);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* ---- grants and deadlines ---------------------------------------------------------- */

static void grant(struct arbiter *arbiter, struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (lease->adaptable && lease->lend.never_granted)
			divide_begin(arbiter, lease, p, false);
	lease->state = STATE_GRANTED;
	lease->lend.never_granted = false;
	lease->deadline_usec = lease->lend.give_up_usec = UINT64_MAX;
	memset(lease->reason, 0, sizeof(lease->reason));
	lease_drop_request(lease);
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_ACTIVE);
	if (lease->adaptable)
		queue_wake_own(arbiter, lease); /* its user holds its whole mask now */
}

static void finish_resize(struct arbiter *arbiter, struct lease *lease)
{
	ledger_discharge(arbiter, lease);
	borrow_finish_resize(arbiter, lease);
	ledger_charge(arbiter, lease);
	ledger_wake(arbiter, lease_gpus(lease));
	memset(lease->reason, 0, sizeof(lease->reason));
	FOR_EACH_PARTITION(p, lease)
		lend_disturb(arbiter, lease, p->gpu);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* When the activating lease is granted, or gives up, at the latest, even if no borrower answers.
 * UINT64_MAX: a borrower cannot be made to give back, and it never gives up. */
static uint64_t granted_by(const struct arbiter *arbiter, const struct lease *lease,
			   uint64_t now_usec)
{
	uint64_t by = 0;

	FOR_EACH_LEASE(other, arbiter)
		if (borrow_overlap(arbiter, lease, other, NULL) > 0)
			by = max_u64(by, enforce_over_at(arbiter, other, now_usec));
	return min_u64(lease->lend.give_up_usec, by);
}

/* A deadline that was published stays as long as it can be kept. */
static void set_granted_by(struct arbiter *arbiter, struct lease *lease, uint64_t by)
{
	if (!lease_deadline_awaits(lease) || lease->deadline_usec == by ||
	    (lease->deadline_usec != UINT64_MAX && by != lease->lend.give_up_usec))
		return;
	lease->deadline_usec = by;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* Is an activating lease disturbed whose CUs are free? It is granted when that has gone, at no time that is
 * known. */
static bool is_disturbed(const struct arbiter *arbiter, const struct lease *lease,
			 struct refusal *refusal)
{
	FOR_EACH_PARTITION(p, lease)
		if (disturbance_refuses(arbiter, lease, p, refusal))
			return true;
	return false;
}

/* Grants an activating lease, or what one was resized to, if its CUs are free. */
static void grant_or_wait(struct arbiter *arbiter, const struct arbiter *beside,
			  struct lease *lease, uint64_t now_usec)
{
	const struct lease *by = borrow_contested(beside, lease);
	struct refusal refusal = { .n_processes = 0 };

	if (!by && lease->state == STATE_GRANTED) {
		finish_resize(arbiter, lease);
		return;
	}
	if (!by && !is_disturbed(arbiter, lease, &refusal)) {
		grant(arbiter, lease);
		return;
	}
	set_granted_by(arbiter, lease,
		       by ? granted_by(beside, lease, now_usec) : lease->lend.give_up_usec);
	reason_awaits(arbiter, lease, by, &refusal);
}

/* Are CUs reclaimed that the borrower occupies? */
static bool is_needed(const struct arbiter *arbiter, const struct lease *borrower)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_awaits_cus(lease) && borrow_overlap(arbiter, lease, borrower, NULL) > 0)
			return true;
	return false;
}

void lend_shorten_grace(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	uint64_t deadline = now_usec + arbiter->settings->activate_grace_usec;

	if (lease->deadline_usec <= deadline)
		return;
	lease->deadline_usec = lease->enforce.due_usec = deadline;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* Starts the grace of a borrower when a lease first needs its CUs, and ends it when none does. A
 * second lease that needs them meanwhile does not extend the grace: the first was promised a
 * deadline. */
static void set_deadline(struct arbiter *arbiter, struct lease *lease, bool needed,
			 uint64_t now_usec)
{
	if (lease->state == STATE_REVOKING && needed)
		lend_shorten_grace(arbiter, lease, now_usec);
	if (lease->state == STATE_REVOKING || (lease->state == STATE_ENDING && lease->revoked))
		return; /* its end has a deadline already */
	if (needed && lease->enforce.step == ENFORCE_STEP_NONE &&
	    lease->enforce.due_usec == UINT64_MAX) {
		lease->enforce.due_usec = now_usec + arbiter->settings->activate_grace_usec;
		if (lease->state == STATE_GRANTED)
			lease->deadline_usec = lease->enforce.due_usec;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	} else if (!needed && (lease->enforce.step != ENFORCE_STEP_NONE ||
			       lease->enforce.due_usec != UINT64_MAX)) {
		lease->enforce.step = ENFORCE_STEP_NONE;
		lease->enforce.due_usec = UINT64_MAX;
		if (lease->state == STATE_GRANTED)
			lease->deadline_usec = UINT64_MAX;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

/* ---- after every change ------------------------------------------------------------ */

/* Fixes the time of the next round of growth. */
static void schedule_growth(struct arbiter *arbiter, uint64_t now_usec)
{
	const struct settings *settings = arbiter->settings;

	FOR_EACH_GPU(gpu, arbiter) {
		uint64_t last = max_u64(gpu->lend.grown_usec, gpu->lend.divided_usec);
		uint64_t next = last + settings->activate_min_interval_usec;

		if (gpu->lend.grow_usec != UINT64_MAX)
			continue;
		gpu->lend.grow_usec = now_usec + settings->grow_delay_usec;
		if (last > 0 && gpu->lend.grow_usec < next)
			gpu->lend.grow_usec = next;
	}
}

/* When promised masks that are free can be granted: all that are free at this time, in one round. */
static void schedule_promises(struct arbiter *arbiter, struct ledger_view *view, uint64_t now_usec)
{
	uint64_t free_at[REQUEST_WANTS], next;

	memset(free_at, 0xff, sizeof(free_at));
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease)
			if (borrow_may_join(ledger_on(view, p->gpu), lease, p))
				free_at[p->gpu] = min_u64(free_at[p->gpu], lease->lend.rests_usec);
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (free_at[i] == UINT64_MAX) {
			gpu->lend.join_usec = UINT64_MAX;
		} else if (free_at[i] > now_usec || gpu->lend.join_usec > now_usec) {
			next = gpu->lend.grown_usec > 0
				       ? gpu->lend.grown_usec +
						 arbiter->settings->activate_min_interval_usec
				       : 0;
			gpu->lend.join_usec = max_u64(max_u64(free_at[i], next), now_usec);
		}
	}
}

void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec)
{
	struct claims claims;
	struct ledger_view view;
	size_t borrowers = 0, activating = 0;

	cover_sum_up(arbiter); /* leases drift or have ended, or policy has changed */
	FOR_EACH_LEASE(lease, arbiter) {
		borrowers += lease_borrows(lease);
		activating += lease_awaits_cus(lease);
	}
	if (borrowers + activating == 0 && !arbiter->lending)
		return;
	arbiter->lending = borrowers > 0;
	if (borrowers > 0)
		find_claims(arbiter, &claims);
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_borrows(lease) && lease->state != STATE_ENDING) {
			shrink(arbiter, lease, &claims, now_usec);
			expire(arbiter, lease);
		}
	ledger_view(arbiter, &view);
	if (activating > 0)
		FOR_EACH_LEASE(lease, arbiter)
			if (lease_awaits_cus(lease))
				grant_or_wait(arbiter, ledger_beside(&view, arbiter, lease), lease,
					      now_usec);
	FOR_EACH_LEASE(lease, arbiter) {
		if (!lease_borrows(lease))
			continue;
		set_deadline(arbiter, lease,
			     activating > 0 &&
				     is_needed(ledger_beside(&view, arbiter, lease), lease),
			     now_usec);
		pause_report(arbiter, lease, now_usec);
	}
	borrow_sum_up(arbiter);
	schedule_growth(arbiter, now_usec);
	schedule_promises(arbiter, &view, now_usec);
	free(view.leases);
}

double lend_fairness(const struct arbiter *arbiter, unsigned gpu)
{
	double sum = 0, squares = 0;
	unsigned n = 0;

	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = lease->adaptable ? lease_partition_on(lease, gpu)
							     : NULL;
		double x = p ? (double)p->count / share_weight(arbiter, lease) : 0;

		n += p != NULL;
		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}
