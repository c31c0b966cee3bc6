/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is observed of leases, against what they were granted. */

#include "core/ledger/cover.h"

#include "check.h"
#include "scene.h"
#include "wait-rig.h"

#define GPU_ID 4711
#define GRACE UINT64_C(1000000)

struct stage {
	struct scene s;
	struct arbiter *arbiter;
	uint64_t now;
};

static struct stage stage_of(void)
{
	struct stage stage = { .s = scene_of(1), .now = 5 };

	stage.arbiter = stage.s.arbiter;
	stage.arbiter->verifies = true;
	stage.arbiter->gpus[0].info.kfd_gpu_id = GPU_ID;
	return stage;
}

/* A lease whose process has this pid. */
static struct lease *hold(struct stage *stage, uid_t uid, unsigned cus, pid_t pid)
{
	struct lease *lease = grant(&stage->s, uid, cus);

	CHECK(lease && arbiter_bind(stage->arbiter, lease->id, pid, false) == 0);
	return lease;
}

/* Activates or deactivates as VR: 0 or a negative errno. */
static int activate(struct stage *stage, const struct lease *lease, bool active)
{
	const struct caller caller = caller_of(VR);

	result_done(&stage->s.result);
	return set_active(stage->arbiter, &caller, lease->id, active, &stage->s.result);
}

static struct observed process(pid_t pid, unsigned queues)
{
	return (struct observed){ .pid = pid,
				  .start_time = 1,
				  .uid = ANY,
				  .command = "python3",
				  .kfd_gpu_id = GPU_ID,
				  .queues = queues };
}

static struct observed_mask queue(pid_t pid, const struct cuset *cus)
{
	return (struct observed_mask){ .pid = pid,
				       .kfd_gpu_id = GPU_ID,
				       .cus = *cus,
				       .priority = PRIORITY_NORMAL,
				       .active = true };
}

/* One scan after some time. Returns what happened to the lease. */
static unsigned look(struct stage *stage, uint64_t usec, struct observed row,
		     struct observed_mask mask)
{
	struct lease *lease;
	unsigned touched, all = 0;

	while (ledger_take_touched(stage->arbiter, &touched))
		;
	stage->now += usec;
	CHECK(arbiter_observe(stage->arbiter, &row, 1) == 0);
	CHECK(arbiter_masks_observed(stage->arbiter, &mask, 1) == 0);
	arbiter_judge_drift(stage->arbiter, stage->now);
	arbiter_lend(stage->arbiter, stage->now);
	while ((lease = ledger_take_touched(stage->arbiter, &touched)))
		all |= touched;
	return all;
}

static const struct drift *drift_of(const struct lease *lease, enum drift_kind kind)
{
	return &lease->partitions[0].drift[kind];
}

/* ---- when it begins and ends ------------------------------------------------------------- */

FIXTURE(struct stage, stage, *stage = stage_of(), scene_done(&stage->s));

TEST_WITH(queue_outside_the_mask_is_drift_after_the_grace_and_until_it_has_a_mask,
	  struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all, *own = &lease->partitions[0].cus;
	const struct drift *mask = drift_of(lease, DRIFT_MASK);

	CHECK(!(look(stage, 0, process(10, 1), queue(10, all)) & TOUCH_DRIFT));
	CHECK(!mask->lasts && arbiter_drift_at(stage->arbiter, FRESH_MASKS) == 5 + GRACE);
	CHECK(arbiter_drift_at(stage->arbiter, FRESH_USE) == UINT64_MAX &&
	      !*reason_of(stage->arbiter, lease));
	CHECK(!(look(stage, GRACE - 1, process(10, 1), queue(10, all)) & TOUCH_DRIFT));
	CHECK(look(stage, 1, process(10, 1), queue(10, all)) & TOUCH_DRIFT);
	CHECK(mask->lasts && mask->since_usec == 5 && mask->granted == 15 && mask->observed == 60);
	CHECK(mask->pid == 10 && strstr(reason_of(stage->arbiter, lease), "pid 10") &&
	      lease->state == STATE_GRANTED);
	CHECK(arbiter_drift_at(stage->arbiter, FRESH_MASKS) == UINT64_MAX);
	CHECK(!(look(stage, GRACE, process(10, 1), queue(10, all)) & TOUCH_DRIFT));
	CHECK(look(stage, GRACE, process(10, 1), queue(10, own)) & TOUCH_DRIFT);
	CHECK(!lease_drifts(lease) && !*reason_of(stage->arbiter, lease) && mask->since_usec == 0);
}

TEST_WITH(queue_that_gets_its_mask_within_the_grace_is_no_drift, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all, *own = &lease->partitions[0].cus;

	for (unsigned i = 0; i < 100; i++)
		CHECK(!(look(stage, GRACE / 2 + 1, process(10, 1),
			     queue(10, i % 8 == 0 ? all : own)) &
			(TOUCH_DRIFT | TOUCH_CHANGED)));
	CHECK(!lease_drifts(lease) && !*reason_of(stage->arbiter, lease));
	while (arbiter_drift_at(stage->arbiter, FRESH_MASKS) != UINT64_MAX)
		look(stage, GRACE / 2, process(10, 1), queue(10, own));
}

TEST_WITH(times_without_a_mask_below_the_grace_add_up_to_drift, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all, *own = &lease->partitions[0].cus;
	const struct drift *mask = drift_of(lease, DRIFT_MASK);
	unsigned looks = 0, again = 0;

	for (; !mask->lasts && looks < 20; looks++) {
		CHECK(arbiter_drift_at(stage->arbiter, FRESH_MASKS) <= stage->now + GRACE ||
		      looks == 0);
		look(stage, GRACE / 2, process(10, 1), queue(10, looks % 2 == 0 ? all : own));
	}
	CHECK(mask->lasts && mask->since_usec == stage->now && looks < 15);
	look(stage, GRACE / 2, process(10, 1), queue(10, own));
	CHECK(!lease_drifts(lease) && !*reason_of(stage->arbiter, lease));
	for (; !mask->lasts && again < 20; again++)
		look(stage, GRACE / 2, process(10, 1), queue(10, again % 2 == 0 ? all : own));
	CHECK(mask->lasts && again > 2 && again < looks);
}

TEST_WITH(queues_beyond_the_budget_are_drift_while_they_last, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *own = &lease->partitions[0].cus;
	const struct drift *queues = drift_of(lease, DRIFT_QUEUES);
	const unsigned granted = (unsigned)lease->partitions[0].granted.queues;
	char text[256], cut[8];

	look(stage, 0, process(10, granted + 3), queue(10, own));
	CHECK(arbiter_drift_at(stage->arbiter, FRESH_USE) == 5 + GRACE && !queues->lasts);
	CHECK(look(stage, GRACE, process(10, granted + 3), queue(10, own)) & TOUCH_DRIFT);
	CHECK(queues->lasts && queues->granted == granted && queues->observed == granted + 3);
	arbiter_drift_text(stage->arbiter, lease, text, sizeof(text));
	arbiter_drift_text(stage->arbiter, lease, cut, sizeof(cut));
	CHECK(strncmp(cut, text, sizeof(cut) - 1) == 0 &&
	      strcmp(text, reason_of(stage->arbiter, lease)) == 0);
	CHECK(gpu_free(&stage->arbiter->gpus[0]).queues == 24 - granted - 3);
	CHECK(look(stage, 1, process(10, granted + 4), queue(10, own)) == TOUCH_REASON);
	CHECK(look(stage, 1, process(10, granted), queue(10, own)) & TOUCH_DRIFT);
	CHECK(!lease_drifts(lease) && !*reason_of(stage->arbiter, lease));
}

TEST_WITH(every_budget_that_was_asked_for_and_every_higher_priority_is_compared,
	  struct stage *stage)
{
	static const struct observed much = { .pid = 10,
					      .start_time = 1,
					      .uid = ANY,
					      .kfd_gpu_id = GPU_ID,
					      .queues = 1,
					      .sdma_queues = 9,
					      .sdma_xgmi_queues = 9,
					      .vram = 1 << 30 };
	const unsigned asked = 1U << DRIFT_SDMA_QUEUES | 1U << DRIFT_SDMA_XGMI_QUEUES |
			       1U << DRIFT_VRAM;
	struct lease *lease = hold(stage, ANY, 15, 10);
	struct observed_mask row = queue(10, &lease->partitions[0].cus);

	row.priority = PRIORITY_HIGH - 1; /* the same priority of the pipe */
	look(stage, 0, much, row);
	look(stage, GRACE, much, row);
	CHECK(lease_drifts(lease) == 0);
	lease->partitions[0].charged.sdma_queues = 1;
	lease->partitions[0].charged.vram = 1;
	lease->partitions[0].charged.sdma_xgmi_queues = 1;
	row.priority = PRIORITY_MAX;
	look(stage, 0, much, row);
	look(stage, GRACE, much, row);
	CHECK(lease_drifts(lease) == (asked | 1U << DRIFT_PRIORITY));
	CHECK(drift_of(lease, DRIFT_PRIORITY)->observed == PRIORITY_MAX);
	CHECK(strstr(reason_of(stage->arbiter, lease), "XGMI"));
}

/* ---- what policy does about it --------------------------------------------------------------- */

TEST(drift_is_reported_by_default_and_revoked_or_killed_where_the_tenant_says_so)
{
	for (enum on_drift what = ON_DRIFT_PROTECT; what <= ON_DRIFT_KILL; what++) {
		struct stage stage = stage_of();
		struct lease *lease = hold(&stage, ANY, 15, 10), *due = NULL;
		const struct cuset *all = &stage.arbiter->gpus[0].all;
		uint64_t deadline;

		tenant_of(&stage.s, lease->tenant)->on_drift = what;
		look(&stage, 0, process(10, 1), queue(10, all));
		CHECK(lease->state == STATE_GRANTED);
		look(&stage, GRACE, process(10, 1), queue(10, all));
		CHECK((lease->state == STATE_REVOKING) == (what >= ON_DRIFT_REVOKE));
		CHECK(lease->enforce.kill == (what == ON_DRIFT_KILL));
		deadline = stage.now + stage.arbiter->settings->activate_grace_usec;
		CHECK(lease->deadline_usec == (what >= ON_DRIFT_REVOKE ? deadline : UINT64_MAX));
		if (what >= ON_DRIFT_REVOKE) {
			stage.now = deadline + GRACE * 10;
			CHECK(arbiter_next_enforce_step(stage.arbiter, stage.now, &due) ==
			      ENFORCE_STEP_REPORT);
			CHECK(due == lease && lease->state == STATE_ENDING);
			CHECK((arbiter_next_enforce_step(stage.arbiter, stage.now, &due) ==
			       ENFORCE_STEP_FREEZE) == (what == ON_DRIFT_KILL));
		}
		scene_done(&stage.s);
	}
}

TEST(drift_into_a_realtime_lease_is_revoked_unless_the_tenant_says_report)
{
	for (enum on_drift what = ON_DRIFT_PROTECT; what <= ON_DRIFT_REPORT; what++) {
		struct stage stage = stage_of();
		struct lease *rt = grant(&stage.s, VR, 15);
		struct lease *lease = hold(&stage, LAB, 15, 10);
		struct observed row = process(10, 1);
		struct cuset beside = stage.arbiter->gpus[0].all;

		row.uid = LAB;
		tenant_of(&stage.s, lease->tenant)->on_drift = what;
		/* Beyond its mask, but in no engine of the realtime lease. */
		for (unsigned e = 0; e < CUSET_ENGINES; e++)
			if (cuset_engines(&rt->partitions[0].cus) >> e & 1)
				beside.pair[cuset_pair(0, e)] = 0;
		look(&stage, 0, row, queue(10, &beside));
		look(&stage, GRACE, row, queue(10, &beside));
		CHECK(lease_drifts(lease) && lease->state == STATE_GRANTED);
		look(&stage, 1, row, queue(10, &stage.arbiter->gpus[0].all));
		CHECK((lease->state == STATE_REVOKING) == (what == ON_DRIFT_PROTECT));
		CHECK(rt->state == STATE_GRANTED && !lease_drifts(rt));
		scene_done(&stage.s);
	}
}

/* A lease of the tenant of LAB on the engines of a realtime lease, at the moment at which it ends for that. */
static struct lease *end_on_engines(struct stage *stage, enum on_drift what)
{
	struct lease *lease, *due = NULL;
	struct observed row = process(10, 1);

	CHECK(grant(&stage->s, VR, 15));
	lease = hold(stage, LAB, 15, 10);
	row.uid = LAB;
	tenant_of(&stage->s, lease->tenant)->on_drift = what;
	look(stage, 0, row, queue(10, &stage->arbiter->gpus[0].all));
	look(stage, GRACE, row, queue(10, &stage->arbiter->gpus[0].all));
	CHECK(lease->state == STATE_REVOKING);
	stage->now = lease->deadline_usec;
	CHECK(arbiter_next_enforce_step(stage->arbiter, stage->now, &due) == ENFORCE_STEP_REPORT);
	CHECK(due == lease && lease->state == STATE_ENDING);
	return lease;
}

TEST(processes_of_an_ended_lease_are_killed_while_they_are_on_a_realtime_lease)
{
	for (unsigned kills = 0; kills < 2; kills++) {
		struct stage stage = stage_of();
		uint64_t delay = stage.arbiter->settings->enforce_delay_usec;
		struct lease *due = NULL;

		end_on_engines(&stage, kills ? ON_DRIFT_PROTECT : ON_DRIFT_REVOKE);
		CHECK(arbiter_next_enforce_step(stage.arbiter, stage.now, &due) ==
		      (kills ? ENFORCE_STEP_FREEZE : ENFORCE_STEP_NONE));
		stage.now += delay;
		CHECK(arbiter_next_enforce_step(stage.arbiter, stage.now, &due) ==
		      (kills ? ENFORCE_STEP_KILL : ENFORCE_STEP_NONE));
		scene_done(&stage.s);
	}
}

TEST_WITH(processes_of_an_ended_lease_are_spared_while_they_keep_to_its_mask, struct stage *stage)
{
	struct lease *lease = end_on_engines(stage, ON_DRIFT_PROTECT), *due = NULL;
	uint64_t delay = stage->arbiter->settings->enforce_delay_usec;
	struct observed row = process(10, 1);

	row.uid = LAB;
	look(stage, 0, row, queue(10, &lease->partitions[0].cus));
	for (unsigned i = 0; i < 5; i++, stage->now += delay)
		CHECK(arbiter_next_enforce_step(stage->arbiter, stage->now, &due) ==
		      ENFORCE_STEP_NONE);
	look(stage, 0, row, queue(10, &stage->arbiter->gpus[0].all));
	CHECK(arbiter_next_enforce_step(stage->arbiter, stage->now, &due) == ENFORCE_STEP_FREEZE);
	CHECK(due == lease);
}

/* ---- what is granted ------------------------------------------------------------------------- */

/* Does a request for exactly so many CUs fit? */
static bool fits(struct stage *stage, uid_t uid, unsigned cus)
{
	struct caller caller = caller_of(uid);
	struct request request = request_of("cus=%u exact=1", cus);
	struct lease *lease = NULL;

	result_done(&stage->s.result);
	stage->s.result = (struct result){ 0 };
	if (arbiter_plan(stage->arbiter, &caller, &request, &lease, &stage->s.result) < 0)
		return false;
	lease_free(lease);
	return true;
}

TEST_WITH(no_promised_cu_is_granted_that_an_unmanaged_queue_covers, struct stage *stage)
{
	struct cuset one = { 0 };
	const struct refusal *refusal;

	one.pair[0] = 1; /* one CU of the first engine */
	look(stage, 0, process(10, 2), queue(10, &one));
	CHECK(fits(stage, ANY, 60));
	CHECK(!fits(stage, LAB, 60) && refused(&stage->s, RESULT_NO_CAPACITY, REASON_UNMASKED));
	refusal = &stage->s.result.refusals[0];
	CHECK(refusal->n_processes == 1 && refusal->processes[0].pid == 10);
	CHECK(refusal->processes[0].uid == ANY && refusal->processes[0].queues == 1);
	CHECK(strcmp(refusal->processes[0].command, "python3") == 0 && !refusal_lacks(refusal));
	CHECK(fits(stage, LAB, 56) && fits(stage, VR, 45));
	CHECK(!fits(stage, VR, 60) && refused(&stage->s, RESULT_NO_CAPACITY, REASON_UNMASKED));
	stage->arbiter->settings->unmasked = UNMASKED_IGNORE;
	look(stage, 0, process(10, 2), queue(10, &one));
	CHECK(fits(stage, VR, 60) && fits(stage, LAB, 60));
}

TEST_WITH(no_promised_cu_is_granted_that_drift_of_another_lease_covers, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all;

	look(stage, 0, process(10, 1), queue(10, all));
	CHECK(cuset_empty(&stage->arbiter->gpus[0].outside)); /* it may get its mask yet */
	look(stage, GRACE, process(10, 1), queue(10, all));
	CHECK(!grant(&stage->s, LAB, 15));
	CHECK(refused(&stage->s, RESULT_NO_CAPACITY, REASON_UNMASKED));
	CHECK(stage->s.result.refusals[0].leases[0] == lease->id);
	CHECK(stage->s.result.refusals[0].n_leases == 1);
	look(stage, 1, process(10, 1), queue(10, &lease->partitions[0].cus));
	CHECK(grant(&stage->s, LAB, 15));
}

TEST_WITH(queues_of_the_process_that_asks_are_not_in_its_way, struct stage *stage)
{
	struct caller caller = caller_of(LAB);
	struct request request = request_for(60);
	struct observed row = process(10, 2);
	struct lease *lease = NULL;

	caller.pid = 10;
	row.uid = LAB;
	look(stage, 0, row, queue(10, &stage->arbiter->gpus[0].all));
	CHECK(arbiter_plan(stage->arbiter, &caller, &request, &lease, &stage->s.result) == 0);
	lease_free(lease);
}

TEST_WITH(waiting_lease_is_granted_when_the_queue_in_its_way_is_gone, struct stage *stage)
{
	struct lease *lease;
	uint64_t changes;

	look(stage, 0, process(10, 1), queue(10, &stage->arbiter->gpus[0].all));
	lease = grant_as(&stage->s, LAB, "cus=60; wait-usec=1");
	CHECK(lease->state == STATE_WAITING && lease->refusal.reason == REASON_UNMASKED);
	changes = stage->arbiter->changes;
	CHECK(arbiter_masks_observed(stage->arbiter, NULL, 0) == 0);
	arbiter_judge_drift(stage->arbiter, ++stage->now);
	arbiter_lend(stage->arbiter, stage->now);
	CHECK(stage->arbiter->freed[0] > changes);
	look(stage, 0, process(10, 1), queue(10, &stage->arbiter->gpus[0].all));
	changes = stage->arbiter->changes;
	CHECK(arbiter_observe(stage->arbiter, NULL, 0) == 0); /* its process has ended */
	CHECK(stage->arbiter->freed[0] > changes && stage->arbiter->n_covers == 0);
}

/* The queues of its own process, which are not in its way, cover the same CUs before and after. */
TEST_WITH(waiting_lease_is_granted_when_the_queue_of_another_process_gets_a_mask,
	  struct stage *stage)
{
	const struct cuset *all = &stage->arbiter->gpus[0].all;
	struct caller caller = caller_of(LAB);
	struct request request = request_of("cus=30; wait-usec=1");
	struct observed rows[] = { process(10, 1), process(11, 1) };
	struct observed_mask masks[] = { queue(10, all), queue(11, all) };
	struct lease *lease = NULL;

	caller.pid = 10;
	rows[0].uid = LAB;
	for (unsigned i = 0; i < 2; i++) {
		CHECK(arbiter_observe(stage->arbiter, rows, 2) == 0);
		CHECK(arbiter_masks_observed(stage->arbiter, masks, 2) == 0);
		arbiter_judge_drift(stage->arbiter, ++stage->now);
		arbiter_lend(stage->arbiter, stage->now);
		if (!lease) {
			CHECK(arbiter_plan(stage->arbiter, &caller, &request, &lease,
					   &stage->s.result) == 0);
			lease = arbiter_commit(stage->arbiter, lease);
			CHECK(lease->refusal.reason == REASON_UNMASKED);
		}
		CHECK(grant_waiting(&stage->s, NULL) == i);
		masks[1].cus = (struct cuset){ .pair = { 1 } };
	}
}

/* ---- what is activated ------------------------------------------------------------------------ */

/* Sets *ret to the engines of the partition, or to all CUs of the GPU that it leaves. */
static void take_engines(const struct stage *stage, const struct lease *lease, bool of_lease,
			 struct cuset *ret)
{
	struct cuset own = lease->partitions[0].cus;

	gpu_add_engines(&stage->arbiter->gpus[0], &own);
	*ret = own;
	if (of_lease)
		return;
	*ret = stage->arbiter->gpus[0].all;
	cuset_remove(ret, &own);
}

TEST_WITH(inactive_lease_is_not_activated_under_a_queue_of_its_engines, struct stage *stage)
{
	struct lease *rt = grant(&stage->s, VR, 10);
	struct cuset beside, own;
	const struct refusal *refusal;

	CHECK(activate(stage, rt, false) == 0);
	take_engines(stage, rt, false, &beside);
	take_engines(stage, rt, true, &own);
	cuset_remove(&own, &rt->partitions[0].cus); /* its engine, and none of its CUs */
	CHECK(!cuset_empty(&own));
	look(stage, 0, process(10, 1), queue(10, &own));
	CHECK(activate(stage, rt, true) < 0);
	CHECK(refused(&stage->s, RESULT_NO_CAPACITY, REASON_UNMASKED));
	refusal = &stage->s.result.refusals[0];
	CHECK(refusal->n_processes == 1 && refusal->processes[0].pid == 10);
	CHECK(refusal->asked == 10 && refusal->free == 0 && refusal->retry);
	CHECK(strstr(stage->s.result.sentence, "pid 10 (python3") && rt->state == STATE_INACTIVE);
	look(stage, 0, process(10, 1), queue(10, &beside));
	CHECK(activate(stage, rt, true) == 0);
	arbiter_lend(stage->arbiter, stage->now);
	CHECK(rt->state == STATE_GRANTED);
}

TEST(own_queues_and_ignored_queues_do_not_stop_an_activation)
{
	for (unsigned ignored = 0; ignored < 2; ignored++) {
		struct stage stage = stage_of();
		struct lease *rt = hold(&stage, VR, 10, 10);
		pid_t pid = ignored ? 11 : 10;
		struct observed row = process(pid, 1);

		row.uid = VR;
		if (ignored)
			stage.arbiter->settings->unmasked = UNMASKED_IGNORE;
		CHECK(activate(&stage, rt, false) == 0);
		look(&stage, 0, row, queue(pid, &stage.arbiter->gpus[0].all));
		CHECK(activate(&stage, rt, true) == 0);
		scene_done(&stage.s);
	}
}

/* The process that asked has ended, and one of another user has its pid. */
TEST(queue_of_another_user_with_the_pid_of_the_owner_stops_an_activation)
{
	for (unsigned bound = 0; bound < 2; bound++) {
		struct stage stage = stage_of();
		struct lease *rt = grant(&stage.s, VR, 10);

		rt->pid = 10;
		CHECK(!bound || arbiter_bind(stage.arbiter, rt->id, 10, false) == 0);
		CHECK(activate(&stage, rt, false) == 0);
		look(&stage, 0, process(10, 1), queue(10, &stage.arbiter->gpus[0].all));
		CHECK(activate(&stage, rt, true) < 0);
		CHECK(refused(&stage.s, RESULT_NO_CAPACITY, REASON_UNMASKED));
		scene_done(&stage.s);
	}
}

TEST_WITH(activating_lease_waits_until_a_queue_of_its_cus_has_gone, struct stage *stage)
{
	struct lease *rt = grant(&stage->s, VR, 10);

	CHECK(activate(stage, rt, false) == 0);
	CHECK(activate(stage, rt, true) == 0);
	look(stage, 0, process(10, 1), queue(10, &stage->arbiter->gpus[0].all));
	arbiter_lend(stage->arbiter, stage->now);
	CHECK(rt->state == STATE_ACTIVATING && rt->deadline_usec == UINT64_MAX);
	CHECK(strstr(rt->reason, "pid 10"));
	CHECK(arbiter_masks_observed(stage->arbiter, NULL, 0) == 0);
	arbiter_judge_drift(stage->arbiter, ++stage->now);
	arbiter_lend(stage->arbiter, stage->now);
	arbiter_lend(stage->arbiter, stage->now);
	CHECK(rt->state == STATE_GRANTED && !*reason_of(stage->arbiter, rt));
}

/* ---- what cannot be observed, and much of it -------------------------------------------------- */

TEST_WITH(queues_of_a_process_that_no_scan_has_shown_refuse_nothing, struct stage *stage)
{
	struct observed_mask row = queue(11, &stage->arbiter->gpus[0].all);

	look(stage, 0, process(10, 1), row); /* 11 came after the scan, or is gone */
	CHECK(stage->arbiter->n_covers == 1 && cuset_empty(&stage->arbiter->gpus[0].outside));
	look(stage, 0, process(11, 1), row);
	CHECK(stage->arbiter->n_covers == 1 && !cuset_empty(&stage->arbiter->gpus[0].outside));
	row.kfd_gpu_id = GPU_ID + 1; /* no GPU has it */
	look(stage, 0, process(11, 1), row);
	CHECK(stage->arbiter->n_covers == 0);
}

TEST_WITH(process_with_the_pid_of_an_ended_one_does_not_inherit_its_drift, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all;
	struct observed row = process(10, 1);

	look(stage, 0, row, queue(10, all));
	look(stage, GRACE, row, queue(10, all));
	CHECK(lease_drifts(lease));
	arbiter_add_holder(stage->arbiter, lease->id);
	arbiter_bound_gone(stage->arbiter, lease->id, 10);
	CHECK(arbiter_observe(stage->arbiter, NULL, 0) == 0);
	row.start_time = 2;
	look(stage, 1, row, queue(10, all));
	CHECK(!lease_drifts(lease) && stage->arbiter->n_covers == 1);
	CHECK(stage->arbiter->covers[0].lease == 0); /* it has no lease, and covers all CUs */
}

TEST_WITH(drift_of_masks_ends_when_descriptors_become_unreadable, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all;

	look(stage, 0, process(10, 9), queue(10, all));
	look(stage, GRACE, process(10, 9), queue(10, all));
	CHECK(lease_drifts(lease) == (1U << DRIFT_MASK | 1U << DRIFT_QUEUES));
	CHECK(arbiter_masks_observed(stage->arbiter, NULL, 0) == 0);
	arbiter_judge_drift(stage->arbiter, ++stage->now);
	arbiter_lend(stage->arbiter, stage->now);
	CHECK(lease_drifts(lease) == 1U << DRIFT_QUEUES &&
	      strstr(reason_of(stage->arbiter, lease), "9 queues"));
	CHECK(cuset_empty(&stage->arbiter->gpus[0].outside));
}

TEST_WITH(ten_thousand_queues_are_one_cover_for_each_process, struct stage *stage)
{
	const unsigned n = 10000, processes = 100;
	struct observed *rows = calloc(processes, sizeof(*rows));
	struct observed_mask *masks = calloc(n, sizeof(*masks));

	CHECK(rows && masks);
	for (size_t i = 0; i < processes; i++)
		rows[i] = process(100 + (pid_t)i, n / processes);
	for (size_t i = 0; i < n; i++)
		masks[i] = queue(100 + (pid_t)(i / (n / processes)), &stage->arbiter->gpus[0].all);
	CHECK(arbiter_observe(stage->arbiter, rows, processes) == 0);
	CHECK(arbiter_masks_observed(stage->arbiter, masks, n) == 0);
	arbiter_judge_drift(stage->arbiter, 1);
	arbiter_lend(stage->arbiter, 1);
	CHECK(stage->arbiter->n_covers == processes);
	for (size_t i = 0; i < processes; i++)
		CHECK(stage->arbiter->covers[i].queues == n / processes);
	CHECK(cuset_equal(&stage->arbiter->gpus[0].outside, &stage->arbiter->gpus[0].all));
	free(rows);
	free(masks);
}

/* ---- tiers ------------------------------------------------------------------------------------- */

static bool has_tier(const struct lease *lease, const char *tier)
{
	return strcmp(partition_tier(&lease->partitions[0]), tier) == 0;
}

TEST_WITH(lease_can_be_capped_and_verified, struct stage *stage)
{
	struct lease *lease = hold(stage, ANY, 15, 10);
	const struct cuset *own = &lease->partitions[0].cus;

	arbiter_set_filtered(stage->arbiter, lease, true);
	CHECK(!lease_is_verified(lease) && has_tier(lease, "capped"));
	CHECK(look(stage, 0, process(10, 1), queue(10, own)) & TOUCH_REASON);
	CHECK(lease_is_verified(lease) && has_tier(lease, "capped"));
	arbiter_set_filtered(stage->arbiter, lease, false);
	CHECK(lease_is_verified(lease) && has_tier(lease, "verified"));
}

TEST_WITH(tier_is_hardware_while_a_compute_partition_has_one_lease_and_nothing_else,
	  struct stage *stage)
{
	struct lease *lease, *other;

	lease = hold(stage, ANY, 15, 10);
	look(stage, 0, process(10, 1), queue(10, &lease->partitions[0].cus));
	CHECK(has_tier(lease, "verified")); /* the GPU is a whole card */
	strcpy(stage->arbiter->gpus[0].info.name, "0000:03:00.0/1");
	CHECK(look(stage, 0, process(10, 1), queue(10, &lease->partitions[0].cus)) & TOUCH_REASON);
	CHECK(has_tier(lease, "hardware"));
	other = grant(&stage->s, ANY, 15);
	arbiter_judge_drift(stage->arbiter, stage->now);
	CHECK(has_tier(lease, "verified") && has_tier(other, "cooperative"));
	ledger_remove(stage->arbiter, other);
	arbiter_judge_drift(stage->arbiter, stage->now);
	CHECK(has_tier(lease, "hardware"));
	forget_touched(&stage->s);
	look(stage, 0, process(77, 1), queue(77, &lease->partitions[0].cus));
	CHECK(has_tier(lease, "cooperative"));
}

TEST(tier_is_hardware_only_if_nothing_else_shares_the_memory_of_the_card)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct gpu *gpus = s.arbiter->gpus;
	struct lease *lease;
	struct observed row;

	strcpy(gpus[0].info.name, "0000:03:00.0/0");
	strcpy(gpus[1].info.name, "0000:03:00.0/1");
	gpus[1].info.kfd_gpu_id = GPU_ID;
	lease = grant_as(&s, ANY, "cus=15 gpu=0");
	arbiter_judge_drift(s.arbiter, 1);
	CHECK(has_tier(lease, "hardware"));
	row = process(77, 1);
	CHECK(arbiter_observe(s.arbiter, &row, 1) == 0);
	arbiter_judge_drift(s.arbiter, 2);
	CHECK(has_tier(lease, "cooperative"));
	gpus[1].info.memory = 1; /* NPS */
	arbiter_judge_drift(s.arbiter, 3);
	CHECK(has_tier(lease, "hardware"));
	gpus[1].info.memory = 0;
	CHECK(arbiter_observe(s.arbiter, NULL, 0) == 0);
	CHECK(grant_as(&s, ANY, "cus=15 gpu=1"));
	arbiter_judge_drift(s.arbiter, 4);
	CHECK(has_tier(lease, "cooperative"));
}

/* ---- what a disturbed lease is told ---------------------------------------------------------- */

/* A process of the realtime user, without a queue. */
static struct observed own_process(pid_t pid)
{
	struct observed row = process(pid, 0);

	row.uid = VR;
	return row;
}

TEST_WITH(lease_is_told_of_processes_that_end_before_a_scan_shows_them, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);
	const struct intruders *told = &victim->partitions[0].intruders;
	const struct cuset *all = &stage->arbiter->gpus[0].all;
	const struct observed own = own_process(20);

	look(stage, 1, own, queue(20, &victim->partitions[0].cus));
	CHECK(lease_is_alone(victim));
	look(stage, 1, own, queue(1001, all));
	CHECK(!lease_is_alone(victim) && told->n == 0);
	CHECK(gpu_cus_free(&stage->arbiter->gpus[0]) == 45 && grant(&stage->s, LAB, 15));
	CHECK(arbiter_observe(stage->arbiter, &own, 1) == 0);
	arbiter_judge_drift(stage->arbiter, stage->now); /* a scan between two reads */
	look(stage, 1, own_process(20), queue(1002, all));
	CHECK(told->n == 1 && told->list[0].pid == 1002 && told->list[0].lease == 0);
	look(stage, 1, own_process(20), queue(20, &victim->partitions[0].cus));
	CHECK(lease_is_alone(victim) && told->n == 0);
}

TEST_WITH(lease_is_told_at_once_that_a_process_without_a_lease_covers_it, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);
	const struct intruders *told = &victim->partitions[0].intruders;
	char text[REQUEST_TEXT];

	look(stage, 1, own_process(20), queue(20, &victim->partitions[0].cus));
	CHECK(lease_is_alone(victim) && told->n == 0 && told->cus == 0);
	CHECK(look(stage, 1, process(10, 1), queue(10, &stage->arbiter->gpus[0].all)) &
	      TOUCH_REASON);
	CHECK(!lease_is_alone(victim) && told->n == 1 && told->cus == 15);
	CHECK(told->list[0].pid == 10 && told->list[0].uid == ANY && told->list[0].lease == 0);
	CHECK(told->list[0].cus == 15 && told->list[0].since_usec == stage->now);
	CHECK(strstr(arbiter_reason(stage->arbiter, victim, text), "pid 10 (python3)"));
	/* The same again is no news, and it has lasted since then. */
	CHECK(!(look(stage, 7, process(10, 1), queue(10, &stage->arbiter->gpus[0].all)) &
		TOUCH_INTRUDERS));
	CHECK(told->list[0].since_usec == stage->now - 7);
	CHECK(look(stage, 1, own_process(20), queue(20, &victim->partitions[0].cus)) &
	      TOUCH_INTRUDERS);
	CHECK(lease_is_alone(victim) && told->n == 0 && told->cus == 0);
	CHECK(strcmp(arbiter_reason(stage->arbiter, victim, text), "") == 0);
}

/* One CU of each engine of a realtime lease is in nobody's mask; a CU of another engine is no matter. */
TEST_WITH(realtime_lease_is_told_of_queues_in_its_engines_alone, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);
	const struct cuset *all = &stage->arbiter->gpus[0].all;
	struct cuset engines = victim->partitions[0].cus, others = *all;

	gpu_add_engines(&stage->arbiter->gpus[0], &engines);
	cuset_remove(&others, &engines);
	look(stage, 1, process(10, 1), queue(10, &others));
	CHECK(lease_is_alone(victim) && victim->partitions[0].intruders.n == 0);
	look(stage, 1, process(10, 1), queue(10, &engines));
	CHECK(!lease_is_alone(victim) && victim->partitions[0].intruders.n == 1);
}

/* A new queue gets its mask a moment later. */
TEST_WITH(queue_of_another_lease_disturbs_if_a_second_scan_shows_it, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20), *other = hold(stage, ANY, 15, 10);
	const struct cuset *all = &stage->arbiter->gpus[0].all;
	const struct intruders *told = &victim->partitions[0].intruders;

	look(stage, 1, process(10, 1), queue(10, all));
	CHECK(!lease_is_alone(victim) && told->n == 0);
	look(stage, 1, process(10, 1), queue(10, &other->partitions[0].cus));
	CHECK(lease_is_alone(victim) && told->n == 0);
	look(stage, 1, process(10, 1), queue(10, all));
	look(stage, 1, process(10, 1), queue(10, all));
	CHECK(told->n == 1 && told->cus == 15 && told->list[0].lease == other->id);
	CHECK(other->partitions[0].intruders.n == 0); /* not by itself */
}

TEST_WITH(those_with_the_most_cus_are_named_and_all_are_counted, struct stage *stage)
{
	enum { PROCESSES = INTRUDERS + 3 };
	struct lease *victim = hold(stage, VR, 15, 100);
	const struct intruders *told = &victim->partitions[0].intruders;
	struct observed rows[PROCESSES];
	struct observed_mask masks[PROCESSES];
	char text[REQUEST_TEXT];

	for (pid_t i = 0; i < PROCESSES; i++) {
		struct cuset some = { 0 };

		some.pair[0] = (1U << (i + 1)) - 1; /* the first ones of an engine */
		rows[i] = process(10 + i, 1);
		masks[i] = queue(10 + i, &some);
	}
	CHECK(victim->partitions[0].cus.pair[0]); /* it has that engine */
	CHECK(arbiter_observe(stage->arbiter, rows, PROCESSES) == 0);
	CHECK(arbiter_masks_observed(stage->arbiter, masks, PROCESSES) == 0);
	arbiter_judge_drift(stage->arbiter, ++stage->now);
	CHECK(told->n == PROCESSES && told->cus == PROCESSES);
	for (unsigned i = 0; i < INTRUDERS; i++)
		CHECK(told->list[i].cus == PROCESSES - i &&
		      told->list[i].pid == 10 + PROCESSES - 1 - (pid_t)i);
	CHECK(strstr(arbiter_reason(stage->arbiter, victim, text), ", and 6 more"));
}

TEST_WITH(process_of_another_user_with_the_pid_of_a_bound_one_disturbs, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);
	const struct intruders *told = &victim->partitions[0].intruders;

	look(stage, 1, own_process(20), queue(20, &stage->arbiter->gpus[0].all));
	CHECK(told->n == 0);
	look(stage, 1, process(20, 1), queue(20, &stage->arbiter->gpus[0].all));
	CHECK(!lease_is_alone(victim) && told->n == 1 && told->list[0].uid == ANY);
}

TEST_WITH(nobody_is_alone_where_descriptors_cannot_be_read, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);

	look(stage, 1, process(10, 1), queue(10, &stage->arbiter->gpus[0].all));
	CHECK(victim->partitions[0].intruders.n == 1);
	stage->arbiter->verifies = false;
	look(stage, 1, process(10, 1), queue(10, &stage->arbiter->gpus[0].all));
	CHECK(!lease_is_alone(victim) && victim->partitions[0].intruders.n == 0);
}

TEST_WITH(process_that_draws_disturbs_a_realtime_lease_where_policy_minds, struct stage *stage)
{
	struct lease *victim = hold(stage, VR, 15, 20);
	const struct intruders *told = &victim->partitions[0].intruders;
	struct gpu_graphics *graphics = &stage->arbiter->gpus[0].graphics;
	struct gpu_client game = { .pid = 10, .uid = ANY, .command = "game", .draws = true };

	graphics->clients = calloc(1, sizeof(game));
	graphics->clients[0] = game;
	graphics->n_clients = 1;
	graphics->state = GRAPHICS_DRAWN;
	look(stage, 1, own_process(20), queue(20, &victim->partitions[0].cus));
	CHECK(lease_is_alone(victim) && told->n == 0);
	stage->arbiter->settings->graphics = GRAPHICS_REFUSE_REALTIME;
	look(stage, 1, own_process(20), queue(20, &victim->partitions[0].cus));
	CHECK(!lease_is_alone(victim) && told->n == 1 && told->cus == 15 && told->list[0].draws);
}
