/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Acknowledged masks, compared with the masks of the observed queues. */

#include "check.h"
#include "lend-rig.h"

/* ---- acknowledgements -------------------------------------------------------------- */

TEST(acknowledgement_frees_cus_when_the_descriptors_confirm_it)
{
	struct contest c = contest_of(ENFORCE_STEP_REPORT);
	struct arbiter *arbiter = c.l.s.arbiter;
	struct observed_mask row = { .pid = 10, .kfd_gpu_id = 77 };
	bool urgent;

	arbiter->verifies = true;
	arbiter->gpus[0].info.kfd_gpu_id = 77;
	row.cus = arbiter->gpus[0].all;
	CHECK(arbiter_bind(arbiter, c.borrower->id, 10, false) == 0);
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_ACTIVATING && c.borrower->verify.pending);
	CHECK(arbiter_wants_masks(arbiter, &urgent) && urgent);

	arbiter_masks_observed(arbiter, &row, 1);
	settle(&c.l);
	CHECK(c.rt->state == STATE_ACTIVATING && c.borrower->verify.false_ack);
	CHECK(strstr(reason_of(c.l.s.arbiter, c.borrower), "pid 10"));
	CHECK(arbiter_wants_masks(arbiter, &urgent) && !urgent);
	CHECK(strcmp(partition_tier(&c.borrower->partitions[0]), "cooperative") == 0);

	row.cus = c.borrower->partitions[0].cus;
	arbiter_masks_observed(arbiter, &row, 1);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED && !c.borrower->verify.false_ack);
	CHECK(strcmp(partition_tier(&c.borrower->partitions[0]), "verified") == 0);
	scene_done(&c.l.s);
}

TEST(acknowledgement_counts_as_true_when_descriptors_are_unreadable)
{
	struct contest c = contest_of(ENFORCE_STEP_REPORT);

	c.l.s.arbiter->verifies = true;
	follow(&c.l, c.borrower);
	CHECK(c.rt->state == STATE_ACTIVATING);
	arbiter_masks_observed(c.l.s.arbiter, NULL, 0);
	settle(&c.l);
	CHECK(c.rt->state == STATE_GRANTED);
	scene_done(&c.l.s);
}

/* ---- a process with two leases ----------------------------------------------------- */

#define GAME 10 /* its pid */

/* A process of user VR with a lease of high and one of normal priority on the same GPU. */
struct both {
	struct lending l;
	struct lease *high, *normal;
	struct observed_mask rows[3]; /* one queue within each mask, and one that the test sets */
};

static struct lease *ask(struct lending *l, unsigned cus, unsigned priority)
{
	struct caller caller = caller_of(VR);
	struct request request = request_for(cus);
	struct lease *proposal;

	caller.pid = GAME;
	request.wants[0].priority = priority;
	CHECK(arbiter_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.result) == 0);
	return arbiter_commit(l->s.arbiter, proposal);
}

static struct both both_of(void)
{
	static const struct observed use = {
		.pid = GAME, .start_time = 1, .uid = VR, .kfd_gpu_id = 77, .queues = 4
	};
	struct both b = { .l = lending_of(1) };
	struct arbiter *arbiter = b.l.s.arbiter;

	arbiter->verifies = true;
	arbiter->gpus[0].info.kfd_gpu_id = 77;
	b.high = ask(&b.l, 15, PRIORITY_HIGH);
	b.normal = ask(&b.l, 30, PRIORITY_NORMAL);
	for (size_t i = 0; i < 3; i++) {
		const struct lease *lease = i == 0 ? b.high : b.normal;

		b.rows[i] = (struct observed_mask){ .pid = GAME,
						    .kfd_gpu_id = 77,
						    .cus = lease->partitions[0].cus,
						    .priority = lease->partitions[0].priority };
	}
	CHECK(arbiter_observe(arbiter, &use, 1) == 0);
	return b;
}

FIXTURE(struct both, b, *b = both_of(), scene_done(&b->l.s));

TEST_WITH(one_process_may_hold_a_high_and_a_normal_lease, struct both *b)
{
	CHECK(b->high->id != b->normal->id && b->high->state == STATE_GRANTED);
	CHECK(b->normal->state == STATE_GRANTED);
	CHECK(!cuset_overlap(&b->high->partitions[0].cus, &b->normal->partitions[0].cus));
	CHECK(b->high->partitions[0].used.queues == 2 && b->normal->partitions[0].used.queues == 2);
	arbiter_judge_drift(b->l.s.arbiter, 1);
	CHECK(arbiter_drift_at(b->l.s.arbiter, FRESH_USE) == UINT64_MAX);
}

TEST_WITH(queue_belongs_to_the_lease_whose_mask_contains_it, struct both *b)
{
	arbiter_masks_observed(b->l.s.arbiter, b->rows, 2);
	CHECK(b->high->partitions[0].queues.verified && b->normal->partitions[0].queues.verified);
	CHECK(b->high->partitions[0].queues.priorities == 1U << 11);
	CHECK(b->normal->partitions[0].queues.priorities == 1U << 7);
}

TEST_WITH(queue_within_no_mask_makes_all_leases_of_its_process_unverified, struct both *b)
{
	cuset_add(&b->rows[2].cus, &b->rows[0].cus);
	arbiter_masks_observed(b->l.s.arbiter, b->rows, 3);
	CHECK(!b->high->partitions[0].queues.verified && !b->normal->partitions[0].queues.verified);
	CHECK(b->high->partitions[0].queues.wide_pid == GAME &&
	      b->normal->partitions[0].queues.wide_pid == GAME);
}

TEST_WITH(queue_never_belongs_to_a_lease_of_another_user, struct both *b)
{
	struct lease *lab = grant(&b->l.s, LAB, 15);

	lab->pid = GAME;
	b->rows[2].cus = lab->partitions[0].cus;
	arbiter_masks_observed(b->l.s.arbiter, b->rows, 3);
	CHECK(!lab->partitions[0].queues.verified && lab->partitions[0].queues.wide_pid == 0);
	CHECK(b->high->partitions[0].queues.wide_pid == GAME);
}

TEST_WITH(changed_queue_priority_touches_the_lease, struct both *b)
{
	struct arbiter *arbiter = b->l.s.arbiter;

	arbiter_masks_observed(arbiter, b->rows, 2);
	settle(&b->l);
	b->rows[0].priority = PRIORITY_NORMAL;
	arbiter_masks_observed(arbiter, b->rows, 2);
	CHECK(b->high->touched & TOUCH_REASON && !(b->normal->touched & TOUCH_REASON));
	CHECK(b->high->partitions[0].queues.priorities == 1U << 7);
	settle(&b->l);
	arbiter_masks_observed(arbiter, NULL, 0);
	CHECK(b->high->touched & TOUCH_REASON && b->high->partitions[0].queues.priorities == 0);
}
