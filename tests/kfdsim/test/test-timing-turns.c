/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The timing model where queues are preempted, take turns, come and go. */

#include <inttypes.h>
#include <unistd.h>

#include "seed.h"
#include "util/base.h"
#include "kfdsim/timing/timing-internal.h"
#include "kfdsim/test/timing-rig.h"

#define BLOCKS 1024U
#define QUANTUM (10 * MSEC)

/* When a kernel ends that is preempted so many times. */
static uint64_t preempted(const struct timing_gpu *gpu, unsigned times, uint64_t apart)
{
	_cleanup_(timing_freep) struct timing *timing = rig_new(gpu);
	uint64_t now = 0;

	rig_queue(timing, 1, 1, rig_all(), 0);
	rig_start(timing, 1, BLOCKS, 1024, 0);
	for (unsigned i = 1; i <= times; i++)
		timing_preempt(timing, i * apart);
	CHECK(rig_wait(timing, &now) == 1);
	return now;
}

TEST(preemption_costs_its_time_and_loses_no_work)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 15);
	uint64_t alone = preempted(&gpu, 0, 0);

	CHECK(preempted(&gpu, 1, MSEC) == alone + TIMING_SWITCH_NS);
	CHECK(preempted(&gpu, 3, MSEC) == alone + 3 * TIMING_SWITCH_NS);
	/* Again while it is stopped: longer by the rest alone. */
	CHECK(preempted(&gpu, 2, TIMING_SWITCH_NS / 2) == alone + TIMING_SWITCH_NS * 3 / 2);
	gpu.mes = true;
	CHECK(preempted(&gpu, 3, MSEC) == preempted(&gpu, 0, 0));
}

TEST(mes_preempts_only_the_changed_queue)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 15);
	uint64_t ends[2][2];

	gpu.mes = true;
	for (unsigned change = 0; change < 2; change++) {
		_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
		uint64_t now = 0;

		rig_queue(timing, 1, 1, rig_mask(15, 15, 0, 0), 0);
		rig_queue(timing, 2, 2, rig_mask(0, 0, 15, 15), 0);
		rig_start(timing, 1, 60, 1024, MSEC);
		rig_start(timing, 2, 60, 1024, MSEC);
		if (change)
			rig_queue(timing, 1, 1, rig_mask(15, 15, 0, 0), MSEC + MSEC / 10);
		ends[change][rig_wait(timing, &now) - 1] = now;
		ends[change][rig_wait(timing, &now) - 1] = now;
	}
	CHECK(ends[1][0] == ends[0][0] + TIMING_SWITCH_NS);
	CHECK(ends[1][1] == ends[0][1]);
}

/* Kernels of one process each, one queue each, all started at 0: when the last ends. */
static uint64_t all_ended(unsigned n, unsigned queue_slots, unsigned process_slots)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 15);
	_cleanup_(timing_freep) struct timing *timing = NULL;
	uint64_t now = 0;

	gpu.queue_slots = queue_slots;
	gpu.process_slots = process_slots;
	timing = rig_new(&gpu);
	for (unsigned i = 1; i <= n; i++)
		rig_queue(timing, i, i, rig_all(), 0);
	for (unsigned i = 1; i <= n; i++)
		rig_start(timing, i, 20 * BLOCKS, 1024, 0);
	for (unsigned i = 0; i < n; i++)
		rig_wait(timing, &now);
	CHECK(timing_next(timing) == TIMING_NEVER);
	return now;
}

TEST(queues_take_turns_only_when_slots_run_out)
{
	uint64_t all = all_ended(4, 0, 0), each = all_ended(1, 0, 0);

	CHECK(all_ended(4, 4, 4) == all);
	CHECK(all_ended(4, 4, 0) == all);
	/* One at a time: nobody is interfered with, and nothing is lost but switches and the
	 * turns of those that are done. */
	for (unsigned by_process = 0; by_process < 2; by_process++) {
		uint64_t turns = all_ended(4, by_process ? 0 : 1, by_process);

		CHECK(turns >= 4 * each);
		CHECK(turns <= 4 * each * 105 / 100 + 4 * QUANTUM);
	}
}

TEST(end_times_do_not_depend_on_polling)
{
	uint64_t ends[2][6];

	for (unsigned often = 0; often < 2; often++) {
		struct timing_gpu gpu = rig_gpu(1, 4, 15);
		_cleanup_(timing_freep) struct timing *timing = NULL;
		uint64_t key, end, now = 0;

		gpu.queue_slots = 5;
		timing = rig_new(&gpu);
		for (uint64_t k = 1; k <= 6; k++)
			rig_queue(timing, k, k, rig_all(), 0);
		for (uint64_t k = 1; k <= 6; k++)
			rig_start(timing, k, 400 * (uint32_t)k, k % 2 ? 1024 : 256, 0);
		for (unsigned n = 0; n < 6;) {
			now += often ? MSEC / 50 : 5 * QUANTUM;
			while (timing_ended(timing, now, &key, &end))
				ends[often][key - 1] = end + 0 * n++;
		}
	}
	CHECK(memcmp(ends[0], ends[1], sizeof(ends[0])) == 0);
}

static unsigned below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

/* Nobody waits beside a free place. */
static void check_waits(const struct timing *t, const struct timing_run *run)
{
	uint32_t cus = run->queue->enabled[run->pair];

	CHECK(!run->waiting || (run->queue->busy && run->queue->mapped && cus));
	for (unsigned cu = 0; run->waiting && cu < 32; cu++)
		CHECK(!(cus >> cu & 1) || t->room[run->pair][cu] < run->queue->threads);
}

/* What must hold between any two calls: no room is lost or given twice, and each block is
 * either to be handed out, on a CU, or saved. */
static void check_books(const struct timing *t)
{
	unsigned used[TIMING_PAIRS][32] = { 0 }, users = 0;

	for (size_t i = 0; i < t->heap.n; i++) {
		const struct timing_block *b = &t->heap.blocks[i];

		CHECK(b->queue->mapped && b->end >= t->now && b->end >= t->stopped);
		CHECK(i == 0 || t->heap.blocks[(i - 1) / 2].end <= b->end);
		used[b->pair][b->cu] += b->queue->threads;
	}
	for (unsigned p = 0; p < t->xccs * t->engines; p++)
		for (unsigned cu = 0; cu < 32; cu++)
			CHECK(t->room[p][cu] + used[p][cu] == t->cu_threads);
	for (const struct timing_queue *q = t->queues; q; q = q->next) {
		unsigned resident = 0;

		for (size_t i = 0; i < t->heap.n; i++)
			resident += t->heap.blocks[i].queue == q;
		CHECK(q->resident == resident && (q->busy || resident == 0));
		users += resident > 0;
		for (unsigned x = 0; x < t->xccs; x++)
			check_waits(t, &q->runs[x]);
	}
	CHECK(t->users == users);
}

#define KEYS 12U

struct play {
	struct timing *timing;
	unsigned seed;
	bool runs[KEYS + 1];
	unsigned started, ended, dropped;
};

static void random_call(struct play *play, uint64_t now)
{
	uint64_t key = 1 + below(&play->seed, KEYS);
	struct words words = rig_all();
	struct timing_kernel kernel = { .blocks = 1 + below(&play->seed, 3000),
					.threads = 1 + below(&play->seed, 1100) };

	switch (below(&play->seed, 8)) {
	case 0:
		for (unsigned p = 0; p < TIMING_PAIRS; p++)
			words.of[p / TIMING_ENGINES][p % TIMING_ENGINES] =
				(uint32_t)rand_r(&play->seed) | 1;
		/* fall through */
	case 1: rig_queue(play->timing, key, 1 + key / 3, words, now); break;
	case 2:
		play->dropped += play->runs[key];
		play->runs[key] = false;
		timing_queue_drop(play->timing, key, now);
		break;
	case 3: timing_preempt(play->timing, now); break;
	default:
		if (timing_dispatch(play->timing, key, &kernel, now) < 0)
			break;
		CHECK(!play->runs[key]);
		play->runs[key] = true;
		play->started++;
	}
}

static void random_end(struct play *play, uint64_t key)
{
	CHECK(key >= 1 && key <= KEYS && play->runs[key]);
	play->runs[key] = false;
	play->ended++;
}

/* Then all that runs ends. */
static void play_out(struct play *play, uint64_t now)
{
	for (uint64_t key = 1; key <= KEYS; key++)
		if (play->runs[key])
			rig_queue(play->timing, key, 1 + key / 3, rig_all(), now);
	while (play->started > play->ended + play->dropped)
		random_end(play, rig_wait(play->timing, &now));
	check_books(play->timing);
	CHECK(play->timing->heap.n == 0 && timing_next(play->timing) == TIMING_NEVER);
}

TEST(random_calls_lose_no_block_and_no_cu)
{
	unsigned seed = SEED_OF_RUN("SEED");

	for (unsigned round = 0; round < 20; round++) {
		struct timing_gpu gpu = rig_gpu(1 + round % 3, 1 + round % 4, 3);
		struct play play = { .seed = seed_nth(seed, round) };
		uint64_t key, end, now = 0;

		gpu.queue_slots = round % 2 ? 4 : 0;
		gpu.process_slots = round % 3 ? 2 : 0;
		gpu.mes = round % 5 == 0;
		play.timing = rig_new(&gpu);
		for (unsigned i = 0; i < 300; i++) {
			random_call(&play, now);
			check_books(play.timing);
			now += below(&play.seed, 2 * MSEC);
			while (below(&play.seed, 4) && timing_ended(play.timing, now, &key, &end)) {
				CHECK(end <= now);
				random_end(&play, key);
			}
		}
		play_out(&play, now);
		timing_free(play.timing);
	}
}
