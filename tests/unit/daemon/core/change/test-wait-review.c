/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much of a waiting lease is examined after something became free, and that this is enough. */

#include <stdlib.h>

#include "check.h"
#include "core/decide/admit.h"
#include "seed.h"
#include "wait-rig.h"

/* ---- what is judged ---------------------------------------------------------------- */

/* The steps of the round that follows; nothing is granted in it. */
static uint64_t steps_of_round(struct scene *s)
{
	const uint64_t most = 1000000;

	s->arbiter->round_steps = most;
	CHECK(grant_waiting(s, NULL) == 0);
	return most - s->arbiter->round_steps;
}

/* GPUs of which each has two leases, of 30 CUs each: ret[2 * GPU] and the next. */
static struct scene full_gpus(size_t n, struct lease *ret[])
{
	struct scene s = scene_of(n);

	for (size_t i = 0; i < 2 * n; i++) {
		char gpu[] = { (char)('0' + i / 2), '\0' };

		ret[i] = grant_on(&s, LAB, gpu, 30);
		CHECK(ret[i]);
	}
	return s;
}

static struct lease *wait_for_all(struct scene *s, size_t n_gpus, unsigned cus)
{
	struct request request = request_for(cus);
	struct lease *lease;

	request.n_wants = n_gpus;
	for (size_t i = 1; i < n_gpus; i++)
		request.wants[i] = request.wants[0];
	lease = ask(s, ANY, request);
	CHECK(lease && lease->state == STATE_WAITING);
	return lease;
}

/* Whether the lease waits for this GPU, and its reason names it. */
static bool refused_by(const struct lease *lease, const char *gpu)
{
	return strcmp(lease_refusal(lease)->gpu, gpu) == 0 && strstr(lease->reason, gpu);
}

TEST(gpu_that_becomes_free_costs_one_step_while_a_gang_lacks_others)
{
	struct lease *held[8], *gang;
	_cleanup_(scene_done) struct scene s = full_gpus(4, held);

	gang = wait_for_all(&s, 4, 60);
	ledger_wake(s.arbiter, 15);
	CHECK(steps_of_round(&s) > 1); /* it was never examined */
	for (unsigned i = 2; i < 8; i++) {
		release(s.arbiter, held[i]->id);
		CHECK(steps_of_round(&s) == 1);
		CHECK(refused_by(gang, "0000:03:00.0"));
	}
	release(s.arbiter, held[0]->id);
	CHECK(steps_of_round(&s) > 1 && refused_by(gang, "0000:03:00.0"));
	release(s.arbiter, held[1]->id);
	CHECK(grant_waiting(&s, NULL) == 1 && gang->state == STATE_GRANTED);
	check_promises(&s);
}

TEST(only_the_gpu_where_something_became_free_is_judged)
{
	struct lease *held[8];
	_cleanup_(scene_done) struct scene s = full_gpus(4, held);

	wait_for(&s, ANY, "any", 60);
	ledger_wake(s.arbiter, 15);
	steps_of_round(&s);
	release(s.arbiter, held[2]->id);
	CHECK(steps_of_round(&s) == gang_review_steps(s.arbiter, 1));
	release(s.arbiter, held[6]->id);
	CHECK(steps_of_round(&s) == gang_review_steps(s.arbiter, 1));
	release(s.arbiter, held[7]->id);
	CHECK(grant_waiting(&s, NULL) == 1);
	check_promises(&s);
}

/* Otherwise two GPUs that are used in turns would let every gang be examined in full. */
TEST(lease_that_its_own_user_keeps_out_is_reviewed_until_that_user_ends_a_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *own = grant_on(&s, ANY, "0", 30), *held[3], *gang;

	held[0] = grant_on(&s, LAB, "0", 30);
	held[1] = grant_on(&s, LAB, "1", 30);
	held[2] = grant_on(&s, LAB, "1", 30);
	gang = wait_for_all(&s, 2, 60);
	gang->wait.passed = LEASE_PASSES_MAX;
	ledger_wake(s.arbiter, 3);
	CHECK(steps_of_round(&s) > 1 && !gang->wait.may_bar);
	for (unsigned i = 1; i < 3; i++) {
		release(s.arbiter, held[i]->id);
		CHECK(steps_of_round(&s) == 1);
	}
	release(s.arbiter, own->id);
	CHECK(steps_of_round(&s) > 1 && gang->wait.may_bar);
	release(s.arbiter, held[0]->id);
	CHECK(grant_waiting(&s, NULL) == 1 && gang->state == STATE_GRANTED);
	check_promises(&s);
}

TEST(lease_that_may_oversubscribe_waits_for_the_end_of_a_realtime_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *realtime = grant_on(&s, VR, "0", 15), *lease;
	struct request request = request_for(15);

	CHECK(realtime && realtime->class == CLASS_REALTIME);
	s.arbiter->settings->oversubscribe_besteffort = true;
	request.wants[0].queues = s.arbiter->gpus[0].info.queue_slots + 1;
	lease = ask(&s, ANY, request);
	CHECK(lease && lease->class == CLASS_BESTEFFORT && lease->state == STATE_WAITING);
	release(s.arbiter, realtime->id);
	CHECK(grant_waiting(&s, NULL) == 1 && lease->state == STATE_GRANTED);
	check_promises(&s);
}

TEST(gpu_that_was_charged_since_is_judged_before_all_are)
{
	_cleanup_(scene_done) struct scene s = scene_of(3);
	struct lease *first, *second, *gang;

	first = grant_on(&s, LAB, "0", 30);
	second = grant_on(&s, LAB, "1", 30);
	gang = wait_for_all(&s, 3, 60);
	ledger_wake(s.arbiter, 7);
	steps_of_round(&s);
	for (unsigned i = 0; i < 5; i++) {
		release(s.arbiter, first->id);
		CHECK(steps_of_round(&s) <= gang_review_steps(s.arbiter, 3));
		CHECK(refused_by(gang, "0000:04:00.0"));
		first = grant_on(&s, LAB, "0", 30);
		release(s.arbiter, second->id);
		CHECK(steps_of_round(&s) <= gang_review_steps(s.arbiter, 3));
		CHECK(refused_by(gang, "0000:03:00.0"));
		second = grant_on(&s, LAB, "1", 30);
	}
	check_promises(&s);
}

TEST(reason_names_a_gpu_that_still_refuses)
{
	struct lease *held[6], *gang;
	_cleanup_(scene_done) struct scene s = full_gpus(3, held);

	gang = wait_for_all(&s, 3, 60);
	ledger_wake(s.arbiter, 7);
	steps_of_round(&s);
	CHECK(refused_by(gang, "0000:03:00.0") && lease_refusal(gang)->others);
	release(s.arbiter, held[0]->id);
	steps_of_round(&s);
	CHECK(lease_refusal(gang)->n_leases == 1 && lease_refusal(gang)->leases[0] == held[1]->id);
	CHECK(lease_refusal(gang)->free == 30);
	release(s.arbiter, held[1]->id);
	steps_of_round(&s);
	CHECK(refused_by(gang, "0000:04:00.0") && lease_refusal(gang)->others);
	CHECK(lease_refusal(gang)->n_leases == 2);
	check_promises(&s);
}

/* ---- against the full examination -------------------------------------------------- */

#define GPUS 6U

struct game {
	struct scene s;
	unsigned seed, parts_seed;
	bool full; /* each lease is examined in full */
	unsigned granted;
};

static unsigned below(struct game *game, unsigned n)
{
	return (unsigned)rand_r(&game->seed) % n;
}

static void play_reserve(struct game *game)
{
	struct request request = request_for(1);
	bool gang = below(game, 2);

	request.n_wants = gang ? 2 + below(game, GPUS - 1) : 1;
	request.wait_usec = 1;
	for (unsigned i = 0; i < request.n_wants; i++) {
		struct want *want = &request.wants[i];

		want_init(want);
		if (below(game, 4) == 0)
			snprintf(want->gpu, sizeof(want->gpu), "%u", i);
		want->cus = below(game, 3) ? 5 + below(game, 12) : 20 * (1 + below(game, 3));
		want->queues = 1 + below(game, 6);
		want->exact = below(game, 4) == 0;
		want->isolation = below(game, 4) == 0 ? ISOLATION_SHARED : ISOLATION_DEFAULT;
	}
	reserve(game->s.arbiter, VR + below(game, 4), &request, &game->s.result);
	result_done(&game->s.result);
}

static void play_resize(struct game *game, const struct lease *lease)
{
	struct caller caller = caller_of(lease->owner);
	struct request request = request_for(0);
	struct lease *next;

	request.n_wants = lease->n_partitions;
	for (unsigned i = 0; i < request.n_wants; i++) {
		want_init(&request.wants[i]);
		request.wants[i].cus = 1 + below(game, 40);
	}
	if (arbiter_plan_resize(game->s.arbiter, &caller, lease->id, &request, &next,
				&game->s.result) >= 0)
		arbiter_commit(game->s.arbiter, next);
	result_done(&game->s.result);
}

static void play_step(struct game *game)
{
	struct arbiter *arbiter = game->s.arbiter;
	struct observed row = { .pid = 9, .start_time = 1, .kfd_gpu_id = 1 + below(game, GPUS) };
	struct lease *lease = arbiter->n_leases > 0
				      ? arbiter->leases[below(game, (unsigned)arbiter->n_leases)]
				      : NULL;
	char gpu[] = { (char)('0' + below(game, GPUS)), '\0' };
	unsigned what = below(game, 100);

	row.queues = below(game, 20);
	if (!lease || (what < 45 && arbiter->n_leases < 40))
		play_reserve(game);
	else if (what < 80)
		release(arbiter, lease->id);
	else if (what < 86 && lease->state == STATE_GRANTED)
		play_resize(game, lease);
	else if (what < 92)
		arbiter_acknowledge(arbiter, lease->id, lease->generation);
	else if (what < 96)
		arbiter_drain(arbiter, gpu, below(game, 2));
	else
		CHECK(arbiter_observe(arbiter, &row, row.queues > 0) == 0);
}

static void play_round(struct game *game)
{
	struct arbiter *arbiter = game->s.arbiter;
	struct lease *next;
	int r;

	do {
		for (size_t i = 0; game->full && i < arbiter->n_waiting; i++)
			arbiter->waiting[i]->wait.bottleneck = (struct bottleneck){ 0 };
		arbiter->round_steps = rand_r(&game->parts_seed) % 2 || game->full ? UINT64_MAX : 1;
		r = arbiter_plan_next(arbiter, &next);
		if (r == 1)
			arbiter_commit(arbiter, next);
		game->granted += r == 1;
	} while (r == 1 || arbiter->paused);
	forget_touched(&game->s);
	check_promises(&game->s);
}

static void check_equal(const struct lease *a, const struct lease *b)
{
	CHECK(a->id == b->id && a->state == b->state && a->n_partitions == b->n_partitions);
	CHECK(a->wait.candidates == b->wait.candidates && a->wait.passed == b->wait.passed);
	CHECK(a->wait.over_quota == b->wait.over_quota && a->wait.may_bar == b->wait.may_bar);
	CHECK(a->state != STATE_WAITING || (a->reason[0] && lease_refusal(a)->gpu[0]));
	for (size_t i = 0; i < a->n_partitions; i++)
		CHECK(a->partitions[i].gpu == b->partitions[i].gpu &&
		      cuset_equal(&a->partitions[i].cus, &b->partitions[i].cus));
}

static struct game game_of(unsigned seed, bool full)
{
	struct game game = { .s = scene_of(GPUS), .seed = seed, .parts_seed = seed, .full = full };
	struct tenant *tenants = game.s.arbiter->settings->tenants;

	for (unsigned i = 0; i < GPUS; i++)
		game.s.arbiter->gpus[i].info.kfd_gpu_id = i + 1;
	if (below(&game, 2))
		tenants[below(&game, 3)].max_cus = (struct limit){ LIMIT_PERCENT, 50 };
	if (below(&game, 3) == 0)
		tenants[below(&game, 3)].max_gpus = (struct limit){ LIMIT_COUNT, 4 };
	return game;
}

static void step(struct game *game)
{
	play_step(game);
	play_round(game);
}

TEST(reviewed_leases_are_granted_as_after_full_examinations)
{
	const unsigned games = check_rounds(20, 2000);
	const unsigned first = SEED_OF_RUN("SEED");
	unsigned granted = 0;

	for (unsigned run = 0; run < games; run++) {
		const unsigned seed = seed_nth(first, run);
		struct game game = game_of(seed, false), full = game_of(seed, true);

		for (unsigned i = 0; i < 150; i++) {
			step(&game);
			step(&full);
			CHECK(game.s.arbiter->n_leases == full.s.arbiter->n_leases);
			for (size_t j = 0; j < game.s.arbiter->n_leases; j++)
				check_equal(game.s.arbiter->leases[j], full.s.arbiter->leases[j]);
		}
		granted += game.granted;
		scene_done(&game.s);
		scene_done(&full.s);
	}
	CHECK(granted > games);
}
