/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Preemption: leases that are revoked for a waiting lease of a higher class. */

#include "check.h"
#include "lend-rig.h"
#include "request-text.h"
#include "wait-rig.h"

/* GPUs of 60 CUs, on which policy allows to revoke the leases of everybody else. */
static struct lending preemptible_on(size_t gpus)
{
	struct lending l = lending_of(gpus);
	struct settings *settings = l.s.arbiter->settings;

	settings->tenants[settings->n_tenants - 1].preempt = true;
	return l;
}

static struct lending preemptible(void)
{
	return preemptible_on(1);
}

/* All that the daemon does after an event. */
static void turn(struct lending *l)
{
	unsigned steps = ROOM_STEPS;
	struct move_set set;

	do {
		settle(l);
		while (arbiter_next_step(l->s.arbiter, l->now, false, &steps, &set) != STEP_NONE)
			commit_all(l, &set);
	} while (l->s.arbiter->touched);
}

/* Reserves as the daemon does, without --wait. NULL: refused. */
static struct lease *want(struct lending *l, uid_t uid, int lease_class, unsigned cus)
{
	struct request request = request_for(cus);
	struct caller caller = caller_of(uid);
	struct lease *lease;

	request.class = lease_class;
	result_done(&l->s.result);
	if (preempt_plan(l->s.arbiter, &caller, &request, &lease, &l->s.result) < 0)
		return NULL;
	if (lease->state == STATE_WAITING)
		lease->deadline_usec = l->now + 10 * SECOND_USEC;
	lease = arbiter_commit(l->s.arbiter, lease);
	arbiter_add_holder(l->s.arbiter, lease->id);
	turn(l);
	return lease;
}

static void answer(struct lending *l, const struct lease *lease)
{
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, lease->generation) == 0);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
}

FIXTURE(struct lending, l, *l = preemptible(), lending_done(l));

TEST_WITH(a_higher_class_gets_the_room_of_the_cheapest_lease_that_may_be_revoked, struct lending *l)
{
	struct lease *large = grant(&l->s, ANY, 40), *small = grant(&l->s, ANY, 20), *rt;
	uint64_t id = small->id;
	char text[64];

	rt = want(l, VR, -1, 15);
	CHECK(rt && rt->state == STATE_WAITING && rt->wait.preempts == 1);
	CHECK(small->state == STATE_REVOKING && small->revoked_for == rt->id && small->revoked);
	CHECK(small->deadline_usec == l->now + l->s.arbiter->settings->activate_grace_usec);
	snprintf(text, sizeof(text), "lease %llu of class realtime", (unsigned long long)rt->id);
	CHECK(strstr(small->reason, text));
	snprintf(text, sizeof(text), "waits for lease %llu, which is revoked for it",
		 (unsigned long long)id);
	CHECK(strcmp(reason_of(l->s.arbiter, rt), text) == 0);
	CHECK(large->state == STATE_GRANTED && !large->revoked_for);
	answer(l, small);
	CHECK(!ledger_find(l->s.arbiter, id));
	CHECK(rt->state == STATE_GRANTED && rt->partitions[0].count == 15 &&
	      !*reason_of(l->s.arbiter, rt));
	CHECK(rt->wait.preempts == 0 && l->s.arbiter->gpus[0].barrier.rank.id == 0);
}

TEST_WITH(several_leases_are_revoked_where_one_is_not_enough, struct lending *l)
{
	struct lease *leases[5], *rt;

	for (unsigned i = 0; i < 5; i++)
		leases[i] = grant(&l->s, ANY, 12);
	rt = want(l, VR, -1, 60);
	CHECK(rt && strstr(reason_of(l->s.arbiter, rt), " and 2 more, which are revoked for it"));
	for (unsigned i = 0; i < 5; i++) {
		CHECK(leases[i]->state == STATE_REVOKING && rt->state == STATE_WAITING);
		answer(l, leases[i]);
		if (i == 3)
			CHECK(strstr(reason_of(l->s.arbiter, rt), "lease 5"));
	}
	CHECK(rt->state == STATE_GRANTED && rt->partitions[0].count == 60);
}

TEST_WITH(two_besteffort_leases_are_revoked_before_one_guaranteed_lease, struct lending *l)
{
	struct settings *settings = l->s.arbiter->settings;
	struct lease *lab = grant(&l->s, LAB, 30), *rt;
	struct lease *leases[] = { grant(&l->s, ANY, 15), grant(&l->s, ANY, 15) };

	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].preempt = true;
	rt = want(l, VR, -1, 30);
	CHECK(rt && lab->state == STATE_GRANTED);
	CHECK(leases[0]->state == STATE_REVOKING && leases[1]->state == STATE_REVOKING);
}

TEST(a_gang_revokes_two_leases_on_other_gpus_instead_of_three)
{
	_cleanup_(lending_done) struct lending l = preemptible_on(3);
	struct request request = request_of("cus=30 | cus=30");
	struct caller caller = caller_of(LAB);
	struct lease *half = grant_as(&l.s, ANY, "cus=30 gpu=0"), *most, *lease;

	CHECK(grant_as(&l.s, ANY, "cus=30 gpu=0"));
	for (unsigned i = 0; i < 4; i++)
		CHECK(grant_as(&l.s, ANY, "cus=15 gpu=1"));
	most = grant_as(&l.s, ANY, "cus=45 gpu=2");
	CHECK(preempt_plan(l.s.arbiter, &caller, &request, &lease, &l.s.result) == 0);
	lease->deadline_usec = l.now + 10 * SECOND_USEC;
	lease = arbiter_commit(l.s.arbiter, lease);
	turn(&l);
	for (size_t i = 0; i < l.s.arbiter->n_leases; i++)
		CHECK(!l.s.arbiter->leases[i]->revoked_for || l.s.arbiter->leases[i] == half ||
		      l.s.arbiter->leases[i] == most);
	CHECK(half->revoked_for == lease->id && most->revoked_for == lease->id);
}

TEST_WITH(no_lease_is_revoked_against_policy_or_for_its_own_class, struct lending *l)
{
	struct settings *settings = l->s.arbiter->settings;
	struct lease *lab = grant(&l->s, LAB, 30), *any = grant(&l->s, ANY, 30);

	CHECK(lab && any);
	CHECK(!want(l, ANY, CLASS_BESTEFFORT, 20) && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(!want(l, VR, -1, 60) && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(lab->state == STATE_GRANTED && any->state == STATE_GRANTED);
	settings->tenants[settings->n_tenants - 1].preempt = false;
	CHECK(!want(l, VR, -1, 30) && l->s.result.kind == RESULT_NO_CAPACITY);
	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].preempt = true;
	CHECK(!want(l, LAB, -1, 60) && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(want(l, VR, -1, 60));
	CHECK(lab->state == STATE_REVOKING && any->state == STATE_REVOKING);
}

TEST_WITH(a_quota_of_its_own_user_revokes_no_lease, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60);

	l->s.arbiter->settings->tenants[0].max_cus = (struct limit){ LIMIT_COUNT, 10 };
	CHECK(!want(l, VR, -1, 15) && l->s.result.kind == RESULT_QUOTA_EXCEEDED);
	CHECK(all->state == STATE_GRANTED);
}

/* Not with the next scan. */
TEST_WITH(a_gpu_for_which_nothing_more_can_be_revoked_is_open_at_once, struct lending *l)
{
	const struct gpu_info *info = &l->s.arbiter->gpus[0].info;
	struct lease *all = grant(&l->s, ANY, 60), *rt, *small;
	struct observed stranger = { .pid = 9, .start_time = 1, .kfd_gpu_id = 1, .queues = 1 };
	struct request request = request_for(60);

	l->s.arbiter->gpus[0].info.kfd_gpu_id = 1;
	request.wait_usec = 3600 * SECOND_USEC;
	request.wants[0].queues = info->queue_slots;
	rt = reserve(l->s.arbiter, VR, &request, &l->s.result);
	turn(l);
	CHECK(all->state == STATE_REVOKING && rt->wait.preempts == 1);
	request.wants[0] = request_for(10).wants[0];
	small = reserve(l->s.arbiter, LAB, &request, &l->s.result);
	CHECK(arbiter_acknowledge(l->s.arbiter, all->id, all->generation) == 0);
	CHECK(arbiter_observe(l->s.arbiter, &stranger, 1) == 0);
	turn(l);
	CHECK(rt->state == STATE_WAITING && rt->wait.preempts == 0);
	CHECK(small->state == STATE_GRANTED);
}

TEST(a_lease_that_its_own_quota_keeps_out_closes_no_gpu_for_its_preemption)
{
	_cleanup_(lending_done) struct lending l = preemptible_on(2);
	struct lease *all = grant_on(&l.s, ANY, "0", 60), *rt, *small;

	l.s.arbiter->settings->tenants[0].max_gpus = (struct limit){ LIMIT_COUNT, 1 };
	rt = grant_as(&l.s, VR, "cus=60 gpu=0; wait-usec=3600000000");
	turn(&l);
	CHECK(all->state == STATE_REVOKING && rt->wait.preempts == 1);
	CHECK(grant_on(&l.s, VR, "1", 10));
	answer(&l, all);
	CHECK(rt->state == STATE_WAITING && rt->wait.over_quota);
	small = grant_as(&l.s, LAB, "gpu=0 cus=10; wait-usec=3600000000");
	CHECK(small && small->state == STATE_GRANTED);
}

/* Otherwise hundreds of waiting leases would hold up all other users. */
TEST(leases_for_which_a_turn_has_no_steps_left_come_in_the_next_ones)
{
	_cleanup_(lending_done) struct lending l = preemptible_on(3);
	struct arbiter *arbiter = l.s.arbiter;
	struct lease *held[3], *waiting[3], *next;
	struct move_set set;

	for (unsigned i = 0; i < 3; i++)
		held[i] = grant(&l.s, ANY, 60);
	for (unsigned i = 0; i < 3; i++)
		waiting[i] = grant_as(&l.s, VR, "cus=60; wait-usec=3600000000");
	settle(&l);
	CHECK(arbiter_plan_next(arbiter, &next) == 0);
	for (unsigned i = 0; i < 3; i++) {
		unsigned steps = 1, revoked = 0, served = 0;

		CHECK(arbiter_make_room(arbiter, l.now, &steps, &set) == 0);
		for (unsigned j = 0; j < 3; j++) {
			revoked += held[j]->state == STATE_REVOKING;
			served += waiting[j]->wait.preempts > 0;
		}
		CHECK(steps == 0 && revoked == i + 1 && served == i + 1);
		CHECK(waiting[i]->wait.preempts > 0);
		CHECK(arbiter_next_deadline(arbiter) > l.now);
	}
}

/* ---- plans ---- */

static struct effects effects_of(struct lending *l, uid_t uid, unsigned cus)
{
	struct request request = request_for(cus);
	struct caller caller = caller_of(uid);
	struct lease *lease = NULL;
	struct effects effects = { 0 };

	result_done(&l->s.result);
	arbiter_plan_effects(l->s.arbiter, &caller, &request, l->now, &lease, &effects,
			     &l->s.result);
	lease_free(lease);
	return effects;
}

TEST_WITH(a_plan_tells_which_lease_shrinks_and_for_how_long_at_most, struct lending *l)
{
	const struct settings *settings = l->s.arbiter->settings;
	struct lease *borrower = borrow(l, 4, 60);
	struct effects effects = effects_of(l, VR, 30);

	CHECK(effects.n_shrinks == 1 && effects.revoked.n == 0);
	CHECK(effects.shrinks[0].lease == borrower->id && effects.shrinks[0].from == 60);
	CHECK(effects.within_usec == UINT64_MAX); /* enforce = report */
	settings->tenants[settings->n_tenants - 1].enforce = ENFORCE_STEP_KILL;
	effects_done(&effects);
	effects = effects_of(l, VR, 30);
	CHECK(effects.within_usec ==
	      settings->activate_grace_usec + settings->enforce_delay_usec + ENFORCE_LET_GO_USEC);
	CHECK(want(l, VR, -1, 30));
	CHECK(borrower->partitions[0].count == effects.shrinks[0].to);
	effects_done(&effects);
	effects = effects_of(l, ANY, 60);
	CHECK(effects.n_shrinks + effects.revoked.n == 0);
	effects_done(&effects);
}

TEST_WITH(a_plan_waits_for_cus_that_have_left_a_mask_and_are_not_returned, struct lending *l)
{
	const struct settings *settings = l->s.arbiter->settings;
	struct lease *rt;
	_cleanup_(effects_done) struct effects effects;

	settings->tenants[settings->n_tenants - 1].enforce = ENFORCE_STEP_KILL;
	CHECK(borrow(l, 4, 60));
	rt = want(l, VR, -1, 30);
	CHECK(rt && rt->state == STATE_ACTIVATING);
	release(l->s.arbiter, rt->id);
	turn(l);
	effects = effects_of(l, VR, 30);
	CHECK(effects.n_shrinks == 0);
	CHECK(effects.within_usec ==
	      settings->activate_grace_usec + settings->enforce_delay_usec + ENFORCE_LET_GO_USEC);
}

TEST_WITH(a_plan_tells_which_leases_are_revoked_and_which_shrink_after_that, struct lending *l)
{
	const struct settings *settings = l->s.arbiter->settings;
	struct lease *fixed = grant(&l->s, ANY, 30), *borrower = borrow(l, 4, 30);
	struct effects effects;

	settings->tenants[settings->n_tenants - 1].enforce = ENFORCE_STEP_KILL;
	effects = effects_of(l, VR, 45);
	CHECK(effects.revoked.n == 1 && effects.revoked.ids[0] == fixed->id);
	CHECK(effects.n_shrinks == 1 && effects.shrinks[0].lease == borrower->id);
	CHECK(strcmp(effects.shrinks[0].gpu, "0000:03:00.0") == 0);
	CHECK(effects.shrinks[0].to >= 4 && effects.shrinks[0].to < effects.shrinks[0].from);
	CHECK(effects.within_usec == 2 * (settings->activate_grace_usec +
					  settings->enforce_delay_usec + ENFORCE_LET_GO_USEC));
	effects_done(&effects);
	CHECK(fixed->state == STATE_GRANTED && borrower->partitions[0].count == 30);
}

TEST(a_refusal_names_the_tenant_whose_policy_is_in_the_way)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);

	CHECK(grant(&l.s, LAB, 60));
	CHECK(!want(&l, VR, -1, 30) && strcmp(l.s.result.refusals[0].preempt, "lab") == 0);
	CHECK(!want(&l, LAB, -1, 30) && !l.s.result.refusals[0].preempt[0]);
}

TEST(the_tenant_is_named_at_the_gpu_of_its_lease)
{
	_cleanup_(lending_done) struct lending l = lending_of(2);

	CHECK(grant_as(&l.s, VR, "cus=60 gpu=0") && grant_as(&l.s, LAB, "cus=60 gpu=1"));
	CHECK(!want(&l, VR, -1, 30) && l.s.result.deciding == 0);
	CHECK(!l.s.result.refusals[0].preempt[0]);
	CHECK(strcmp(l.s.result.refusals[1].preempt, "lab") == 0);
}

/* ---- leases that leave anyway ---- */

TEST_WITH(no_lease_is_revoked_if_those_that_end_leave_enough_room, struct lending *l)
{
	struct lease *ends = grant(&l->s, ANY, 30), *stays = grant(&l->s, ANY, 30), *rt;
	struct effects effects;

	arbiter_holder_gone(l->s.arbiter, ends->id);
	CHECK(ends->state == STATE_ENDING); /* its processes still use the GPU */
	effects = effects_of(l, VR, 30);
	CHECK(effects.revoked.n == 0 && effects.within_usec > 0);
	effects_done(&effects);
	rt = want(l, VR, -1, 30);
	CHECK(rt && rt->state == STATE_WAITING && stays->state == STATE_GRANTED);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(rt->state == STATE_GRANTED && stays->state == STATE_GRANTED);
}

/* The floor of its tenant keeps more than the lease that ends has. */
TEST_WITH(no_request_waits_for_a_lease_that_ends_whose_room_a_floor_keeps, struct lending *l)
{
	struct tenant *lab = tenant_of(&l->s, "lab");
	struct lease *engine, *ends, *other, *lease;
	struct request request = request_for(21);
	struct caller caller = caller_of(VR);

	lab->class = CLASS_REALTIME;
	engine = grant(&l->s, VR, 15);
	ends = grant(&l->s, LAB, 16);
	other = grant(&l->s, ANY, 21);
	lab->reserved_engines = 2;
	request.class = CLASS_GUARANTEED;
	CHECK(engine && ends && other);
	CHECK(preempt_plan(l->s.arbiter, &caller, &request, &lease, &l->s.result) >= 0);
	CHECK(lease->state == STATE_WAITING);
	lease_free(lease);
	result_done(&l->s.result);
	arbiter_holder_gone(l->s.arbiter, ends->id);
	CHECK(ends->state == STATE_ENDING);
	CHECK(preempt_plan(l->s.arbiter, &caller, &request, &lease, &l->s.result) < 0);
	CHECK(l->s.result.kind == RESULT_NO_CAPACITY);
}

TEST_WITH(fewer_leases_are_revoked_beside_one_that_ends, struct lending *l)
{
	struct lease *leases[4], *rt;
	unsigned revoked = 0;

	for (size_t i = 0; i < 4; i++)
		leases[i] = grant(&l->s, ANY, 15);
	arbiter_holder_gone(l->s.arbiter, leases[0]->id);
	rt = want(l, VR, -1, 30);
	for (size_t i = 1; i < 4; i++)
		revoked += leases[i]->state == STATE_REVOKING;
	CHECK(rt && rt->state == STATE_WAITING && revoked == 1);
}

/* The GPU is barred for it: two realtime requests cannot have the same room. */
TEST_WITH(room_of_a_lease_that_ends_for_an_earlier_request_is_not_promised_twice, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 30), *other = grant(&l->s, ANY, 30), *rt;

	rt = want(l, VR, -1, 60);
	CHECK(rt && all->revoked_for == rt->id && other->revoked_for == rt->id);
	arbiter_holder_gone(l->s.arbiter, all->id);
	CHECK(all->state == STATE_ENDING);
	CHECK(!want(l, VR, -1, 30) && l->s.result.kind == RESULT_NO_CAPACITY);
}

TEST_WITH(leases_are_revoked_as_soon_as_one_that_was_in_the_way_ends, struct lending *l)
{
	struct lease *lab = grant(&l->s, LAB, 30), *any = grant(&l->s, ANY, 30), *rt;

	rt = grant_as(&l->s, VR, "cus=60; wait-usec=3600000000");
	turn(l);
	CHECK(rt->state == STATE_WAITING &&
	      any->state == STATE_GRANTED); /* it would not be enough */
	arbiter_holder_gone(l->s.arbiter, lab->id);
	turn(l);
	CHECK(lab->state == STATE_ENDING && any->state == STATE_REVOKING);
	answer(l, any);
	CHECK(rt->state == STATE_GRANTED && rt->partitions[0].count == 60);
}

TEST_WITH(lease_that_an_administrator_revoked_is_taken_first, struct lending *l)
{
	struct lease *small = grant(&l->s, ANY, 20), *large = grant(&l->s, ANY, 40), *rt;

	CHECK(arbiter_revoke(l->s.arbiter, large->id, l->now, 3600 * SECOND_USEC, "",
			     &l->s.result) == 0);
	rt = want(l, VR, -1, 15);
	CHECK(rt && rt->state == STATE_WAITING && small->state == STATE_GRANTED);
	CHECK(large->deadline_usec == l->now + l->s.arbiter->settings->activate_grace_usec);
}

/* ---- what happens meanwhile ---- */

TEST_WITH(the_gpu_is_barred_while_leases_are_revoked, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 50), *rt = want(l, VR, -1, 30);

	CHECK(all->state == STATE_REVOKING && l->s.arbiter->gpus[0].barrier.rank.id == rt->id);
	CHECK(!want(l, ANY, -1, 5) && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(l->s.result.refusals[0].behind == rt->id);
	answer(l, all);
	CHECK(rt->state == STATE_GRANTED && want(l, ANY, -1, 5));
}

TEST_WITH(a_lease_is_kept_when_the_lease_that_needs_its_room_is_released, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60), *rt = want(l, VR, -1, 30);
	uint64_t revocation = all->generation;

	CHECK(all->state == STATE_REVOKING);
	release(l->s.arbiter, rt->id);
	turn(l);
	CHECK(all->state == STATE_GRANTED && !all->revoked && !all->revoked_for);
	CHECK(!*reason_of(l->s.arbiter, all) && all->deadline_usec == UINT64_MAX);
	CHECK(all->generation == revocation + 1 && l->s.arbiter->gpus[0].barrier.rank.id == 0);
	/* The answer to the revocation arrives late. */
	CHECK(arbiter_acknowledge(l->s.arbiter, all->id, revocation) == 0);
	CHECK(all->state == STATE_GRANTED);
	pass(l, 3600 * SECOND_USEC);
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &rt) == ENFORCE_STEP_NONE);
	CHECK(all->state == STATE_GRANTED && all->partitions[0].count == 60);
}

/* After a restart a borrower may still have its CUs. */
TEST_WITH(a_lease_that_was_not_active_is_kept_and_waits_for_its_cus, struct lending *l)
{
	struct lease *lease = grant(&l->s, ANY, 30), *borrower = borrow(l, 30, 60), *rt;

	follow(l, borrower);
	rt = want(l, VR, -1, 60);
	CHECK(lease->state == STATE_REVOKING && borrower->state == STATE_REVOKING);
	lease->lend.idle = true;
	cuset_add(&borrower->partitions[0].occupied, &lease->partitions[0].occupied);
	release(l->s.arbiter, rt->id);
	turn(l);
	CHECK(lease->state == STATE_ACTIVATING && !lease->lend.idle);
	CHECK(borrower->state == STATE_GRANTED);
	answer(l, borrower);
	CHECK(lease->state == STATE_GRANTED);
}

TEST_WITH(leases_that_are_not_needed_any_more_are_kept, struct lending *l)
{
	struct lease *leases[2] = { grant(&l->s, ANY, 15), grant(&l->s, ANY, 15) };
	struct lease *other = grant(&l->s, LAB, 30), *rt = want(l, VR, -1, 30);

	CHECK(leases[0]->state == STATE_REVOKING && leases[1]->state == STATE_REVOKING);
	answer(l, leases[1]);
	CHECK(rt->state == STATE_WAITING);
	release(l->s.arbiter, other->id); /* room that needs no revocation */
	turn(l);
	CHECK(rt->state == STATE_GRANTED && leases[0]->state == STATE_GRANTED);
}

TEST_WITH(a_revocation_by_an_administrator_stays_and_is_only_hastened, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60), *rt;

	CHECK(arbiter_revoke(l->s.arbiter, all->id, l->now, 3600 * SECOND_USEC, "", &l->s.result) ==
	      0);
	rt = want(l, VR, -1, 30);
	CHECK(rt && rt->state == STATE_WAITING && all->revoked_for == 0);
	CHECK(all->deadline_usec == l->now + l->s.arbiter->settings->activate_grace_usec);
	release(l->s.arbiter, rt->id);
	turn(l);
	CHECK(all->state == STATE_REVOKING &&
	      strstr(reason_of(l->s.arbiter, all), "administrator"));
}

TEST_WITH(a_lease_that_never_answers_ends_at_its_deadline, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60), *rt = want(l, VR, -1, 30), *due = NULL;

	pass(l, l->s.arbiter->settings->activate_grace_usec);
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &due) == ENFORCE_STEP_REPORT);
	CHECK(due == all && all->state == STATE_ENDING);
	turn(l);
	CHECK(rt->state == STATE_WAITING); /* its processes still use the GPU */
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(rt->state == STATE_GRANTED);
}

TEST_WITH(a_request_ends_when_the_room_does_not_come_in_time, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60), *rt = want(l, VR, -1, 30);
	uint64_t id = rt->id;

	CHECK(all->state == STATE_REVOKING);
	l->now = rt->deadline_usec;
	arbiter_expire(l->s.arbiter, l->now);
	CHECK(rt->state == STATE_ENDING && rt->cause == RESULT_TIMED_OUT);
	turn(l);
	CHECK(!ledger_find(l->s.arbiter, id) && all->state == STATE_GRANTED);
}

TEST_WITH(a_gpu_that_vanishes_ends_both_sides, struct lending *l)
{
	struct lease *all = grant(&l->s, ANY, 60), *rt = want(l, VR, -1, 30);

	CHECK(all->state == STATE_REVOKING && rt->wait.preempts == 1);
	CHECK(arbiter_set_gpus(l->s.arbiter, NULL, 0) == 0);
	CHECK(all->state == STATE_ENDING && all->cause == RESULT_NO_SUCH_GPU);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(l->s.arbiter->n_leases == 0 && l->s.arbiter->n_waiting == 0);
}

TEST(a_waiting_lease_revokes_when_a_new_policy_allows_it)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct settings *settings = l.s.arbiter->settings;
	struct lease *all = grant(&l.s, ANY, 60), *rt;

	rt = grant_as(&l.s, VR, "cus=30; wait-usec=3600000000");
	turn(&l);
	CHECK(rt->state == STATE_WAITING && all->state == STATE_GRANTED);
	settings->tenants[settings->n_tenants - 1].preempt = true;
	ledger_wake(l.s.arbiter, UINT64_MAX); /* as arbiter_set_settings() does */
	turn(&l);
	CHECK(all->state == STATE_REVOKING && all->revoked_for == rt->id);
}

/* What becomes free elsewhere has it examined again: there is nothing to save or to publish. */
TEST_WITH(a_lease_that_waits_for_a_revoked_lease_is_not_touched_again, struct lending *l)
{
	struct lease *lease = grant(&l->s, ANY, 60), *rt, *next;
	struct move_set set;

	CHECK(arbiter_revoke(l->s.arbiter, lease->id, l->now, 1, "", &l->s.result) == 0);
	turn(l);
	rt = want(l, VR, -1, 30);
	CHECK(rt && rt->state == STATE_WAITING && rt->wait.preempts == 1 && !lease->revoked_for);
	for (unsigned i = 0; i < 3; i++) {
		ledger_examine_again(l->s.arbiter, UINT64_MAX);
		CHECK(arbiter_plan_next(l->s.arbiter, &next) == 0);
		CHECK(rt->wait.searched < rt->wait.examined);
		CHECK(arbiter_make_room(l->s.arbiter, l->now, &(unsigned){ ROOM_STEPS }, &set) ==
		      0);
		CHECK(rt->wait.searched == rt->wait.examined);
		CHECK(!l->s.arbiter->touched && rt->wait.preempts == 1);
	}
}

/* ---- requeue ------------------------------------------------------------------------------- */

static struct lease *requeueable(struct lending *l, unsigned cus)
{
	return reserve_as(l, ANY, "cus=%u; requeue=1", cus);
}

TEST_WITH(a_lease_with_requeue_waits_again_and_is_granted_again, struct lending *l)
{
	struct lease *lease = requeueable(l, 60), *rt = want(l, VR, -1, 30);
	uint64_t id = lease->id;

	CHECK(lease->state == STATE_REVOKING && lease->generation == 2 && lease->request);
	answer(l, lease);
	CHECK(ledger_find(l->s.arbiter, id) == lease && lease->state == STATE_WAITING);
	CHECK(lease->n_partitions == 0 && lease->generation == 3 && lease->acknowledged == 3);
	CHECK(!lease->revoked && !lease->revoked_for && lease->deadline_usec == UINT64_MAX);
	CHECK(queue_position(l->s.arbiter, lease) == 1);
	CHECK(rt->state == STATE_GRANTED && rt->partitions[0].count == 30);
	arbiter_holder_gone(l->s.arbiter, rt->id);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(lease->state == STATE_GRANTED && lease->partitions[0].count == 60);
	CHECK(lease->request && lease->id == id);
	/* And once more. */
	rt = want(l, VR, -1, 30);
	CHECK(rt && lease->state == STATE_REVOKING);
	answer(l, lease);
	CHECK(lease->state == STATE_WAITING);
}

TEST_WITH(the_reason_of_a_waiting_lease_is_published_when_a_revoked_lease_waits_again,
	  struct lending *l)
{
	struct lease *first = requeueable(l, 30), *second = requeueable(l, 30), *next;
	struct lease *rt = want(l, VR, -1, 60);

	CHECK(first->revoked_for == rt->id && second->revoked_for == rt->id);
	CHECK(arbiter_acknowledge(l->s.arbiter, first->id, first->generation) == 0);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	CHECK(arbiter_plan_requeue(l->s.arbiter, &next) == 1);
	forget_touched(&l->s);
	CHECK(arbiter_commit(l->s.arbiter, next) == first && first->state == STATE_WAITING);
	CHECK(touched_of(&l->s, rt->id, NULL) & TOUCH_REASON);
}

TEST_WITH(shared_cus_of_a_lease_that_waits_again_are_granted, struct lending *l)
{
	struct lease *lease = reserve_as(l, ANY, "cus=60 isolation=shared; requeue=1");
	struct lease *rt = want(l, VR, -1, 30);

	answer(l, lease);
	CHECK(lease->state == STATE_WAITING && rt->state == STATE_GRANTED);
}

/* The program that waits again makes new queues: none of them was lost. */
TEST_WITH(a_lease_that_waits_again_forgets_the_reset_of_its_gpu, struct lending *l)
{
	struct lease *lease = requeueable(l, 60);
	char reason[REQUEST_TEXT];

	arbiter_gpu_reset(l->s.arbiter, 0, l->now);
	arbiter_gpu_reset_ended(l->s.arbiter, 0);
	lease->reset.partition = 1; /* as if it were of two GPUs: no partition of a waiting lease */
	CHECK(want(l, VR, -1, 30) && lease->state == STATE_REVOKING);
	answer(l, lease);
	CHECK(lease->state == STATE_WAITING && lease->reset.count == 1);
	CHECK(!lease->reset.pending && lease->reset.partition == 0);
	CHECK(!strstr(arbiter_reason(l->s.arbiter, lease, reason), "reset"));
}

TEST_WITH(a_lease_waits_again_only_when_no_process_of_it_uses_a_gpu, struct lending *l)
{
	struct lease *lease = requeueable(l, 60), *rt = want(l, VR, -1, 30);
	struct observed row = { .pid = 7, .start_time = 1, .kfd_gpu_id = 1, .queues = 1 };

	row.uid = lease->owner;
	l->s.arbiter->gpus[0].info.kfd_gpu_id = row.kfd_gpu_id;
	CHECK(arbiter_bind(l->s.arbiter, lease->id, 7, false) == 0);
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, lease->generation) == 0);
	CHECK(arbiter_observe(l->s.arbiter, &row, 1) == 0);
	turn(l);
	CHECK(lease->state == STATE_REVOKING && rt->state == STATE_WAITING);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(lease->state == STATE_WAITING && rt->state == STATE_GRANTED);
}

TEST_WITH(requeue_does_not_outlive_the_holder_an_administrator_or_the_request, struct lending *l)
{
	struct lease *lease = requeueable(l, 60), *rt = want(l, VR, -1, 30);
	uint64_t id = lease->id;

	/* The request ends after the acknowledgement, before the hardware has let go. */
	CHECK(arbiter_acknowledge(l->s.arbiter, id, lease->generation) == 0);
	arbiter_holder_gone(l->s.arbiter, rt->id);
	turn(l);
	CHECK(lease->state == STATE_GRANTED && !lease->returned && cus_of(lease) == 60);
	CHECK(arbiter_revoke(l->s.arbiter, id, l->now, SECOND_USEC, "", &l->s.result) == 0);
	answer(l, lease);
	CHECK(!ledger_find(l->s.arbiter, id));

	lease = requeueable(l, 60);
	id = lease->id;
	CHECK(want(l, VR, -1, 30) && lease->state == STATE_REVOKING);
	arbiter_holder_gone(l->s.arbiter, id);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	turn(l);
	CHECK(!ledger_find(l->s.arbiter, id));
}

TEST_WITH(a_request_without_wait_ends_when_no_lease_makes_room_for_it_any_more, struct lending *l)
{
	struct settings *settings = l->s.arbiter->settings;
	struct lease *fill = want(l, ANY, -1, 60), *patient, *lease;
	struct request request = request_for(30);
	struct caller vr = caller_of(VR);

	CHECK(fill && preempt_plan(l->s.arbiter, &vr, &request, &lease, &l->s.result) >= 0);
	result_done(&l->s.result);
	CHECK(lease->state == STATE_WAITING);
	settings->tenants[settings->n_tenants - 1].preempt = false; /* before any is revoked */
	lease = arbiter_commit(l->s.arbiter, lease);
	arbiter_add_holder(l->s.arbiter, lease->id);
	request.wait_usec = SECOND_USEC;
	patient = reserve(l->s.arbiter, VR, &request, &l->s.result);
	ledger_examine_again(l->s.arbiter, UINT64_MAX);
	turn(l);
	CHECK(patient && patient->state == STATE_WAITING && fill->state == STATE_GRANTED);
	CHECK(l->s.arbiter->n_waiting == 1 && l->s.arbiter->n_leases == 2);
}
