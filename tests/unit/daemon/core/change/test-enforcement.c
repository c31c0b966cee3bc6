/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>

#include "check.h"
#include "lend-rig.h"

static enum enforce_step next_enforce_step(struct contest *c)
{
	struct lease *lease = NULL;
	enum enforce_step enforce_step = arbiter_next_enforce_step(c->l.s.arbiter, c->l.now,
								   &lease);

	CHECK(enforce_step == ENFORCE_STEP_NONE || lease == c->borrower);
	return enforce_step;
}

FIXTURE(struct contest, c, *c = contest_of(ENFORCE_STEP_KILL), scene_done(&c->l.s));

/* After a restart, and when changes can be saved again: an acknowledgement may have been lost. */
TEST_WITH(a_borrower_whose_deadline_passed_gets_time_to_acknowledge_again, struct contest *c)
{
	c->l.now += 10 * SECOND_USEC;
	arbiter_give_time(c->l.s.arbiter, c->l.now);
	CHECK(next_enforce_step(c) == ENFORCE_STEP_NONE);
	CHECK(c->borrower->deadline_usec == c->l.now + SECOND_USEC);
	arbiter_lend(c->l.s.arbiter, c->l.now);
	CHECK(c->rt->deadline_usec > c->borrower->deadline_usec);
	c->l.now += SECOND_USEC;
	CHECK(next_enforce_step(c) == ENFORCE_STEP_REPORT);
}

/* A lease is planned, and the save before its own is the first that succeeds again. */
TEST_WITH(a_proposal_does_not_take_back_the_time_that_was_given, struct contest *c)
{
	struct arbiter *arbiter = c->l.s.arbiter;
	struct lease *next;

	c->l.now += 10 * SECOND_USEC;
	CHECK(lease_next_version(c->borrower, c->borrower->n_partitions, &next) == 0);
	arbiter_give_time(arbiter, c->l.now);
	CHECK(arbiter_commit(arbiter, next) == c->borrower);
	CHECK(next_enforce_step(c) == ENFORCE_STEP_NONE);
	c->l.now += SECOND_USEC;
	CHECK(next_enforce_step(c) == ENFORCE_STEP_REPORT);
}

TEST(activation_waits_for_a_tenant_with_enforce_report)
{
	struct contest c = contest_of(ENFORCE_STEP_REPORT);

	c.l.now += SECOND_USEC;
	CHECK(next_enforce_step(&c) == ENFORCE_STEP_REPORT &&
	      next_enforce_step(&c) == ENFORCE_STEP_NONE);
	pass(&c.l, 3600 * SECOND_USEC);
	CHECK(next_enforce_step(&c) == ENFORCE_STEP_NONE);
	CHECK(c.rt->state == STATE_ACTIVATING &&
	      strstr(reason_of(c.l.s.arbiter, c.rt), "15 CUs of 0000:03:00.0"));
	CHECK(strstr(reason_of(c.l.s.arbiter, c.borrower), "back"));
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_GRANTED && c.borrower->enforce.step == ENFORCE_STEP_NONE);
	CHECK(!*reason_of(c.l.s.arbiter, c.borrower));
	scene_done(&c.l.s);
}

TEST_WITH(activation_takes_at_most_grace_plus_delay_plus_preemption_timeout, struct contest *c)
{
	uint64_t began = c->l.now;
	const struct settings *settings = c->l.s.arbiter->settings;

	pass(&c->l, arbiter_next_deadline(c->l.s.arbiter) - c->l.now);
	CHECK(next_enforce_step(c) == ENFORCE_STEP_REPORT &&
	      next_enforce_step(c) == ENFORCE_STEP_FREEZE);
	CHECK(next_enforce_step(c) == ENFORCE_STEP_NONE);
	pass(&c->l, arbiter_next_deadline(c->l.s.arbiter) - c->l.now);
	CHECK(next_enforce_step(c) == ENFORCE_STEP_KILL &&
	      next_enforce_step(c) == ENFORCE_STEP_NONE);
	CHECK(c->rt->deadline_usec == c->l.now + ENFORCE_LET_GO_USEC);
	CHECK(c->l.now - began == settings->activate_grace_usec + settings->enforce_delay_usec);
	CHECK(c->borrower->state == STATE_ENDING && c->borrower->revoked);
	settle(&c->l);
	CHECK(c->rt->state ==
	      STATE_ACTIVATING); /* until a scan shows that the processes are gone */
	CHECK(arbiter_observe(c->l.s.arbiter, NULL, 0) == 0);
	settle(&c->l);
	CHECK(c->rt->state == STATE_GRANTED);
}

TEST_WITH(longer_preemption_timeout_of_the_kernel_is_respected, struct contest *c)
{
	uint64_t due = c->rt->deadline_usec;

	c->l.s.arbiter->gpus[0].info.preemption_msec = 2 * PREEMPTION_MSEC;
	settle(&c->l);
	CHECK(enforce_over_at(c->l.s.arbiter, c->borrower, c->l.now) ==
	      due + PREEMPTION_MSEC * UINT64_C(1000));
}

TEST(an_activation_is_due_when_the_slowest_of_its_borrowers_is_killed)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *rt = keep_inactive(&l, 30), *other = keep_inactive(&l, 15), *first, *second;
	struct tenant *tenant = add_tenant(l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT);
	uint64_t due;

	tenant->enforce = ENFORCE_STEP_KILL;
	first = borrow(&l, 4, 40);
	second = borrow(&l, 4, 60);
	CHECK(first && second && first->partitions[0].count < 60);
	CHECK(activate(&l, rt->id, true) == 0);
	due = rt->deadline_usec;
	CHECK(due == l.now + 2 * SECOND_USEC + ENFORCE_LET_GO_USEC);
	l.now += SECOND_USEC / 2;
	CHECK(activate(&l, other->id, true) == 0);
	CHECK(rt->deadline_usec == due && other->deadline_usec >= due);
	CHECK(other->deadline_usec <= due + SECOND_USEC / 2);
	tenant->enforce = ENFORCE_STEP_FREEZE;
	CHECK(activate(&l, other->id, false) == 0 && activate(&l, other->id, true) == 0);
	/* Policy does not allow to kill the borrower: no bound. */
	CHECK(other->deadline_usec == UINT64_MAX);
}

TEST(frozen_unit_is_thawed_when_no_lease_needs_its_cus)
{
	struct contest c = contest_of(ENFORCE_STEP_FREEZE);

	pass(&c.l, SECOND_USEC);
	CHECK(next_enforce_step(&c) == ENFORCE_STEP_REPORT &&
	      next_enforce_step(&c) == ENFORCE_STEP_FREEZE);
	c.borrower->enforce.frozen = true;
	arbiter_forget_frozen(c.l.s.arbiter);
	CHECK(c.borrower->enforce.frozen);
	CHECK(activate(&c.l, c.rt->id, false) == 0);
	arbiter_forget_frozen(c.l.s.arbiter);
	CHECK(!c.borrower->enforce.frozen);
	scene_done(&c.l.s);
}

/* ---- revocation -------------------------------------------------------------------- */

static int revoke(struct lending *l, uint64_t id, uint64_t grace)
{
	int r;

	result_done(&l->s.result);
	r = arbiter_revoke(l->s.arbiter, id, l->now, grace, "maintenance", &l->s.result);
	settle(l);
	return r;
}

TEST(revoked_lease_has_a_grace_and_ends_earlier_if_acknowledged)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);
	uint64_t id = lab->id;

	CHECK(revoke(&l, id, 5 * SECOND_USEC) == 0);
	CHECK(lab->state == STATE_REVOKING && lab->deadline_usec == l.now + 5 * SECOND_USEC);
	CHECK(lab->generation == 2 && strstr(lab->reason, "maintenance"));
	CHECK(arbiter_acknowledge(l.s.arbiter, id, 1) == 0 && lab->state == STATE_REVOKING);
	CHECK(arbiter_acknowledge(l.s.arbiter, id, 2) == 0 && lab->state == STATE_ENDING);
	CHECK(lab->revoked && strstr(lab->reason, "maintenance"));
	CHECK(arbiter_observe(l.s.arbiter, NULL, 0) == 0);
	settle(&l);
	CHECK(!ledger_find(l.s.arbiter, id));
}

TEST(terminated_lease_is_to_be_killed_whatever_its_tenant_says)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30), *which;

	arbiter_kill_overdue(l.s.arbiter, lab->id + 1); /* there is no such lease */
	CHECK(revoke(&l, lab->id, 0) == 0);
	arbiter_kill_overdue(l.s.arbiter, lab->id);
	CHECK(lab->touched & TOUCH_SAVE);
	CHECK(arbiter_next_enforce_step(l.s.arbiter, l.now, &which) == ENFORCE_STEP_REPORT);
	while (arbiter_next_enforce_step(l.s.arbiter, l.now, &which) != ENFORCE_STEP_NONE)
		CHECK(which->enforce.step < ENFORCE_STEP_KILL);
	CHECK(arbiter_next_enforce_step(l.s.arbiter, l.now + SECOND_USEC, &which) ==
		      ENFORCE_STEP_KILL &&
	      which == lab);
}

TEST(kill_that_was_not_carried_out_is_due_again_after_a_second)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30), *which;

	CHECK(revoke(&l, lab->id, 0) == 0);
	arbiter_kill_overdue(l.s.arbiter, lab->id);
	arbiter_kill_again(l.s.arbiter, lab->id, l.now); /* it was not due yet */
	CHECK(lab->enforce.step == ENFORCE_STEP_NONE);
	while (arbiter_next_enforce_step(l.s.arbiter, l.now, &which) != ENFORCE_STEP_KILL)
		l.now += SECOND_USEC;
	CHECK(arbiter_next_enforce_step(l.s.arbiter, UINT64_MAX - 1, &which) == ENFORCE_STEP_NONE);
	arbiter_kill_again(l.s.arbiter, lab->id + 1, l.now); /* it is gone */
	arbiter_kill_again(l.s.arbiter, lab->id, l.now);
	CHECK(lab->touched & TOUCH_SAVE);
	CHECK(arbiter_next_enforce_step(l.s.arbiter, l.now, &which) == ENFORCE_STEP_NONE);
	CHECK(arbiter_next_enforce_step(l.s.arbiter, l.now + SECOND_USEC, &which) ==
		      ENFORCE_STEP_KILL &&
	      which == lab);
}

/* Where no gpuarb-enforce is ever there, it is asked each second. */
TEST(kill_that_is_repeated_is_saved_once)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30), *which;
	unsigned touched, saved = 0;

	CHECK(revoke(&l, lab->id, 0) == 0);
	arbiter_kill_overdue(l.s.arbiter, lab->id);
	while (arbiter_next_enforce_step(l.s.arbiter, l.now, &which) != ENFORCE_STEP_KILL)
		l.now += SECOND_USEC;
	while (ledger_take_touched(l.s.arbiter, &touched))
		;
	for (unsigned i = 0; i < 10; i++) {
		arbiter_kill_again(l.s.arbiter, lab->id, l.now);
		l.now += SECOND_USEC;
		while (ledger_take_touched(l.s.arbiter, &touched))
			saved++;
		CHECK(arbiter_next_enforce_step(l.s.arbiter, l.now, &which) == ENFORCE_STEP_KILL);
		while (ledger_take_touched(l.s.arbiter, &touched))
			saved++;
	}
	CHECK(saved == 1);
}

TEST(a_second_revocation_only_brings_the_deadline_forward)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);

	CHECK(revoke(&l, lab->id, 10 * SECOND_USEC) == 0);
	CHECK(revoke(&l, lab->id, 20 * SECOND_USEC) < 0);
	CHECK(l.s.result.kind == RESULT_INVALID_STATE && strstr(l.s.result.sentence, "sooner"));
	CHECK(revoke(&l, lab->id, 5 * SECOND_USEC) == 0);
	CHECK(lab->deadline_usec == l.now + 5 * SECOND_USEC && lab->generation == 3);
}

TEST(revocation_of_a_borrower_does_not_delay_an_activation)
{
	struct contest c = contest_of(ENFORCE_STEP_REPORT);
	struct lease *which;

	CHECK(activate(&c.l, c.rt->id, false) == 0);
	CHECK(revoke(&c.l, c.borrower->id, 3600 * SECOND_USEC) == 0);
	CHECK(c.borrower->deadline_usec == c.l.now + 3600 * SECOND_USEC);
	CHECK(activate(&c.l, c.rt->id, true) == 0);
	CHECK(c.borrower->deadline_usec == c.l.now + SECOND_USEC);
	pass(&c.l, SECOND_USEC);
	CHECK(arbiter_next_enforce_step(c.l.s.arbiter, c.l.now, &which) == ENFORCE_STEP_REPORT);
	CHECK(which == c.borrower && which->state == STATE_ENDING);
	CHECK(arbiter_observe(c.l.s.arbiter, NULL, 0) == 0);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED);
	scene_done(&c.l.s);
}

TEST(a_grace_of_a_year_is_refused)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);

	CHECK(revoke(&l, lab->id, UINT64_C(365) * 24 * 3600 * SECOND_USEC) < 0);
	CHECK(l.s.result.kind == RESULT_INVALID_REQUEST &&
	      strstr(l.s.result.sentence, "grace_usec"));
	CHECK(lab->state == STATE_GRANTED);
	CHECK(revoke(&l, 99, 0) < 0 && l.s.result.kind == RESULT_NO_SUCH_LEASE);
}

TEST(revoked_waiting_lease_ends_at_once)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *waiting;
	uint64_t id;

	grant(&l.s, LAB, 60);
	waiting = grant_as(&l.s, LAB, "cus=60; wait-usec=forever");
	id = waiting->id;
	CHECK(waiting->state == STATE_WAITING && revoke(&l, id, 5 * SECOND_USEC) == 0);
	CHECK(!ledger_find(l.s.arbiter, id));
}

/* ---- processes --------------------------------------------------------------------- */

TEST(only_bound_processes_and_their_descendants_may_be_killed)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);
	struct lease_process own[8];
	struct observed rows[3] = {
		{ .pid = 10, .start_time = 1, .uid = LAB, .kfd_gpu_id = 77, .queues = 1 },
		{ .pid = 11,
		  .start_time = 2,
		  .uid = LAB,
		  .kfd_gpu_id = 77,
		  .queues = 1,
		  .ancestors = { 10 },
		  .n_ancestors = 1 },
		{ .pid = 12,
		  .start_time = 3,
		  .uid = LAB,
		  .kfd_gpu_id = 77,
		  .queues = 1,
		  .unit = "session-1.scope" },
	};

	l.s.arbiter->gpus[0].info.kfd_gpu_id = 77;
	memcpy(lab->unit, "session-1.scope", sizeof("session-1.scope"));
	CHECK(arbiter_bind(l.s.arbiter, lab->id, 10, false) == 0);
	CHECK(arbiter_observe(l.s.arbiter, rows, 3) == 0);
	CHECK(lab->observed.processes == 3);
	CHECK(known_processes(l.s.arbiter, lab->id, true, own, 8) == 2);
	CHECK(own[0].pid == 10 && own[1].pid == 11 && own[1].start_time == 2);
}

/* A process that is counted for the lease and may not be killed keeps its CUs as long as it likes. */
TEST_WITH(an_activation_has_no_deadline_while_a_process_that_is_not_bound_uses_the_gpu,
	  struct contest *c)
{
	struct observed row = {
		.pid = 12, .start_time = 3, .uid = ANY, .kfd_gpu_id = 77, .queues = 1
	};

	CHECK(c->rt->deadline_usec == c->l.now + 2 * SECOND_USEC + ENFORCE_LET_GO_USEC);
	c->l.s.arbiter->gpus[0].info.kfd_gpu_id = 77;
	c->borrower->pid = 12;
	CHECK(arbiter_observe(c->l.s.arbiter, &row, 1) == 0);
	settle(&c->l);
	CHECK(c->borrower->observed.processes == 1 && c->rt->deadline_usec == UINT64_MAX);
	CHECK(arbiter_bind(c->l.s.arbiter, c->borrower->id, 12, false) == 0);
	CHECK(arbiter_observe(c->l.s.arbiter, &row, 1) == 0);
	settle(&c->l);
	CHECK(c->rt->deadline_usec == c->l.now + 2 * SECOND_USEC + ENFORCE_LET_GO_USEC);
}

/* ---- without a bound process --------------------------------------------------------- */

TEST(a_lease_whose_last_bound_process_is_gone_returns_what_it_borrows)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lease = borrow(&l, 4, 60);

	CHECK(arbiter_bind(l.s.arbiter, lease->id, 12, false) == 0);
	CHECK(arbiter_bind(l.s.arbiter, lease->id, 13, false) == 0);
	arbiter_bound_gone(l.s.arbiter, lease->id, 12);
	settle(&l);
	CHECK(cus_of(lease) == 60);
	arbiter_bound_gone(l.s.arbiter, lease->id, 13);
	settle(&l);
	CHECK(lease->state == STATE_GRANTED && cus_of(lease) == 4 && lease->generation == 2);
	CHECK(cuset_count(&lease->partitions[0].occupied) == 60);
	follow(&l, lease);
	pass(&l, 3600 * SECOND_USEC);
	CHECK(cus_of(lease) == 4);
	CHECK(arbiter_bind(l.s.arbiter, lease->id, 14, false) == 0);
	settle(&l);
	pass(&l, 3600 * SECOND_USEC);
	CHECK(cus_of(lease) == 60);
}

TEST(what_it_borrows_expires_at_its_deadline_unless_a_process_of_it_uses_the_gpu)
{
	struct contest c = contest_of(ENFORCE_STEP_REPORT);
	struct observed row = {
		.pid = 12, .start_time = 3, .uid = ANY, .kfd_gpu_id = 77, .queues = 1
	};

	c.l.s.arbiter->gpus[0].info.kfd_gpu_id = 77;
	CHECK(c.rt->deadline_usec == UINT64_MAX);
	CHECK(arbiter_bind(c.l.s.arbiter, c.borrower->id, 12, false) == 0);
	CHECK(arbiter_observe(c.l.s.arbiter, &row, 1) == 0);
	arbiter_bound_gone(c.l.s.arbiter, c.borrower->id, 12);
	settle(&c.l);
	CHECK(cus_of(c.borrower) == 4 && c.rt->deadline_usec == UINT64_MAX);
	c.l.now += SECOND_USEC;
	CHECK(next_enforce_step(&c) == ENFORCE_STEP_REPORT);
	settle(&c.l);
	CHECK(c.rt->state == STATE_ACTIVATING);
	/* A scan shows later that the process is gone. */
	CHECK(arbiter_observe(c.l.s.arbiter, NULL, 0) == 0);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED && c.borrower->state == STATE_GRANTED);
	CHECK(c.borrower->enforce.step == ENFORCE_STEP_NONE);
	scene_done(&c.l.s);

	c = contest_of(ENFORCE_STEP_REPORT);
	CHECK(arbiter_bind(c.l.s.arbiter, c.borrower->id, 12, false) == 0);
	arbiter_bound_gone(c.l.s.arbiter, c.borrower->id, 12);
	CHECK(arbiter_observe(c.l.s.arbiter, NULL, 0) == 0);
	settle(&c.l);
	CHECK(c.rt->deadline_usec == c.borrower->deadline_usec);
	c.l.now = c.rt->deadline_usec;
	CHECK(next_enforce_step(&c) == ENFORCE_STEP_REPORT);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED && c.borrower->state == STATE_GRANTED);
	CHECK(cuset_equal(&c.borrower->partitions[0].cus, &c.borrower->partitions[0].occupied));
	scene_done(&c.l.s);
}
