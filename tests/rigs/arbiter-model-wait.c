/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arbiter-model.h"

static bool ranks_before(const struct lease *a, const struct lease *b)
{
	if (a->class != b->class)
		return a->class > b->class;
	return a->wait.turn != b->wait.turn ? a->wait.turn < b->wait.turn : a->id < b->id;
}

/* For a lease that has been passed often enough, and ranks before this one. */
static bool is_closed(const struct model *model, unsigned gpu, const struct lease *lease)
{
	for (size_t i = 0; i < model->arbiter->n_waiting; i++) {
		const struct lease *other = model->arbiter->waiting[i];

		if (other->wait.passed >= LEASE_PASSES_MAX && !other->wait.over_quota &&
		    other->wait.may_bar && model->arbiter->gpus[gpu].barrier.rank.id == other->id &&
		    (other->wait.candidates >> gpu & 1) && ranks_before(other, lease))
			return true;
		if ((other->wait.preempts >> gpu & 1) && ranks_before(other, lease))
			return true;
	}
	return false;
}

/* What was granted against what was asked, want by want. */
void model_check_grant(const struct model *model, const struct request *request,
		       const struct lease *lease)
{
	if (lease->n_partitions != request->n_wants)
		model_fail("a partition for each want");
	for (size_t i = 0; i < request->n_wants; i++) {
		const struct want *want = &request->wants[i];
		const struct partition *p = &lease->partitions[i];
		const struct gpu *gpu = &model->arbiter->gpus[p->gpu];

		if (want->exact && want->cus && p->count != want->cus)
			model_fail("exact was not");
		if (want->cus_min && p->count < want->cus_min)
			model_fail("below cus-min");
		if (want->cus_max && p->count > want->cus_max)
			model_fail("above cus-max");
		if (want->cus && !want->cus_min && p->count < want->cus - want->cus / 10 - 1)
			model_fail("below nine tenths");
		if (want->shader_engines && p->count < gpu->cus &&
		    (unsigned)__builtin_popcount(cuset_engines(&p->cus)) != want->shader_engines)
			model_fail("not so many shader engines");
		if (strcmp(want->gpu, "any") != 0 && (unsigned)atoi(want->gpu) != p->gpu)
			model_fail("another GPU");
		/* What a floor keeps for its tenant is granted all the same. */
		if (is_closed(model, p->gpu, lease) &&
		    !tenant_has_floor(tenant_named(model->arbiter->settings, lease->tenant)))
			model_fail("granted on a GPU that is closed");
		if ((want->priority != PRIORITY_BY_CLASS && p->priority != want->priority) ||
		    (want->queues && p->granted.queues != want->queues))
			model_fail("another budget");
	}
}

/* Judges all that wait, whatever has become free. */
static void check_none_fits(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;
	size_t waiting = arbiter->n_waiting;
	struct lease *next;

	if (arbiter->examined != arbiter->changes)
		model_fail("not all were looked at");
	ledger_examine_again(arbiter, UINT64_MAX);
	if (arbiter_plan_next(arbiter, &next) != 0)
		model_fail("one waits that would fit");
	if (arbiter->n_waiting != waiting)
		model_fail("one waited in vain");
}

static bool is_in_force(const struct lease *lease)
{
	return lease->state == STATE_GRANTED || lease->state == STATE_INACTIVE ||
	       (lease->state == STATE_ACTIVATING && lease->lend.never_granted);
}

/* Are the CUs that its user holds on each candidate too many for what it asks for? */
static bool keeps_itself_out(const struct model *model, const struct lease *waiting)
{
	const struct want *want = &waiting->request->wants[0];

	for (unsigned g = 0; g < model->arbiter->n_gpus; g++) {
		unsigned held = 0;

		for (size_t i = 0; i < model->arbiter->n_leases; i++) {
			const struct lease *lease = model->arbiter->leases[i];
			const struct partition *p = lease_partition_on(lease, g);

			if (lease->owner == waiting->owner && p && !lease->adaptable &&
			    p->isolation != ISOLATION_SHARED)
				held += cuset_count(&p->occupied);
		}
		if ((waiting->wait.candidates >> g & 1) &&
		    want->cus_min + held <= model->arbiter->gpus[g].cus)
			return false;
	}
	return true;
}

/* A barrier has a reason, and ends. */
static void check_barriers(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;

	queue_time_barriers(arbiter, model->now); /* check_none_fits() may have set one */
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		const struct gpu *gpu = &arbiter->gpus[i];
		const struct lease *by = ledger_find(arbiter, gpu->barrier.rank.id);

		model->barred += by != NULL;
		if (!by || (by->wait.preempts >> i & 1))
			continue;
		if (gpu->barrier.open_usec)
			model_fail("barred while it is open");
		if (keeps_itself_out(model, by))
			model_fail("barred for a lease that its own user keeps out");
		if (arbiter_next_deadline(arbiter) > model->now + MODEL_MAX_WAIT)
			model_fail("barred without a limit");
	}
}

void model_check_waited(struct model *model, const struct lease *lease, const struct lease *next)
{
	model_check_grant(model, lease->request, next);
	model_check_observed(model, next);
}

void model_check_granted(struct model *model, const struct lease *lease)
{
	if (!is_in_force(lease) || lease->reason[0] || lease->wait.passed ||
	    !(lease->touched & TOUCH_COMMITTED) ||
	    (lease->request != NULL) != lease_keeps_request(lease))
		model_fail("granted, and not as if it never waited");
	model->granted_later++;
}

void model_check_waiting(struct model *model)
{
	model->arbiter->round_steps = UINT64_MAX;
	if (model_chance(model, 30))
		check_none_fits(model);
	check_barriers(model);
}

void model_count_ended(struct model *model, const struct lease *lease)
{
	if (lease->state != STATE_ENDING || !lease->reason[0])
		model_fail("removed, and not ended");
	if (lease->n_partitions > 0)
		return;
	model->timed_out += lease->cause == RESULT_TIMED_OUT;
	model->cancelled += lease->cause == RESULT_OK;
	model->never += lease->cause == RESULT_NOT_PERMITTED || lease->cause == RESULT_NEVER_FITS ||
			lease->cause == RESULT_QUOTA_EXCEEDED;
}

void model_expire(struct model *model)
{
	arbiter_expire(model->arbiter, model->now);
	model_settle(model);
	if (arbiter_next_deadline(model->arbiter) <= model->now)
		model_fail("something is due, and not done");
}
