/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>

#include "check.h"
#include "lend-rig.h"

/* One GPU, a tenant whose realtime leases are exclusive when they ask, and max-pause for others. */
static struct lending lending(void)
{
	struct lending l = lending_of(1);

	l.s.arbiter->settings->tenants[0].max_pause_usec = 0;
	for (size_t i = 0; i < l.s.arbiter->settings->n_tenants; i++) {
		struct tenant *tenant = &l.s.arbiter->settings->tenants[i];

		if (tenant->class == CLASS_REALTIME)
			tenant->exclusive = EXCLUSIVE_ASK;
		else
			tenant->max_pause_usec = 10 * SECOND_USEC;
	}
	return l;
}

static struct lease *ask(struct lending *l, bool inactive)
{
	return reserve_as(l, VR, "cus=15 queues=2; exclusive=1 start-inactive=%u", inactive);
}

static struct partition *part(const struct lease *lease)
{
	return &lease->partitions[0];
}

FIXTURE(struct lending, l, *l = lending(), lending_done(l));

TEST_WITH(activation_of_an_exclusive_lease_waits_until_every_adaptable_lease_has_paused,
	  struct lending *l)
{
	struct lease *rt = ask(l, true), *a = borrow(l, 4, 20), *b = borrow(l, 4, 10);

	CHECK(!part(a)->paused && part(rt)->exclusive);
	CHECK(activate(l, rt->id, true) == 0);
	CHECK(rt->state == STATE_ACTIVATING && rt->deadline_usec == UINT64_MAX);
	CHECK(part(a)->paused && !part(a)->stopped && a->generation == 2);
	CHECK(part(b)->paused && b->deadline_usec == l->now + SECOND_USEC);
	follow(l, a);
	CHECK(part(a)->stopped && rt->state == STATE_ACTIVATING);
	follow(l, b);
	CHECK(rt->state == STATE_GRANTED && b->deadline_usec == UINT64_MAX);
	CHECK(strstr(reason_of(l->s.arbiter, a), "paused"));
}

TEST_WITH(a_paused_lease_keeps_its_mask_and_resumes_when_the_exclusive_lease_is_inactive,
	  struct lending *l)
{
	struct lease *rt = ask(l, true), *lease = borrow(l, 15, 15);
	struct cuset before = part(lease)->cus;

	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	pass(l, 5 * SECOND_USEC);
	CHECK(cuset_equal(&part(lease)->cus, &before) && lease->pause.count == 1);
	CHECK(activate(l, rt->id, false) == 0);
	CHECK(!part(lease)->paused && !part(lease)->stopped && lease->generation == 3);
	CHECK(lease->pause.usec == 5 * SECOND_USEC && lease->pause.since_usec == 0);
	CHECK(*reason_of(l->s.arbiter, lease) == '\0');
}

TEST_WITH(a_paused_lease_resumes_when_the_exclusive_lease_is_gone, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 20), *rt = ask(l, false);

	CHECK(rt->state == STATE_ACTIVATING && part(lease)->paused);
	follow(l, lease);
	CHECK(rt->state == STATE_GRANTED);
	arbiter_holder_gone(l->s.arbiter, rt->id);
	settle(l);
	CHECK(part(lease)->paused); /* its queues may still run */
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	settle(l);
	CHECK(!part(lease)->paused && lease->state == STATE_GRANTED);
}

TEST_WITH(an_adaptable_lease_starts_paused_beside_an_active_exclusive_lease, struct lending *l)
{
	struct lease *rt = ask(l, false), *lease = borrow(l, 4, 20);

	CHECK(rt->state == STATE_GRANTED && lease->state == STATE_GRANTED);
	CHECK(part(lease)->paused && part(lease)->stopped && lease->generation == 1);
	CHECK(activate(l, rt->id, false) == 0);
	CHECK(!part(lease)->paused && lease->generation == 2);
}

TEST_WITH(a_fixed_lease_and_an_active_exclusive_lease_refuse_each_other, struct lending *l)
{
	struct lease *rt = ask(l, true), *fixed = grant(&l->s, LAB, 10);

	CHECK(fixed && activate(l, rt->id, true) == -EBUSY);
	CHECK(refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	CHECK(l->s.result.refusals[0].n_leases == 1 &&
	      l->s.result.refusals[0].leases[0] == fixed->id && rt->state == STATE_INACTIVE);
	CHECK(!ask(l, false) && refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	arbiter_holder_gone(l->s.arbiter, fixed->id);
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	settle(l);
	CHECK(activate(l, rt->id, true) == 0 && rt->state == STATE_GRANTED);
	CHECK(!grant(&l->s, LAB, 10) && refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	CHECK(l->s.result.refusals[0].leases[0] == rt->id);
}

TEST_WITH(a_process_without_a_lease_refuses_an_exclusive_lease, struct lending *l)
{
	const struct observed row = {
		.kfd_gpu_id = 4, .pid = 4711, .start_time = 1, .command = "ollama", .queues = 3
	};

	l->s.arbiter->gpus[0].info.kfd_gpu_id = 4;
	CHECK(arbiter_observe(l->s.arbiter, &row, 1) == 0);
	CHECK(!ask(l, false) && refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	CHECK(l->s.result.refusals[0].n_processes == 1 &&
	      l->s.result.refusals[0].processes[0].pid == 4711);
	CHECK(ask(l, true));
}

TEST_WITH(lease_that_does_not_pause_is_killed_if_policy_allows, struct lending *l)
{
	struct lease *rt = ask(l, true), *lease = borrow(l, 4, 20), *over;

	l->s.arbiter->settings->tenants[l->s.arbiter->settings->n_tenants - 1].enforce =
		ENFORCE_STEP_KILL;
	CHECK(activate(l, rt->id, true) == 0);
	l->now += SECOND_USEC;
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &over) == ENFORCE_STEP_REPORT);
	CHECK(over == lease && strstr(reason_of(l->s.arbiter, lease), "pause"));
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &over) == ENFORCE_STEP_FREEZE);
	l->now += SECOND_USEC;
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &over) == ENFORCE_STEP_KILL);
	CHECK(lease->state == STATE_ENDING && strstr(reason_of(l->s.arbiter, lease), "pause"));
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	settle(l);
	CHECK(rt->state == STATE_GRANTED);
}

TEST_WITH(a_pause_that_is_longer_than_max_pause_is_reported_once, struct lending *l)
{
	struct lease *rt = ask(l, true), *lease = borrow(l, 4, 20);

	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	CHECK(arbiter_next_deadline(l->s.arbiter) <= l->now + 10 * SECOND_USEC);
	pass(l, 10 * SECOND_USEC);
	CHECK(lease->pause.long_reported);
	CHECK(strstr(reason_of(l->s.arbiter, lease), " 10000 ms") &&
	      strstr(reason_of(l->s.arbiter, lease), "max-pause"));
	pass(l, 5 * SECOND_USEC);
	CHECK(strstr(reason_of(l->s.arbiter, lease), " 10000 ms"));
	CHECK(activate(l, rt->id, false) == 0 && !lease->pause.long_reported);
}

TEST(policy_allows_exclusive_leases)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);

	CHECK(!ask(&l, false) && refused(&l.s, RESULT_NOT_PERMITTED, REASON_POLICY));
	CHECK(l.s.result.refusals[0].resource == RESOURCE_EXCLUSIVE);
}

TEST_WITH(a_tenant_can_make_every_realtime_lease_exclusive, struct lending *l)
{
	struct lease *rt;

	for (size_t i = 0; i < l->s.arbiter->settings->n_tenants; i++)
		l->s.arbiter->settings->tenants[i].exclusive = EXCLUSIVE_ACTIVE;
	rt = keep_inactive(l, 15);
	CHECK(part(rt)->exclusive);
	CHECK(!part(borrow(l, 4, 20))->exclusive);
}

TEST_WITH(only_a_realtime_lease_can_be_exclusive, struct lending *l)
{
	CHECK(!grant_as(&l->s, LAB, "cus=15; exclusive=1"));
	CHECK(l->s.result.kind == RESULT_INVALID_REQUEST);
}

TEST_WITH(a_waiting_fixed_lease_is_granted_when_the_exclusive_lease_is_inactive, struct lending *l)
{
	struct lease *rt = ask(l, false), *waiting, *next;

	waiting = grant_as(&l->s, LAB, "cus=10; wait-usec=100000000");
	CHECK(waiting && waiting->state == STATE_WAITING);
	CHECK(activate(l, rt->id, false) == 0);
	CHECK(arbiter_plan_next(l->s.arbiter, &next) == 1 && next->id == waiting->id);
	arbiter_commit(l->s.arbiter, next);
	settle(l);
	CHECK(waiting->state == STATE_GRANTED);
	CHECK(activate(l, rt->id, true) == -EBUSY);
}

TEST_WITH(an_acknowledged_pause_is_false_while_a_queue_is_on_the_run_list, struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	struct lease *rt = ask(l, true), *lease = borrow(l, 15, 15);
	struct observed_mask row = {
		.pid = 10, .kfd_gpu_id = 77, .cus = part(lease)->cus, .active = true
	};

	arbiter->verifies = true;
	arbiter->gpus[0].info.kfd_gpu_id = 77;
	CHECK(arbiter_bind(arbiter, lease->id, 10, false) == 0);
	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	arbiter_masks_observed(arbiter, &row, 1);
	settle(l);
	CHECK(rt->state == STATE_ACTIVATING && lease->verify.false_ack && !part(lease)->stopped);
	CHECK(strstr(reason_of(l->s.arbiter, lease), "pid 10"));

	row.active = false;
	arbiter_masks_observed(arbiter, &row, 1);
	settle(l);
	CHECK(rt->state == STATE_GRANTED && part(lease)->stopped && !lease->verify.false_ack);

	/* The program makes it active again, against its agent. */
	row.active = true;
	arbiter_masks_observed(arbiter, &row, 1);
	settle(l);
	CHECK(lease->verify.false_ack && strstr(reason_of(l->s.arbiter, lease), "pid 10"));
	CHECK(rt->state == STATE_GRANTED);
	row.active = false;
	arbiter_masks_observed(arbiter, &row, 1);
	settle(l);
	CHECK(!lease->verify.false_ack && strstr(reason_of(l->s.arbiter, lease), "paused by"));
}

TEST_WITH(an_active_queue_of_a_lease_that_is_not_paused_is_as_it_should_be, struct lending *l)
{
	struct lease *lease = borrow(l, 15, 15);
	const struct observed_mask row = {
		.pid = 10, .kfd_gpu_id = 77, .cus = part(lease)->cus, .active = true
	};

	l->s.arbiter->verifies = true;
	l->s.arbiter->gpus[0].info.kfd_gpu_id = 77;
	CHECK(arbiter_bind(l->s.arbiter, lease->id, 10, false) == 0);
	arbiter_masks_observed(l->s.arbiter, &row, 1);
	CHECK(!lease->verify.false_ack && part(lease)->queues.verified);
}

/* ---- partitions of one card ------------------------------------------------------------- */

static struct lease *on_gpu(struct lending *l, uid_t uid, const char *gpu, bool adaptable)
{
	const int realtime = uid == VR;

	return reserve_as(l, uid,
			  "gpu=%s cus=10 queues=2; adaptable=%d exclusive=%d start-inactive=%d",
			  gpu, adaptable, realtime, realtime);
}

TEST_WITH(an_exclusive_lease_pauses_and_refuses_on_all_partitions_with_its_memory,
	  struct lending *l)
{
	struct lease *rt, *beside, *apart, *fixed;

	scene_done(&l->s);
	*l = lending_of(3);
	for (size_t i = 0; i < l->s.arbiter->settings->n_tenants; i++)
		l->s.arbiter->settings->tenants[i].exclusive = EXCLUSIVE_ASK;
	for (unsigned i = 0; i < 3; i++)
		snprintf(l->s.arbiter->gpus[i].info.name, GPU_NAME_MAX, "0000:03:00.0/%u", i);
	l->s.arbiter->gpus[2].info.memory = 1;
	rt = on_gpu(l, VR, "0", false);
	beside = on_gpu(l, ANY, "1", true);
	apart = on_gpu(l, ANY, "2", true);
	CHECK(rt && beside && apart && activate(l, rt->id, true) == 0);
	CHECK(rt->state == STATE_ACTIVATING && part(beside)->paused && !part(apart)->paused);
	CHECK(strstr(reason_of(l->s.arbiter, rt), "0000:03:00.0/1"));
	follow(l, beside);
	CHECK(rt->state == STATE_GRANTED && part(beside)->stopped);
	CHECK(!on_gpu(l, LAB, "1", false) && refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	CHECK(on_gpu(l, LAB, "2", false));
	CHECK(activate(l, rt->id, false) == 0 && !part(beside)->paused);
	fixed = on_gpu(l, LAB, "1", false);
	CHECK(fixed && activate(l, rt->id, true) == -EBUSY);
	CHECK(refused(&l->s, RESULT_NO_CAPACITY, REASON_EXCLUSIVE));
	release(l->s.arbiter, fixed->id);
	settle(l);
	l->s.arbiter->gpus[1].info.kfd_gpu_id = 4711;
	CHECK(arbiter_observe(l->s.arbiter,
			      &(struct observed){
				      .pid = 77, .start_time = 1, .kfd_gpu_id = 4711, .queues = 1 },
			      1) == 0);
	CHECK(activate(l, rt->id, true) == -EBUSY &&
	      l->s.result.refusals[0].processes[0].pid == 77);
}
