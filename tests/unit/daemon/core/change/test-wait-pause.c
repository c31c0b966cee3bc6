/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rounds through the waiting leases that are paused when their steps are used up. */

#include "check.h"
#include "wait-rig.h"

#define WAITING 40U

/* The next part of the round: one lease is examined. */
static int go_on(struct scene *s, struct lease **ret)
{
	s->arbiter->round_steps = 1;
	return arbiter_plan_next(s->arbiter, ret);
}

static bool all_are_examined(const struct scene *s)
{
	return s->arbiter->examined == s->arbiter->changes;
}

/* 40 leases of different sizes wait, more than the cache of failed requests holds. *ret: a lease whose
 * end makes room for none of them. */
static struct scene crowd_of(size_t n_gpus, struct lease *ret[])
{
	struct scene s = scene_of(n_gpus);

	for (size_t i = 0; i < n_gpus; i++) {
		char gpu[] = { (char)('0' + i), '\0' };

		CHECK(grant_on(&s, LAB, gpu, 52));
		ret[i] = grant_on(&s, VR, gpu, 8);
	}
	for (unsigned i = 0; i < WAITING; i++)
		wait_for(&s, i % 2 ? ANY : OTHER, "any", 11 + i);
	CHECK(grant_waiting(&s, NULL) == 0);
	return s;
}

TEST(each_part_of_a_round_examines_a_bounded_number_of_leases)
{
	struct lease *small, *next;
	_cleanup_(scene_done) struct scene s = crowd_of(1, &small);

	release(s.arbiter, small->id);
	for (unsigned i = 1; i <= WAITING; i++) {
		CHECK(go_on(&s, &next) == 0);
		CHECK(s.arbiter->round_steps == 0);
		CHECK(arbiter_in_round(s.arbiter) == (i < WAITING));
		CHECK(i == WAITING || s.arbiter->next_examined == i);
		/* It does nothing before it gets steps again. */
		CHECK(i == WAITING ||
		      (arbiter_plan_next(s.arbiter, &next) == 0 && s.arbiter->next_examined == i));
	}
	CHECK(all_are_examined(&s) && !s.arbiter->paused && s.arbiter->n_waiting == WAITING);
	check_promises(s.arbiter);
}

TEST(release_does_not_restart_a_paused_round)
{
	struct lease *small[3], *next;
	_cleanup_(scene_done) struct scene s = crowd_of(3, small);
	unsigned rounds = 0, parts = 0;

	release(s.arbiter, small[0]->id);
	for (; parts < 10 * WAITING; parts++) {
		CHECK(go_on(&s, &next) == 0);
		if (parts == WAITING / 2 || parts == WAITING + WAITING / 4)
			release(s.arbiter, small[1 + parts / WAITING]->id);
		rounds += !arbiter_in_round(s.arbiter);
		if (!s.arbiter->paused)
			break;
	}
	/* In the second and third round, leases are passed over that were examined after the last release. */
	CHECK(rounds == 3 && parts + 1 == 2 * WAITING + WAITING / 4 + 1);
	CHECK(all_are_examined(&s) && s.arbiter->next_examined == 0);
	check_promises(s.arbiter);
}

TEST(what_becomes_free_during_a_pause_is_offered_to_the_first_lease_first)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *large = grant_on(&s, LAB, "0", 52), *small = grant_on(&s, VR, "0", 8);
	struct lease *first, *second, *third, *next;

	CHECK(grant_on(&s, LAB, "1", 60));
	first = wait_for(&s, ANY, "0", 40);
	second = wait_for(&s, OTHER, "0", 25);
	third = wait_for(&s, ANY, "any", 12);
	CHECK(grant_waiting(&s, NULL) == 0);
	release(s.arbiter, small->id);
	CHECK(go_on(&s, &next) == 0 && arbiter_in_round(s.arbiter));
	CHECK(wait_is_examined(s.arbiter, first) && !wait_is_examined(s.arbiter, second));
	release(s.arbiter, large->id);
	CHECK(!wait_is_examined(s.arbiter, first) && s.arbiter->next_examined == 1);
	/* The second fits now, and so does the first, which was examined before. */
	CHECK(go_on(&s, &next) == 0 && arbiter_in_round(s.arbiter));
	CHECK(go_on(&s, &next) == 1 && next->id == first->id);
	arbiter_commit(s.arbiter, next);
	s.arbiter->round_steps = UINT64_MAX;
	CHECK(grant_waiting(&s, NULL) == 1 && third->state == STATE_GRANTED);
	CHECK(second->state == STATE_WAITING && second->wait.passed == 1);
	check_promises(s.arbiter);
}

TEST(lease_that_needs_nothing_of_a_pause_is_granted_in_its_round)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *first, *second, *next;
	uint64_t a = grant_on(&s, LAB, "0", 60)->id, b = grant_on(&s, LAB, "1", 60)->id;

	first = wait_for(&s, ANY, "0", 40);
	second = wait_for(&s, OTHER, "1", 40);
	CHECK(grant_waiting(&s, NULL) == 0);
	ledger_wake(s.arbiter, 1);
	release(s.arbiter, b);
	CHECK(go_on(&s, &next) == 0 && arbiter_in_round(s.arbiter));
	release(s.arbiter, a);
	CHECK(go_on(&s, &next) == 1 && next->id == second->id);
	arbiter_commit(s.arbiter, next);
	CHECK(go_on(&s, &next) == 0 && s.arbiter->paused && !arbiter_in_round(s.arbiter));
	CHECK(go_on(&s, &next) == 1 && next->id == first->id);
	arbiter_commit(s.arbiter, next);
	CHECK(go_on(&s, &next) == 0 && !s.arbiter->paused);
	check_promises(s.arbiter);
}

TEST(request_waits_for_no_lease_that_ranks_behind_it)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *large = grant_on(&s, LAB, "any", 52), *small = grant_on(&s, VR, "any", 8);
	struct lease *next;

	for (unsigned i = 0; i < 10; i++)
		wait_for(&s, ANY, "any", 11 + i);
	release(s.arbiter, small->id);
	CHECK(!wait_precedes(s.arbiter, CLASS_BESTEFFORT, OTHER)); /* there is no round yet */
	s.arbiter->round_steps = 0;
	CHECK(arbiter_plan_next(s.arbiter, &next) == 0 && s.arbiter->next_examined == 0);
	CHECK(wait_precedes(s.arbiter, CLASS_BESTEFFORT, OTHER));
	CHECK(!wait_precedes(s.arbiter, CLASS_GUARANTEED, OTHER));
	CHECK(go_on(&s, &next) == 0 && arbiter_in_round(s.arbiter));
	CHECK(!wait_precedes(s.arbiter, CLASS_BESTEFFORT, OTHER));
	CHECK(wait_precedes(s.arbiter, CLASS_BESTEFFORT, ANY)); /* its own leases rank before */
	release(s.arbiter, large->id);
	CHECK(wait_precedes(s.arbiter, CLASS_BESTEFFORT, OTHER)); /* the first lease fits now */
	CHECK(!wait_precedes(s.arbiter, CLASS_GUARANTEED, OTHER));
	s.arbiter->round_steps = UINT64_MAX;
	CHECK(grant_waiting(&s, NULL) > 0 && !wait_precedes(s.arbiter, CLASS_BESTEFFORT, ANY));
}

TEST(steps_are_counted_for_the_lease_that_is_examined)
{
	struct lease *small, *next;
	_cleanup_(scene_done) struct scene s = crowd_of(1, &small);
	uint64_t before[WAITING];

	for (unsigned i = 0; i < WAITING; i++)
		before[i] = s.arbiter->waiting[i]->wait.steps;
	release(s.arbiter, small->id);
	CHECK(go_on(&s, &next) == 0);
	for (unsigned i = 0; i < WAITING; i++)
		CHECK((s.arbiter->waiting[i]->wait.steps > before[i]) == (i == 0));
}

TEST(leases_that_come_and_go_during_a_pause_keep_the_order)
{
	struct lease *small, *next;
	_cleanup_(scene_done) struct scene s = crowd_of(1, &small);
	uint64_t ends = s.arbiter->waiting[1]->id, last;

	release(s.arbiter, small->id);
	for (unsigned i = 0; i < 5; i++)
		CHECK(go_on(&s, &next) == 0);
	release(s.arbiter, ends);
	CHECK(s.arbiter->next_examined == 4);
	last = wait_for(&s, LAB, "any", 55)->id; /* of a higher class */
	CHECK(s.arbiter->waiting[0]->id == last);
	for (unsigned i = 0; s.arbiter->paused; i++) {
		CHECK(i <= 2 * WAITING);
		CHECK(go_on(&s, &next) == 0);
	}
	CHECK(all_are_examined(&s) && s.arbiter->n_waiting == WAITING);
	check_promises(s.arbiter);
}
