/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/arbiter.h"

#include <errno.h>

#include "check.h"
#include "core/lend.h"
#include "lend-rig.h"

/* A borrower that does not answer, and who needs what it has. */
struct contest {
	struct lending l;
	struct lease *rt, *borrower;
};

static struct contest contest_of(enum rung enforce)
{
	struct contest c = { .l = lending_of(1) };

	add_tenant(c.l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT)->enforce = enforce;
	c.rt = keep_inactive(&c.l, 15);
	c.borrower = borrow(&c.l, 4, 60);
	CHECK(activate(&c.l, c.rt->id, true) == 0);
	return c;
}

static enum rung next_rung(struct contest *c)
{
	struct lease *lease = NULL;
	enum rung rung = arbiter_next_rung(c->l.s.arbiter, c->l.now, &lease);

	CHECK(rung == RUNG_NONE || lease == c->borrower);
	return rung;
}

TEST(nothing_is_done_before_the_deadline)
{
	struct contest c = contest_of(RUNG_KILL);

	c.l.now += SECOND_USEC - 1;
	CHECK(next_rung(&c) == RUNG_NONE);
	CHECK(arbiter_next_deadline(c.l.s.arbiter) == c.l.now + 1);
	scene_done(&c.l.s);
}

TEST(a_tenant_that_may_only_be_reported_keeps_others_waiting)
{
	struct contest c = contest_of(RUNG_REPORT);

	c.l.now += SECOND_USEC;
	CHECK(next_rung(&c) == RUNG_REPORT && next_rung(&c) == RUNG_NONE);
	pass(&c.l, 3600 * SECOND_USEC);
	CHECK(next_rung(&c) == RUNG_NONE);
	CHECK(c.rt->state == STATE_ACTIVATING && strstr(c.rt->reason, "15 CUs of 0000:03:00.0"));
	CHECK(strstr(c.borrower->reason, "has not given back"));
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_GRANTED && c.borrower->rung == RUNG_NONE);
	CHECK(!c.borrower->reason[0]);
	scene_done(&c.l.s);
}

TEST(the_worst_case_of_an_activation_is_grace_and_delay_and_the_kernels_own)
{
	struct contest c = contest_of(RUNG_KILL);
	uint64_t began = c.l.now;
	const struct settings *settings = c.l.s.arbiter->settings;

	pass(&c.l, arbiter_next_deadline(c.l.s.arbiter) - c.l.now);
	CHECK(next_rung(&c) == RUNG_REPORT && next_rung(&c) == RUNG_FREEZE);
	CHECK(next_rung(&c) == RUNG_NONE);
	pass(&c.l, arbiter_next_deadline(c.l.s.arbiter) - c.l.now);
	CHECK(next_rung(&c) == RUNG_KILL && next_rung(&c) == RUNG_NONE);
	CHECK(c.rt->deadline_usec == c.l.now + LEND_LET_GO_USEC);
	CHECK(c.l.now - began == settings->activate_grace_usec + settings->enforce_delay_usec);
	CHECK(c.borrower->state == STATE_ENDING && c.borrower->revoked);
	settle(&c.l);
	CHECK(c.rt->state == STATE_ACTIVATING); /* until the hardware has let go */
	CHECK(arbiter_observe(c.l.s.arbiter, NULL, 0) == 0);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED);
	scene_done(&c.l.s);
}

TEST(an_activation_is_due_when_the_slowest_of_its_borrowers_is_killed)
{
	struct lending l = lending_of(1);
	struct lease *rt = keep_inactive(&l, 30), *other = keep_inactive(&l, 15), *first, *second;
	struct tenant *tenant = add_tenant(l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT);
	uint64_t due;

	tenant->enforce = RUNG_KILL;
	first = borrow(&l, 4, 40);
	second = borrow(&l, 4, 60);
	CHECK(first && second && first->partitions[0].count < 60);
	CHECK(activate(&l, rt->id, true) == 0);
	due = rt->deadline_usec;
	CHECK(due == l.now + 2 * SECOND_USEC + LEND_LET_GO_USEC);
	l.now += SECOND_USEC / 2;
	CHECK(activate(&l, other->id, true) == 0);
	CHECK(rt->deadline_usec == due && other->deadline_usec >= due);
	CHECK(other->deadline_usec <= due + SECOND_USEC / 2);
	tenant->enforce = RUNG_FREEZE;
	CHECK(activate(&l, other->id, false) == 0 && activate(&l, other->id, true) == 0);
	CHECK(other->deadline_usec == l.now + SECOND_USEC); /* nothing bounds it */
	scene_done(&l.s);
}

TEST(what_was_frozen_is_thawed_when_nobody_needs_it_any_more)
{
	struct contest c = contest_of(RUNG_FREEZE);

	pass(&c.l, SECOND_USEC);
	CHECK(next_rung(&c) == RUNG_REPORT && next_rung(&c) == RUNG_FREEZE);
	c.borrower->frozen = true;
	CHECK(!arbiter_next_thaw(c.l.s.arbiter));
	CHECK(activate(&c.l, c.rt->id, false) == 0);
	CHECK(arbiter_next_thaw(c.l.s.arbiter) == c.borrower && !c.borrower->frozen);
	CHECK(!arbiter_next_thaw(c.l.s.arbiter));
	scene_done(&c.l.s);
}

/* ---- revocation ------------------------------------------------------------------------- */

static int revoke(struct lending *l, uint64_t id, uint64_t grace)
{
	int r;

	verdict_done(&l->s.verdict);
	r = arbiter_revoke(l->s.arbiter, id, l->now, grace, "maintenance", &l->s.verdict);
	settle(l);
	return r;
}

TEST(a_revoked_lease_has_its_grace_and_may_end_before)
{
	struct lending l = lending_of(1);
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
	CHECK(!arbiter_find(l.s.arbiter, id));
	scene_done(&l.s);
}

TEST(a_revoked_lease_ends_at_its_deadline)
{
	struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30), *which;

	CHECK(revoke(&l, lab->id, 0) == 0);
	CHECK(arbiter_next_rung(l.s.arbiter, l.now, &which) == RUNG_REPORT && which == lab);
	CHECK(lab->state == STATE_ENDING && lab->rung_usec == UINT64_MAX);
	CHECK(arbiter_next_rung(l.s.arbiter, l.now + SECOND_USEC, &which) == RUNG_NONE);
	scene_done(&l.s);
}

TEST(a_second_revocation_only_brings_the_deadline_forward)
{
	struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);

	CHECK(revoke(&l, lab->id, 10 * SECOND_USEC) == 0);
	CHECK(revoke(&l, lab->id, 20 * SECOND_USEC) < 0);
	CHECK(l.s.verdict.kind == VERDICT_INVALID_STATE && strstr(l.s.verdict.sentence, "sooner"));
	CHECK(revoke(&l, lab->id, 5 * SECOND_USEC) == 0);
	CHECK(lab->deadline_usec == l.now + 5 * SECOND_USEC && lab->generation == 3);
	scene_done(&l.s);
}

TEST(who_needs_what_a_revoked_borrower_has_waits_no_longer_for_that)
{
	struct contest c = contest_of(RUNG_REPORT);
	struct lease *which;

	CHECK(activate(&c.l, c.rt->id, false) == 0);
	CHECK(revoke(&c.l, c.borrower->id, 3600 * SECOND_USEC) == 0);
	CHECK(c.borrower->deadline_usec == c.l.now + 3600 * SECOND_USEC);
	CHECK(activate(&c.l, c.rt->id, true) == 0);
	CHECK(c.borrower->deadline_usec == c.l.now + SECOND_USEC);
	pass(&c.l, SECOND_USEC);
	CHECK(arbiter_next_rung(c.l.s.arbiter, c.l.now, &which) == RUNG_REPORT);
	CHECK(which == c.borrower && which->state == STATE_ENDING);
	CHECK(arbiter_observe(c.l.s.arbiter, NULL, 0) == 0);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED);
	scene_done(&c.l.s);
}

TEST(a_grace_of_a_year_is_refused)
{
	struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);

	CHECK(revoke(&l, lab->id, UINT64_C(365) * 24 * 3600 * SECOND_USEC) < 0);
	CHECK(l.s.verdict.kind == VERDICT_INVALID_REQUEST &&
	      strstr(l.s.verdict.sentence, "grace_usec"));
	CHECK(lab->state == STATE_GRANTED);
	CHECK(revoke(&l, 99, 0) < 0 && l.s.verdict.kind == VERDICT_NO_SUCH_LEASE);
	scene_done(&l.s);
}

TEST(a_lease_that_waits_is_revoked_at_once)
{
	struct lending l = lending_of(1);
	struct request request = request_for(60);
	struct lease *waiting;
	uint64_t id;

	grant(&l.s, LAB, 60);
	request.wait_usec = UINT64_MAX;
	waiting = reserve(l.s.arbiter, LAB, &request, &l.s.verdict);
	id = waiting->id;
	CHECK(waiting->state == STATE_WAITING && revoke(&l, id, 5 * SECOND_USEC) == 0);
	CHECK(!arbiter_find(l.s.arbiter, id));
	scene_done(&l.s);
}

/* ---- whose processes ---------------------------------------------------------------------- */

TEST(only_bound_processes_and_their_children_may_be_killed)
{
	struct lending l = lending_of(1);
	struct lease *lab = grant(&l.s, LAB, 30);
	struct lease_process own[8];
	struct observed rows[3] = {
		{ .pid = 10, .start_time = 1, .uid = LAB, .kfd_gpu_id = 77, .queues = 1 },
		{ .pid = 11, .start_time = 2, .uid = LAB, .kfd_gpu_id = 77, .queues = 1,
		  .ancestors = { 10 }, .n_ancestors = 1 },
		{ .pid = 12, .start_time = 3, .uid = LAB, .kfd_gpu_id = 77, .queues = 1,
		  .unit = "session-1.scope" },
	};

	l.s.arbiter->gpus[0].info.kfd_gpu_id = 77;
	memcpy(lab->unit, "session-1.scope", sizeof("session-1.scope"));
	CHECK(arbiter_bind(l.s.arbiter, lab->id, 10) == 0);
	CHECK(arbiter_observe(l.s.arbiter, rows, 3) == 0);
	CHECK(lab->users == 3);
	CHECK(arbiter_own_processes(l.s.arbiter, lab->id, own, 8) == 2);
	CHECK(own[0].pid == 10 && own[1].pid == 11 && own[1].start_time == 2);
	scene_done(&l.s);
}

/* ---- what the hardware has ------------------------------------------------------------------ */

TEST(an_acknowledgement_counts_when_it_was_seen_to_be_true)
{
	struct contest c = contest_of(RUNG_REPORT);
	struct arbiter *arbiter = c.l.s.arbiter;
	struct mask_seen row = { .pid = 10, .kfd_gpu_id = 77, .unrestricted = true };
	bool urgent;

	arbiter->verifies = true;
	arbiter->gpus[0].info.kfd_gpu_id = 77;
	row.cus = arbiter->gpus[0].all;
	CHECK(arbiter_bind(arbiter, c.borrower->id, 10) == 0);
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_ACTIVATING && c.borrower->unseen);
	CHECK(arbiter_wants_masks(arbiter, &urgent) && urgent);

	arbiter_masks_seen(arbiter, &row, 1);
	settle(&c.l);
	CHECK(c.rt->state == STATE_ACTIVATING && c.borrower->false_acknowledged);
	CHECK(strstr(c.borrower->reason, "pid 10"));
	CHECK(arbiter_wants_masks(arbiter, &urgent) && !urgent);
	CHECK(strcmp(partition_tier(&c.borrower->partitions[0]), "cooperative") == 0);

	row.cus = c.borrower->partitions[0].cus;
	row.unrestricted = false;
	arbiter_masks_seen(arbiter, &row, 1);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED && !c.borrower->false_acknowledged);
	CHECK(strcmp(partition_tier(&c.borrower->partitions[0]), "verified") == 0);
	scene_done(&c.l.s);
}

TEST(where_nothing_can_be_seen_any_more_acknowledgements_are_believed)
{
	struct contest c = contest_of(RUNG_REPORT);

	c.l.s.arbiter->verifies = true;
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_ACTIVATING);
	arbiter_masks_unseen(c.l.s.arbiter);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED);
	scene_done(&c.l.s);
}

/* ---- a process with two leases -------------------------------------------------------------- */

#define GAME 10 /* its pid */

/* One process of user VR has a high lease and a normal one on the same GPU. */
struct both {
	struct lending l;
	struct lease *high, *normal;
	struct mask_seen rows[3]; /* one queue inside of each, and what the test makes of the last */
};

static struct lease *ask(struct lending *l, unsigned cus, unsigned priority)
{
	struct caller caller = caller_of(VR);
	struct request request = request_for(cus);
	struct lease *proposal;

	caller.pid = GAME;
	request.wants[0].priority = priority;
	CHECK(arbiter_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.verdict) == 0);
	return arbiter_commit(l->s.arbiter, proposal);
}

static struct both both_of(void)
{
	static const struct observed use = { .pid = GAME, .start_time = 1, .uid = VR,
					     .kfd_gpu_id = 77, .queues = 4 };
	struct both b = { .l = lending_of(1) };
	struct arbiter *arbiter = b.l.s.arbiter;

	arbiter->verifies = true;
	arbiter->gpus[0].info.kfd_gpu_id = 77;
	b.high = ask(&b.l, 15, PRIORITY_HIGH);
	b.normal = ask(&b.l, 30, PRIORITY_NORMAL);
	for (size_t i = 0; i < 3; i++) {
		const struct lease *lease = i == 0 ? b.high : b.normal;

		b.rows[i] = (struct mask_seen){ .pid = GAME, .kfd_gpu_id = 77,
						.cus = lease->partitions[0].cus,
						.priority = lease->partitions[0].priority };
	}
	CHECK(arbiter_observe(arbiter, &use, 1) == 0);
	return b;
}

TEST(one_process_may_hold_a_high_and_a_normal_lease)
{
	struct both b = both_of();

	CHECK(b.high->id != b.normal->id && b.high->state == STATE_GRANTED);
	CHECK(b.normal->state == STATE_GRANTED);
	CHECK(!cuset_overlap(&b.high->partitions[0].cus, &b.normal->partitions[0].cus));
	CHECK(b.high->partitions[0].used.queues == 2 && b.normal->partitions[0].used.queues == 2);
	CHECK(!b.high->excessive && !b.normal->excessive);
	scene_done(&b.l.s);
}

TEST(each_queue_of_a_process_is_the_leases_whose_mask_it_has)
{
	struct both b = both_of();

	arbiter_masks_seen(b.l.s.arbiter, b.rows, 2);
	CHECK(b.high->partitions[0].verified && b.normal->partitions[0].verified);
	CHECK(b.high->partitions[0].priorities_seen == 1U << 11);
	CHECK(b.normal->partitions[0].priorities_seen == 1U << 7);
	scene_done(&b.l.s);
}

TEST(a_queue_that_is_in_no_lease_may_be_any_of_its_process)
{
	struct both b = both_of();

	cuset_add(&b.rows[2].cus, &b.rows[0].cus);
	arbiter_masks_seen(b.l.s.arbiter, b.rows, 3);
	CHECK(!b.high->partitions[0].verified && !b.normal->partitions[0].verified);
	CHECK(b.high->partitions[0].wide == GAME && b.normal->partitions[0].wide == GAME);
	scene_done(&b.l.s);
}

TEST(a_lease_of_another_user_is_not_that_process_whatever_its_pid)
{
	struct both b = both_of();
	struct lease *lab = grant(&b.l.s, LAB, 15);

	lab->pid = GAME;
	b.rows[2].cus = lab->partitions[0].cus;
	arbiter_masks_seen(b.l.s.arbiter, b.rows, 3);
	CHECK(!lab->partitions[0].verified && lab->partitions[0].wide == 0);
	CHECK(b.high->partitions[0].wide == GAME);
	scene_done(&b.l.s);
}

TEST(what_becomes_of_a_priority_is_told)
{
	struct both b = both_of();
	struct arbiter *arbiter = b.l.s.arbiter;

	arbiter_masks_seen(arbiter, b.rows, 2);
	settle(&b.l);
	b.rows[0].priority = PRIORITY_NORMAL;
	arbiter_masks_seen(arbiter, b.rows, 2);
	CHECK(b.high->touched & TOUCH_REASON && !(b.normal->touched & TOUCH_REASON));
	CHECK(b.high->partitions[0].priorities_seen == 1U << 7);
	settle(&b.l);
	arbiter_masks_unseen(arbiter);
	CHECK(b.high->touched & TOUCH_REASON && b.high->partitions[0].priorities_seen == 0);
	scene_done(&b.l.s);
}
