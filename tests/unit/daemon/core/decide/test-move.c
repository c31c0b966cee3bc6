/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves: adaptable leases get other CUs so that a request fits. */

#include "core/decide/move.h"

#include "check.h"
#include "ledger-play.h"
#include "scene.h"

#define LATER 100000000U /* usec: after any rate limit */

static struct lease *adaptable(struct scene *s, uid_t uid, unsigned min, unsigned max)
{
	struct request request = request_for(min);

	request.class = CLASS_BESTEFFORT;
	request.adaptable = true;
	request.wants[0].cus_min = min;
	request.wants[0].cus_max = max;
	return reserve(s->arbiter, uid, &request, &s->result);
}

static struct request engines_request(unsigned engines)
{
	struct request request = request_for(0);

	request.wants[0].shader_engines = engines;
	return request;
}

static void commit_all(struct arbiter *arbiter, struct move_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		arbiter_commit(arbiter, TAKE_PTR(set->next[i]));
	move_set_done(set);
}

static void acknowledge(struct scene *s, uint64_t now)
{
	for (size_t i = 0; i < s->arbiter->n_leases; i++)
		arbiter_acknowledge(s->arbiter, s->arbiter->leases[i]->id,
				    s->arbiter->leases[i]->generation);
	arbiter_lend(s->arbiter, now);
}

/* One adaptable lease of 4 CUs stands in each engine; the rest is free. */
static void scatter(struct scene *s, struct lease *leases[4])
{
	struct lease *fill[4];

	for (size_t i = 0; i < 4; i++) {
		leases[i] = adaptable(s, ANY, 4, 4);
		fill[i] = grant(s, LAB, 11);
		CHECK(leases[i] && fill[i]);
	}
	for (size_t i = 0; i < 4; i++)
		release(s->arbiter, fill[i]->id);
}

TEST(lease_moves_to_make_a_whole_engine)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(1);
	struct move_set set;
	struct lease *leases[4], *lease;
	uint64_t moves = 0;

	scatter(&s, leases);
	CHECK(!reserve(s.arbiter, VR, &request, &s.result));
	CHECK(s.result.kind == RESULT_NO_CAPACITY);
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 1 && set.n == 1);
	commit_all(s.arbiter, &set);
	lease = reserve(s.arbiter, VR, &request, &s.result);
	CHECK(lease && lease->state == STATE_ACTIVATING);
	arbiter_lend(s.arbiter, LATER);
	acknowledge(&s, LATER);
	CHECK(lease->state == STATE_GRANTED);
	for (size_t i = 0; i < 4; i++) {
		CHECK(leases[i]->partitions[0].count == 4 && leases[i]->state == STATE_GRANTED);
		moves += leases[i]->lend.moves;
	}
	CHECK(moves == 1);
	scene_done(&s);
}

TEST(several_leases_move_for_one_request)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(2);
	struct move_set set;
	struct lease *leases[4];

	scatter(&s, leases);
	CHECK(!reserve(s.arbiter, VR, &request, &s.result));
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 1);
	CHECK(set.n >= 2);
	commit_all(s.arbiter, &set);
	CHECK(reserve(s.arbiter, VR, &request, &s.result));
	scene_done(&s);
}

/* The engine with the fewest CUs in the way has a lease of 7, for which there is no room elsewhere. */
TEST(a_lease_without_room_stays_and_others_move)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(1);
	struct lease *large, *small[3], *fill[2];
	struct move_set set;

	large = adaptable(&s, ANY, 7, 7);
	fill[0] = grant(&s, LAB, 8);
	for (size_t i = 0; i < 3; i++)
		small[i] = adaptable(&s, ANY, 4, 4);
	fill[1] = grant(&s, LAB, 3);
	CHECK(grant(&s, LAB, 11) && grant(&s, LAB, 11) && large && small[2]);
	for (size_t i = 0; i < 2; i++)
		release(s.arbiter, fill[i]->id);
	CHECK(!reserve(s.arbiter, VR, &request, &s.result));
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 1 && set.n == 3);
	commit_all(s.arbiter, &set);
	CHECK(reserve(s.arbiter, VR, &request, &s.result));
	CHECK(large->lend.moves == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(small[i]->lend.moves == 1);
	scene_done(&s);
}

TEST(nothing_moves_for_a_request_that_does_not_fit_afterwards)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(3); /* 16 CUs do not fit one engine */
	struct move_set set;
	struct lease *leases[4];

	scatter(&s, leases);
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 0 && set.n == 0);
	request = engines_request(1);
	request.wants[0].queues = 24; /* the leases have some */
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 0 && set.n == 0);
	scene_done(&s);
}

TEST(fixed_and_unsettled_leases_do_not_move)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(1);
	struct move_set set;
	struct lease *leases[4];

	scatter(&s, leases);
	for (size_t i = 0; i < 4; i++)
		leases[i]->generation++; /* not acknowledged */
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 0);
	for (size_t i = 0; i < 4; i++)
		leases[i]->generation--;
	leases[0]->verify.pending = leases[1]->verify.pending = true;
	leases[2]->state = leases[3]->state = STATE_REVOKING;
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 0);
	leases[2]->state = leases[3]->state = STATE_GRANTED;
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER, &set) == 1);
	move_set_done(&set);
	scene_done(&s);
}

TEST(lease_moves_once_in_the_interval_and_never_back)
{
	struct scene s = scene_of(1);
	struct caller vr = caller_of(VR);
	struct request request = engines_request(1);
	struct move_set set;
	struct lease *leases[4];

	scatter(&s, leases);
	for (size_t i = 0; i < 4; i++) {
		leases[i]->lend.moves = 1;
		leases[i]->lend.moved_usec = LATER;
	}
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER + 999999, &set) == 0);
	CHECK(arbiter_plan_moves(s.arbiter, &vr, &request, LATER + 1000000, &set) == 1);
	for (size_t i = 0; i < 4; i++)
		if (leases[i]->id == set.next[0]->id)
			leases[i]->partitions[0].moved_from = set.next[0]->partitions[0].base;
	move_set_done(&set);
	if (arbiter_plan_moves(s.arbiter, &vr, &request, LATER + 1000000, &set) == 1)
		CHECK(!cuset_equal(
			&set.next[0]->partitions[0].base,
			&ledger_find(s.arbiter, set.next[0]->id)->partitions[0].moved_from));
	move_set_done(&set);
	scene_done(&s);
}

TEST(waiting_lease_is_granted_after_a_move)
{
	struct scene s = scene_of(1);
	struct request request = engines_request(1);
	struct lease *leases[4], *fill = NULL, *waiting, *next;
	struct move_set set;

	scatter(&s, leases);
	fill = grant(&s, LAB, 44);
	request.wait_usec = 1000000;
	waiting = reserve(s.arbiter, VR, &request, &s.result);
	CHECK(fill && waiting && waiting->state == STATE_WAITING);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 0);
	CHECK(arbiter_plan_moves_waiting(s.arbiter, LATER, &set) == 0);
	release(s.arbiter, fill->id);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 0);
	CHECK(arbiter_plan_moves_waiting(s.arbiter, LATER, &set) == 1);
	commit_all(s.arbiter, &set);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 1 && next->id == waiting->id);
	arbiter_commit(s.arbiter, next);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 0);
	CHECK(arbiter_plan_moves_waiting(s.arbiter, LATER, &set) == 0);
	scene_done(&s);
}

/* Whatever moves: the promises hold, the request fits then, and no lease has fewer CUs. */
TEST(request_fits_after_moves_in_any_ledger)
{
	unsigned moved = 0;

	for (unsigned seed = 1; seed <= 60; seed++) {
		struct play play = play_new(seed);

		for (unsigned i = 0; i < 150; i++) {
			struct caller caller = caller_of(2);
			struct request request = engines_request(1 + play_below(&play, 2));
			struct result result = { 0 };
			struct move_set set;
			struct lease *lease;

			play_step(&play);
			if (arbiter_plan(play.arbiter, &caller, &request, &lease, &result) >= 0) {
				lease_free(lease);
			} else if (result.kind == RESULT_NO_CAPACITY &&
				   arbiter_plan_moves(play.arbiter, &caller, &request, play.now,
						      &set) > 0) {
				for (size_t j = 0; j < set.n; j++) {
					unsigned has = ledger_find(play.arbiter, set.next[j]->id)
							       ->partitions[0]
							       .count;

					CHECK(set.next[j]->partitions[0].count <= has);
					arbiter_commit(play.arbiter, TAKE_PTR(set.next[j]));
					play_promises(&play);
				}
				moved += (unsigned)set.n;
				result_done(&result);
				CHECK(arbiter_plan(play.arbiter, &caller, &request, &lease,
						   &result) >= 0);
				arbiter_add_holder(play.arbiter,
						   arbiter_commit(play.arbiter, lease)->id);
				play_promises(&play);
			}
			result_done(&result);
		}
		play_end(&play);
	}
	printf("%u moves\n", moved);
	CHECK(moved > 20);
}
