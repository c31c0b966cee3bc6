/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>

#include "check.h"
#include "lend-rig.h"

FIXTURE(struct lending, l, *l = lending_of(1), lending_done(l));

TEST_WITH(cus_of_an_inactive_lease_are_lent, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);

	CHECK(rt->state == STATE_INACTIVE && cus_of(rt) == 15);
	CHECK(cus_of(lease) == 60);
	/* No other lease is granted any of these CUs. */
	CHECK(!grant(&l->s, LAB, 56) && refused(&l->s, RESULT_NO_CAPACITY, REASON_CUS));
}

TEST_WITH(activating_lease_is_granted_when_every_borrower_has_acknowledged, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);

	CHECK(activate(l, rt->id, true) == 0);
	CHECK(rt->state == STATE_ACTIVATING && rt->deadline_usec == UINT64_MAX);
	CHECK(strstr(reason_of(l->s.arbiter, rt), "15 CUs") &&
	      strstr(reason_of(l->s.arbiter, rt), "lease 2"));
	CHECK(lease->generation == 2 && cus_of(lease) == 45 && lease->acknowledged == 1);
	CHECK(lease->deadline_usec == l->now + SECOND_USEC);
	CHECK(!cuset_overlap(&lease->partitions[0].cus, &rt->partitions[0].cus));
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, 1) == 0);
	settle(l);
	CHECK(rt->state == STATE_ACTIVATING);
	follow(l, lease);
	CHECK(rt->state == STATE_GRANTED && rt->deadline_usec == UINT64_MAX &&
	      !*reason_of(l->s.arbiter, rt));
	CHECK(lease->deadline_usec == UINT64_MAX && lease->enforce.step == ENFORCE_STEP_NONE);
}

TEST_WITH(borrower_receives_its_previous_mask_after_grow_delay, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);
	struct cuset before = lease->partitions[0].cus;

	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	CHECK(activate(l, rt->id, false) == 0 && rt->state == STATE_INACTIVE);
	CHECK(cus_of(lease) == 45);
	pass(l, SECOND_USEC);
	CHECK(cus_of(lease) == 45); /* growing is delayed: it may be active again by then */
	pass(l, SECOND_USEC);
	CHECK(cuset_equal(&before, &lease->partitions[0].cus) && lease->generation == 3);
}

TEST_WITH(cancelled_activation_changes_no_mask, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);

	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	for (int i = 0; i < 10; i++) {
		CHECK(activate(l, rt->id, false) == 0);
		CHECK(activate(l, rt->id, true) == 0 && rt->state == STATE_GRANTED);
	}
	CHECK(lease->generation == 2);
}

TEST_WITH(thousands_of_activations_leak_nothing, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);
	struct cuset before = lease->partitions[0].cus;
	struct gpu was = l->s.arbiter->gpus[0];
	unsigned cycles = check_rounds(3000, 100000);

	for (unsigned i = 0; i < cycles; i++) {
		CHECK(activate(l, rt->id, true) == 0);
		follow(l, lease);
		CHECK(rt->state == STATE_GRANTED);
		CHECK(activate(l, rt->id, false) == 0);
		pass(l, 2 * SECOND_USEC);
		follow(l, lease);
	}
	CHECK(cuset_equal(&before, &lease->partitions[0].cus));
	CHECK(lease->generation == 2 * cycles + 1 && rt->generation == 1);
	CHECK(cuset_equal(&was.taken, &l->s.arbiter->gpus[0].taken));
	CHECK(memcmp(&was.charged, &l->s.arbiter->gpus[0].charged, sizeof(was.charged)) == 0);
}

TEST_WITH(new_lease_prefers_free_cus_to_borrowed_ones, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 30), *lab = grant(&l->s, LAB, 15);

	settle(l);
	CHECK(cus_of(lease) == 30 && lease->generation == 1);
	CHECK(lab->state == STATE_GRANTED);
}

TEST_WITH(new_lease_says_for_how_many_cus_of_borrowers_it_waits, struct lending *l)
{
	struct lease *lab;

	CHECK(borrow(l, 4, 60));
	lab = grant(&l->s, LAB, 1);
	settle(l);
	CHECK(lab->state == STATE_ACTIVATING && strstr(lab->reason, "waits for 1 CU of "));
}

TEST_WITH(new_lease_ends_if_borrowers_do_not_give_back_in_time, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 60), *lab = grant(&l->s, LAB, 45);
	uint64_t id = lab->id;

	lab->lend.give_up_usec = l->now + 3 * SECOND_USEC;
	settle(l);
	CHECK(arbiter_next_deadline(l->s.arbiter) <= l->now + SECOND_USEC);
	l->now += 3 * SECOND_USEC;
	arbiter_expire(l->s.arbiter, l->now);
	CHECK(lab->state == STATE_ENDING && lab->cause == RESULT_TIMED_OUT);
	CHECK(strstr(lab->reason, "deadline"));
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	settle(l);
	CHECK(!ledger_find(l->s.arbiter, id));
	follow(l, lease);
	pass(l, 2 * SECOND_USEC);
	CHECK(cus_of(lease) == 60);
}

TEST_WITH(waiting_lease_is_granted_when_borrowers_have_shrunk, struct lending *l)
{
	struct lease *hold = grant(&l->s, LAB, 30), *lease, *next, *waiting;
	uint64_t id = hold->id;

	waiting = grant_as(&l->s, LAB, "cus=45; wait-usec=100000000");
	waiting->deadline_usec = l->now + 100 * SECOND_USEC;
	CHECK(waiting && waiting->state == STATE_WAITING);
	lease = borrow(l, 4, 60);
	CHECK(lease && cus_of(lease) == 30);
	release(l->s.arbiter, id);
	settle(l);
	CHECK(arbiter_plan_next(l->s.arbiter, &next) == 1);
	CHECK(arbiter_commit(l->s.arbiter, next) == waiting);
	settle(l);
	CHECK(waiting->state == STATE_ACTIVATING &&
	      waiting->lend.give_up_usec == l->now + 100 * SECOND_USEC);
	follow(l, lease);
	CHECK(waiting->state == STATE_GRANTED && waiting->lend.give_up_usec == UINT64_MAX);
}

TEST_WITH(lease_with_alone_reclaims_whole_engines, struct lending *l)
{
	struct lease *rt, *lease;

	add_tenant(l->s.arbiter, "loner", VR, CLASS_REALTIME)->alone = true;
	rt = keep_inactive(l, 12);
	lease = borrow(l, 4, 60);
	CHECK(cus_of(lease) == 60);
	CHECK(activate(l, rt->id, true) == 0);
	CHECK(!(cuset_engines(&lease->partitions[0].cus) & cuset_engines(&rt->partitions[0].cus)));
	follow(l, lease);
	CHECK(rt->state == STATE_GRANTED);
}

TEST_WITH(realtime_lease_counts_disturbances_by_mask_changes, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *other = keep_inactive(l, 15);
	struct lease *lease = borrow(l, 4, 60);

	CHECK(activate(l, rt->id, true) == 0);
	/* Inactive leases have no queues. */
	CHECK(rt->lend.disturbances == 0 && other->lend.disturbances == 0);
	follow(l, lease);
	CHECK(activate(l, other->id, true) == 0);
	CHECK(rt->lend.disturbances == 1);
	follow(l, lease);
	CHECK(resize_as(&l->s, lease, "cus=4 cus-max=8") == 0);
	CHECK(rt->lend.disturbances == 2);
}

TEST_WITH(mask_change_on_mes_is_no_disturbance, struct lending *l)
{
	struct lease *rt, *other, *lease;

	l->s.arbiter->gpus[0].info.scheduler = SCHEDULER_MES;
	rt = keep_inactive(l, 15);
	other = keep_inactive(l, 15);
	lease = borrow(l, 4, 60);
	CHECK(activate(l, rt->id, true) == 0);
	follow(l, lease);
	CHECK(activate(l, other->id, true) == 0);
	CHECK(rt->lend.disturbances == 0);
}

TEST_WITH(activation_in_a_wrong_state_is_refused, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lab = grant(&l->s, LAB, 15);
	struct caller vr = caller_of(VR), any = caller_of(ANY), lab_caller = caller_of(LAB);

	CHECK(activate(l, rt->id, false) < 0 && l->s.result.kind == RESULT_INVALID_STATE);
	CHECK(activate(l, rt->id, true) == 0);
	CHECK(activate(l, rt->id, true) < 0 && l->s.result.kind == RESULT_INVALID_STATE);
	CHECK(strstr(l->s.result.sentence, "granted"));
	CHECK(set_active(l->s.arbiter, &any, rt->id, true, &l->s.result) < 0);
	CHECK(l->s.result.kind == RESULT_NOT_PERMITTED);
	CHECK(set_active(l->s.arbiter, &any, rt->id, false, &l->s.result) < 0);
	CHECK(set_active(l->s.arbiter, &lab_caller, lab->id, true, &l->s.result) < 0);
	CHECK(l->s.result.kind == RESULT_INVALID_STATE &&
	      strstr(l->s.result.sentence, "guaranteed"));
	CHECK(set_active(l->s.arbiter, &vr, 99, true, &l->s.result) < 0);
	CHECK(l->s.result.kind == RESULT_NO_SUCH_LEASE);
}

/* Resizes an adaptable lease; 0: the want has no such key. Returns 0 or a negative errno. */
static int resize(struct lending *l, const struct lease *lease, unsigned cus, unsigned least,
		  unsigned most)
{
	int r = resize_as(&l->s, lease, "cus=%u cus-min=%u cus-max=%u queues=2", cus, least, most);

	settle(l);
	return r;
}

static unsigned base_of(const struct lease *lease)
{
	return cuset_count(&lease->partitions[0].adaptation->base);
}

TEST_WITH(resize_below_the_base_gets_what_a_new_lease_would, struct lending *l)
{
	struct lease *lease;

	CHECK(grant(&l->s, LAB, 28) && (lease = borrow(l, 20, 60)));
	CHECK(resize(l, lease, 0, 0, 15) == 0 && base_of(lease) == 15);
	CHECK(resize(l, lease, 0, 0, 13) == 0 && base_of(lease) == 12); /* 13 in no rectangle */
	CHECK(resize(l, lease, 0, 70, 0) < 0 && l->s.result.kind == RESULT_INVALID_REQUEST &&
	      strstr(l->s.result.sentence, "cus-max 13"));
}

TEST_WITH(resize_changes_the_bounds_of_an_adaptable_lease, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 60);
	struct cuset had;

	CHECK(resize(l, lease, 30, 10, 0) == 0);
	CHECK(lease->generation == 2 && cus_of(lease) == 30 && base_of(lease) == 10);
	CHECK(lease->partitions[0].asked == 30);
	CHECK(cuset_count(&lease->partitions[0].occupied) == 60); /* until it is acknowledged */
	CHECK(!grant(&l->s, LAB, 60) && grant(&l->s, LAB, 15)->state == STATE_ACTIVATING);
	follow(l, lease);
	CHECK(cuset_count(&lease->partitions[0].occupied) == 30);
	had = lease->partitions[0].cus;
	CHECK(resize(l, lease, 0, 0, 45) == 0); /* the base stays */
	CHECK(base_of(lease) == 10 && cus_of(lease) == 45);
	CHECK(cuset_within(&had, &lease->partitions[0].cus));
}

TEST_WITH(resize_without_bounds_keeps_those_of_an_adaptable_lease, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 45);

	CHECK(resize(l, lease, 0, 0, 0) == 0 && cus_of(lease) == 45 && base_of(lease) == 4);
	CHECK(resize(l, lease, 0, 12, 0) == 0 && cus_of(lease) == 45 && base_of(lease) == 12);
	CHECK(resize(l, lease, 3, 0, 0) == 0 && cus_of(lease) == 3 && base_of(lease) == 3);
	CHECK(resize(l, lease, 0, 0, 2) == 0 && cus_of(lease) == 2 && base_of(lease) == 2);
	CHECK(lease->generation == 5);
	CHECK(resize(l, lease, 0, 20, 10) == -EINVAL && lease->generation == 5);
}

/* All holders acknowledge, and leases grow, until nothing follows. */
static void come_to_rest(struct lending *l)
{
	for (int i = 0; i < 6; i++) {
		follow_each(l);
		pass(l, 3 * SECOND_USEC);
	}
}

/* Two leases that share the 60 CUs. */
static void share_evenly(struct lending *l, struct lease **ret_first, struct lease **ret_second)
{
	*ret_first = borrow(l, 4, 60);
	*ret_second = borrow(l, 4, 60);
	come_to_rest(l);
	CHECK(cus_of(*ret_first) == 30 && cus_of(*ret_second) == 30);
}

TEST_WITH(resize_of_an_adaptable_lease_reclaims_as_a_new_request_does, struct lending *l)
{
	struct lease *first, *second;
	uint64_t generation;

	share_evenly(l, &first, &second);
	generation = second->generation;
	CHECK(resize(l, first, 60, 20, 0) == 0 && base_of(first) == 20); /* it has them */
	CHECK(second->generation == generation);
	follow(l, first);
	CHECK(resize(l, first, 60, 45, 0) == 0 && lease_awaits_resize(first));
	CHECK(base_of(first) == 20 && cus_of(first) == 30);
	CHECK(*reason_of(l->s.arbiter, first));
	CHECK(!grant(&l->s, LAB, 28)); /* the base to be is claimed */
	CHECK(cus_of(second) == 15 && second->deadline_usec < UINT64_MAX);
	follow(l, first);
	pass(l, 3 * SECOND_USEC);
	CHECK(cus_of(first) == 30 && lease_awaits_resize(first));
	follow(l, second);
	CHECK(!lease_awaits_resize(first) && base_of(first) == 45 && cus_of(first) == 45);
	CHECK(cuset_within(&first->partitions[0].cus, &first->partitions[0].occupied));
	release(l->s.arbiter, second->id);
	follow(l, first);
	pass(l, 3 * SECOND_USEC);
	CHECK(cus_of(first) == 60);
}

TEST_WITH(resize_of_an_adaptable_lease_leaves_others_what_they_never_lose, struct lending *l)
{
	struct lease *first, *second;

	share_evenly(l, &first, &second);
	CHECK(resize(l, first, 60, 57, 0) < 0 && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(resize(l, first, 60, 45, 0) == 0);
	CHECK(resize(l, second, 30, 30, 0) < 0 && l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(resize(l, first, 60, 10, 0) == 0 && !lease_awaits_resize(first)); /* taken back */
	CHECK(base_of(first) == 10);
	follow(l, first);
	follow(l, second);
	CHECK(resize(l, second, 30, 30, 0) == 0);
}

TEST_WITH(adaptable_lease_that_awaits_a_resize_shrinks_for_others, struct lending *l)
{
	struct lease *first, *second, *lab;

	share_evenly(l, &first, &second);
	CHECK(resize(l, second, 60, 36, 0) == 0 && lease_awaits_resize(second));
	CHECK((lab = grant(&l->s, LAB, 8)) && lab->state == STATE_ACTIVATING);
	settle(l);
	follow(l, first);
	follow(l, second);
	follow(l, first);
	CHECK(lab->state == STATE_GRANTED && !lease_awaits_resize(second));
	CHECK(base_of(second) == 36 && cus_of(first) >= base_of(first));
}

/* Its queues have the CUs that left the mask until it acknowledges, also those that it was to get. */
TEST_WITH(resize_that_is_taken_back_keeps_what_queues_have, struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	struct lease *first, *second;
	struct cuset has;

	share_evenly(l, &first, &second);
	CHECK(arbiter_bind(arbiter, second->id, 77, false) == 0);
	arbiter_add_holder(arbiter, second->id);
	CHECK(resize(l, second, 60, 36, 0) == 0 && lease_awaits_resize(second));
	follow(l, second);
	has = second->partitions[0].cus;
	arbiter_unbind(arbiter, second, 77); /* nothing can be made to give CUs back */
	settle(l);
	CHECK(cus_of(second) < 30);
	CHECK(resize(l, second, 4, 4, 4) == 0 && !lease_awaits_resize(second));
	CHECK(cuset_within(&has, &second->partitions[0].occupied));
}

TEST_WITH(deadline_to_return_cus_stays_while_a_lease_awaits_a_resize, struct lending *l)
{
	struct lease *first, *second;
	uint64_t deadline;

	share_evenly(l, &first, &second);
	CHECK(resize(l, second, 60, 36, 0) == 0 && lease_awaits_resize(second));
	follow(l, second);
	CHECK(grant(&l->s, LAB, 12));
	settle(l);
	deadline = second->deadline_usec;
	CHECK(deadline < UINT64_MAX);
	settle(l);
	CHECK(resize(l, second, 60, 36, 0) == 0 && second->deadline_usec == deadline);
	follow(l, first);
	CHECK(!lease_awaits_resize(second) && second->deadline_usec == deadline);
	follow(l, second);
	CHECK(second->deadline_usec == UINT64_MAX);
}

TEST_WITH(resize_within_the_mask_of_an_adaptable_lease_takes_nothing_from_others, struct lending *l)
{
	struct lease *first, *second;

	for (unsigned cus = 4; cus <= 28; cus++) {
		share_evenly(l, &first, &second);
		CHECK(resize(l, second, 60, cus, 0) == 0);
		CHECK(!lease_awaits_resize(second) && base_of(second) >= cus);
		CHECK(cus_of(first) == 30);
		release(l->s.arbiter, first->id);
		release(l->s.arbiter, second->id);
		settle(l);
	}
}

TEST_WITH(resize_of_a_lease_that_has_not_returned_cus_awaits_them, struct lending *l)
{
	struct lease *first = borrow(l, 4, 60), *second = borrow(l, 4, 60);

	settle(l);
	CHECK(cus_of(first) == 30 && second->state == STATE_ACTIVATING);
	CHECK(resize(l, first, 60, 45, 0) == 0);
	follow(l, first);
	follow(l, second);
	follow(l, first);
	CHECK(base_of(first) == 45 && second->state == STATE_GRANTED);
}

TEST_WITH(resize_that_names_no_base_keeps_the_one_that_the_lease_awaits, struct lending *l)
{
	struct lease *first, *second;

	share_evenly(l, &first, &second);
	CHECK(resize(l, first, 60, 45, 0) == 0 && lease_awaits_resize(first));
	CHECK(resize_as(&l->s, first, "queues=3") == 0 && lease_awaits_resize(first));
	settle(l);
	follow(l, second);
	CHECK(base_of(first) == 45);
}

TEST_WITH(what_a_lease_has_not_returned_is_said_before_what_it_awaits, struct lending *l)
{
	struct lease *first, *second, *late;

	share_evenly(l, &first, &second);
	CHECK(resize(l, second, 60, 36, 0) == 0 && lease_awaits_resize(second));
	follow(l, second);
	CHECK(grant(&l->s, LAB, 12));
	settle(l);
	CHECK(strstr(reason_of(l->s.arbiter, second), "lease 1"));
	l->now += 2 * SECOND_USEC;
	while (arbiter_next_enforce_step(l->s.arbiter, l->now, &late))
		CHECK(late == first || late == second);
	settle(l);
	CHECK(strstr(reason_of(l->s.arbiter, second), "deadline"));
}

/* It never has its mask and the base to be at the same time. */
TEST_WITH(lease_that_awaits_a_resize_is_within_its_quota, struct lending *l)
{
	struct tenant *tenant = add_tenant(l->s.arbiter, "small", OTHER, CLASS_BESTEFFORT);
	struct lease *first, *second;

	tenant->max_cus = (struct limit){ LIMIT_COUNT, 40 };
	second = borrow(l, 4, 60);
	first = reserve_as(l, OTHER, "cus=1 cus-min=1 cus-max=60 queues=2; adaptable=1");
	come_to_rest(l);
	CHECK(resize(l, first, 60, 36, 0) == 0 && lease_awaits_resize(first));
	arbiter_review(l->s.arbiter);
	CHECK(first->state == STATE_GRANTED);
	tenant->max_fixed_cus = (struct limit){ LIMIT_COUNT, 36 };
	arbiter_review(l->s.arbiter);
	CHECK(first->state == STATE_GRANTED);
	follow(l, second);
	follow(l, first);
	CHECK(base_of(first) == 36 && cus_of(first) <= 40);
}

TEST_WITH(base_that_a_lease_awaits_counts_in_a_review, struct lending *l)
{
	struct settings *settings = l->s.arbiter->settings;
	struct lease *first, *second;

	share_evenly(l, &first, &second);
	CHECK(resize(l, first, 60, 45, 0) == 0 && lease_awaits_resize(first));
	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].max_fixed_cus = (struct limit){ LIMIT_COUNT, 20 };
	arbiter_review(l->s.arbiter);
	CHECK(first->state == STATE_ENDING && second->state == STATE_GRANTED);
}

TEST_WITH(smaller_resize_takes_no_more_from_others, struct lending *l)
{
	struct lease *first, *second;

	share_evenly(l, &first, &second);
	CHECK(resize(l, first, 60, 45, 0) == 0 && cus_of(second) == 15);
	CHECK(resize(l, first, 60, 40, 0) == 0 && cus_of(second) == 15);
	CHECK(arbiter_drain(l->s.arbiter, "0", true) == 0); /* it may still give up CUs */
	CHECK(resize(l, first, 60, 36, 0) == 0 && cus_of(second) == 15);
	CHECK(resize(l, first, 60, 21, 0) == 0 && cus_of(second) == 15);
	CHECK(!lease_awaits_resize(first));
}

/* The fewest engines for the base would be where the other lease has CUs. */
TEST_WITH(resize_within_the_mask_may_take_more_engines, struct lending *l)
{
	struct lease *first, *second;

	CHECK(grant(&l->s, LAB, 3) && (first = borrow(l, 4, 60)) && (second = borrow(l, 4, 60)));
	come_to_rest(l);
	CHECK(cus_of(first) == 28 && cus_of(second) == 28);
	CHECK(resize(l, first, 60, 22, 0) == 0);
	CHECK(!lease_awaits_resize(first) && cus_of(second) == 28);
}

TEST_WITH(resize_within_the_quota_takes_nothing_from_the_users_other_lease, struct lending *l)
{
	static const char lease[] = "cus=4 cus-min=4 cus-max=60 queues=2; adaptable=1";
	struct tenant *tenant = add_tenant(l->s.arbiter, "small", OTHER, CLASS_BESTEFFORT);
	struct lease *first, *second;

	tenant->max_cus = (struct limit){ LIMIT_COUNT, 44 };
	borrow(l, 4, 60);
	first = reserve_as(l, OTHER, lease);
	second = reserve_as(l, OTHER, lease);
	come_to_rest(l);
	CHECK(cus_of(first) == 15 && cus_of(second) == 15);
	CHECK(resize(l, first, 60, 5, 0) == 0 && !lease_awaits_resize(first));
	CHECK(cus_of(second) == 15);
}

TEST_WITH(request_that_waits_gets_what_a_smaller_base_frees, struct lending *l)
{
	struct lease *lease = borrow(l, 50, 60), *waits, *next;

	waits = grant_as(&l->s, LAB, "cus=30; wait-usec=60000000");
	CHECK(waits && waits->state == STATE_WAITING);
	CHECK(resize(l, lease, 60, 10, 0) == 0);
	CHECK(arbiter_plan_next(l->s.arbiter, &next) == 1 && next->id == waits->id);
	arbiter_commit(l->s.arbiter, next);
	settle(l);
	CHECK(waits->state == STATE_ACTIVATING);
	follow(l, lease);
	CHECK(waits->state == STATE_GRANTED);
}

TEST_WITH(resize_of_a_borrower_that_shrinks_keeps_its_deadline, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *lease = borrow(l, 4, 60);
	uint64_t deadline;

	CHECK(activate(l, rt->id, true) == 0 && cus_of(lease) == 45);
	deadline = lease->deadline_usec;
	CHECK(resize(l, lease, 0, 10, 0) == 0);
	CHECK(lease->generation == 3 && lease->deadline_usec == deadline);
	CHECK(rt->state == STATE_ACTIVATING && base_of(lease) == 10);
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, 2) == 0);
	settle(l);
	CHECK(rt->state == STATE_ACTIVATING);
	follow(l, lease);
	CHECK(rt->state == STATE_GRANTED && lease->deadline_usec == UINT64_MAX);
	CHECK(activate(l, rt->id, false) == 0);
	pass(l, 3 * SECOND_USEC);
	CHECK(cus_of(lease) == 60);
}

TEST_WITH(adaptable_lease_cannot_be_resized_to_what_it_cannot_be, struct lending *l)
{
	struct lease *lease = borrow(l, 4, 60);

	CHECK(resize_as(&l->s, lease, "cus=30 exact=1") == -EINVAL);
	CHECK(resize_as(&l->s, lease, "shader-engines=2") == -EINVAL);
	CHECK(lease->generation == 1);
}

/* A realtime lease of one engine, and a borrower that has the rest. */
static struct lease *resize_beside_borrower(struct lending *l, unsigned engines,
					    struct lease **ret_borrower)
{
	struct lease *rt = grant_as(&l->s, VR, "shader-engines=1");

	CHECK(rt && cus_of(rt) == 15);
	*ret_borrower = borrow(l, 4, 60);
	settle(l);
	CHECK(cus_of(*ret_borrower) == 45);
	follow(l, *ret_borrower);
	CHECK(resize_as(&l->s, rt, "shader-engines=%u", engines) == 0);
	settle(l);
	return rt;
}

TEST_WITH(resize_reclaims_borrowed_cus_as_a_new_request_does, struct lending *l)
{
	struct lease *borrower, *rt = resize_beside_borrower(l, 2, &borrower);
	uint64_t generation = rt->generation;

	CHECK(rt->state == STATE_GRANTED && cus_of(rt) == 15 && lease_awaits_resize(rt));
	CHECK(*reason_of(l->s.arbiter, rt));
	CHECK(cus_of(borrower) == 30 && borrower->deadline_usec < UINT64_MAX);
	CHECK(arbiter_acknowledge(l->s.arbiter, rt->id, generation) == 0); /* of its budgets */
	settle(l);
	CHECK(cus_of(rt) == 15 && lease_awaits_resize(rt));
	follow(l, borrower);
	CHECK(cus_of(rt) == 30 && rt->generation == generation + 1 && !lease_awaits_resize(rt));
	CHECK(!strstr(reason_of(l->s.arbiter, rt), "waits") && rt->deadline_usec == UINT64_MAX);
	CHECK(borrower->deadline_usec == UINT64_MAX);
}

TEST_WITH(resize_that_awaits_cus_may_be_taken_back, struct lending *l)
{
	struct lease *borrower, *rt = resize_beside_borrower(l, 2, &borrower);

	CHECK(resize_as(&l->s, rt, "shader-engines=1") == 0);
	follow(l, rt);
	CHECK(cus_of(rt) == 15 && !lease_awaits_resize(rt) && !*reason_of(l->s.arbiter, rt));
	follow(l, borrower);
	pass(l, 10 * SECOND_USEC);
	CHECK(cus_of(borrower) == 45);
}

/* A lease that awaits CUs of two borrowers is resized to less when one of them has returned its own. */
static void resize_to_what_is_returned(struct lending *l, size_t returns)
{
	struct lease *lease = reserve_as(l, LAB, "cus=15"), *borrowers[2];

	CHECK(reserve_as(l, LAB, "cus=15"));
	for (size_t i = 0; i < 2; i++)
		CHECK(cus_of(borrowers[i] = borrow(l, 4, 15)) == 15);
	CHECK(resize_as(&l->s, lease, "cus=33") == 0);
	settle(l);
	CHECK(lease_awaits_resize(lease));
	follow(l, borrowers[returns]);
	CHECK(lease_awaits_resize(lease));
	CHECK(resize_as(&l->s, lease, "cus=22") == 0);
	settle(l);
	CHECK(cus_of(lease) == 22 && !lease_awaits_resize(lease));
}

TEST(resize_to_less_awaits_no_cus_while_others_are_returned)
{
	for (size_t returns = 0; returns < 2; returns++) {
		_cleanup_(lending_done) struct lending l = lending_of(1);

		resize_to_what_is_returned(&l, returns);
	}
}

TEST_WITH(resized_lease_that_is_deactivated_has_its_new_cus_when_it_is_activated, struct lending *l)
{
	struct lease *borrower, *rt = resize_beside_borrower(l, 2, &borrower);

	CHECK(activate(l, rt->id, false) == 0);
	CHECK(rt->state == STATE_INACTIVE && cus_of(rt) == 30 && !lease_awaits_resize(rt));
	CHECK(activate(l, rt->id, true) == 0 && rt->state == STATE_ACTIVATING);
	follow(l, borrower);
	CHECK(rt->state == STATE_GRANTED && cus_of(rt) == 30);
}

TEST_WITH(resized_lease_has_its_cus_when_the_borrower_has_ended, struct lending *l)
{
	struct lease *borrower, *rt = resize_beside_borrower(l, 2, &borrower);

	arbiter_end(l->s.arbiter, borrower, RESULT_OK, "");
	CHECK(lease_awaits_resize(rt));
	CHECK(arbiter_observe(l->s.arbiter, NULL, 0) == 0);
	settle(l);
	CHECK(cus_of(rt) == 30 && !lease_awaits_resize(rt));
}

TEST_WITH(a_planned_activation_changes_nothing_until_it_is_committed, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *next;
	struct caller vr = caller_of(VR);

	CHECK(arbiter_plan_activate(l->s.arbiter, &vr, rt->id, true, &next, &l->s.result) == 0);
	CHECK(next->state == STATE_ACTIVATING && next->generation == rt->generation);
	CHECK(rt->state == STATE_INACTIVE && !rt->touched && !l->s.arbiter->touched);
	CHECK(arbiter_commit(l->s.arbiter, next) == rt && rt->state == STATE_ACTIVATING);
	CHECK(rt->touched == TOUCH_COMMITTED);
	settle(l);
	CHECK(rt->state == STATE_GRANTED);

	CHECK(arbiter_plan_activate(l->s.arbiter, &vr, rt->id, false, &next, &l->s.result) == 0);
	lease_free(next); /* it could not be saved */
	CHECK(rt->state == STATE_GRANTED && !rt->touched);
}
