/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bounds of partitions with a policy, against simulations of the worst releases, with jitter. */

#include "client/rt/bound.h"

#include <stdlib.h>

#include "check.h"
#include "random-geometry.h"
#include "seed.h"
#include "util/base.h"

#define TASKS 4U
#define STEP 100U /* of the simulation, in a unit of the tasks: a job can begin one step before 0 */

struct worst {
	const struct rt_demand *tasks;
	size_t n;
	bool edf;
	uint64_t longest[TASKS]; /* in steps */
};

/* Releases of each task: its first job is ready at 0, as late as its jitter allows, and all others as soon as
 * they may be. A job of task `first`, if it is a task, begins one step before 0. */
static void release(const struct worst *w, size_t first, int64_t *ret)
{
	for (size_t i = 0; i < w->n; i++)
		ret[i] = i == first ? -1 : -(int64_t)(w->tasks[i].jitter * STEP);
}

/* The ready job that goes first; n: none. */
static size_t choose(const struct worst *w, const int64_t *releases, int64_t time)
{
	int64_t least = INT64_MAX;
	size_t best = w->n;

	for (size_t i = 0; i < w->n; i++) {
		int64_t key = (int64_t)w->tasks[i].deadline * STEP + (w->edf ? releases[i] : 0);

		if (releases[i] <= time && key < least) {
			least = key;
			best = i;
		}
	}
	return best;
}

/* Runs the jobs up to the end of the busy period. */
static void simulate(struct worst *w, size_t first)
{
	int64_t releases[TASKS], time = first < w->n ? -1 : 0;
	size_t next;

	release(w, first, releases);
	next = first < w->n ? first : choose(w, releases, time);
	while (next < w->n) {
		const struct rt_demand *task = &w->tasks[next];

		time += (int64_t)task->cost * STEP;
		w->longest[next] = max_u64(w->longest[next], (uint64_t)(time - releases[next]));
		releases[next] += (int64_t)task->period * STEP;
		next = choose(w, releases, time);
	}
}

static double load_of(const struct rt_demand *tasks, size_t n)
{
	double load = 0;

	for (size_t i = 0; i < n; i++)
		load += (double)tasks[i].cost / (double)tasks[i].period;
	return load;
}

/* Draws up to TASKS tasks whose load has a bound. */
static size_t draw(struct rt_demand *tasks)
{
	size_t n = 1 + below(TASKS);

	do {
		for (size_t i = 0; i < n; i++) {
			tasks[i].period = 4 + below(30);
			tasks[i].deadline = 3 + below((unsigned)tasks[i].period - 2);
			tasks[i].cost = 1 + below((unsigned)tasks[i].period / 3);
			tasks[i].jitter = below(2) ? below((unsigned)tasks[i].deadline) : 0;
		}
	} while (load_of(tasks, n) > DISPATCH_LOAD_MAX);
	return n;
}

/* Whether the bounds keep all deadlines. The simulation never takes longer than a bound. */
static bool passes(bool edf, const struct rt_demand *tasks, size_t n, bool *ret_missed)
{
	struct worst w = { .tasks = tasks, .n = n, .edf = edf };
	const struct bound quiet = { .interval = 1000000 };
	uint64_t bounds[TASKS];
	bool all = true;

	CHECK((edf ? dispatch_edf : dispatch_dm)(&quiet, tasks, n, bounds) == 0);
	for (size_t first = 0; first <= n; first++)
		simulate(&w, first);
	*ret_missed = false;
	for (size_t i = 0; i < n; i++) {
		CHECK(w.longest[i] <= bounds[i] * STEP);
		all &= bounds[i] <= tasks[i].deadline;
		*ret_missed |= w.longest[i] > tasks[i].deadline * STEP;
	}
	return all;
}

TEST(np_edf_passes_if_and_only_if_no_release_pattern_misses)
{
	unsigned seed = SEED_OF_RUN("SEED"), accepted = 0, refused = 0;

	seed_rand(seed);
	for (unsigned i = 0; i < 20000; i++) {
		struct rt_demand tasks[TASKS];
		size_t n = draw(tasks);
		bool missed, passed = passes(true, tasks, n, &missed);

		CHECK(passed == !missed);
		*(passed ? &accepted : &refused) += 1;
	}
	printf("%u accepted, %u refused\n", accepted, refused);
	CHECK(accepted > 1000 && refused > 1000);
}

TEST(np_dm_bounds_are_never_exceeded)
{
	unsigned seed = SEED_OF_RUN("SEED"), accepted = 0, cautious = 0;

	seed_rand(seed);
	for (unsigned i = 0; i < 20000; i++) {
		struct rt_demand tasks[TASKS];
		size_t n = draw(tasks);
		bool missed, passed = passes(false, tasks, n, &missed);

		CHECK(!passed || !missed);
		accepted += passed;
		cautious += !passed && !missed;
	}
	printf("%u accepted, %u refused without a miss\n", accepted, cautious);
	CHECK(accepted > 1000 && cautious < accepted / 10);
}

/* A job that is ready at 0 was released a jitter before: it is not also the job that began before 0. */
TEST(a_job_with_jitter_does_not_block_itself)
{
	const struct rt_demand task = { 2600, 10000, 5000, 1 };
	const struct bound quiet = { .interval = 1000000 };
	uint64_t bound;

	CHECK(dispatch_edf(&quiet, &task, 1, &bound) == 0 && bound == 2601);
	CHECK(dispatch_dm(&quiet, &task, 1, &bound) == 0 && bound == 2601);
}

TEST(too_much_work_has_no_bound)
{
	const struct rt_demand tasks[] = { { 6, 10, 10, 0 }, { 5, 10, 10, 0 } };
	const struct bound quiet = { .interval = 1000000 };
	struct bound stopped = { .interval = 10, .change = 5 };
	uint64_t bounds[2];

	CHECK(dispatch_edf(&quiet, tasks, 2, bounds) == 0);
	CHECK(bounds[0] == BOUND_NONE && bounds[1] == BOUND_NONE);
	CHECK(dispatch_dm(&quiet, tasks, 2, bounds) == 0 && bounds[1] == BOUND_NONE);
	CHECK(dispatch_edf(&stopped, tasks, 1, bounds) == 0 && bounds[0] == BOUND_NONE);
}

/* Deadlines count within the busy period, not up to the longest one. */
TEST(periods_of_an_hour_and_of_a_millisecond_have_bounds)
{
	const uint64_t hour = UINT64_C(3600000000);
	const struct rt_demand tasks[] = { { 100, 1000, 1000, 0 }, { 300, hour, hour, 0 } };
	const struct bound quiet = { .interval = 1000000 };
	uint64_t bounds[2];

	CHECK(dispatch_edf(&quiet, tasks, 2, bounds) == 0);
	CHECK(bounds[0] == 400 && bounds[1] == 400);
	CHECK(dispatch_dm(&quiet, tasks, 2, bounds) == 0);
	CHECK(bounds[0] == 400 && bounds[1] == 400);
}

/* 3 in 100 us, 7 us each. Those before the window reach 21 us into it. */
TEST(rates_count_events_that_begin_before_the_window)
{
	struct bound bound = { .interval = 1000000 };

	bound.events[BOUND_QUEUE_CHANGES] = (struct bound_events){ .cost = 7,
								   .rates = { { { 3, 100 } }, 1 } };
	CHECK(bound_longest_stop(&bound) == 21);
	CHECK(bound_response(&bound, 79) == 100 && bound_response(&bound, 80) == 122);
	bound.events[BOUND_QUEUE_CHANGES].before = 21;
	CHECK(bound_response(&bound, 58) == 79 && bound_response(&bound, 59) == 101);
	bound.events[BOUND_QUEUE_CHANGES].rates.list[1] = (struct bound_rate){ 4, 1000 };
	bound.events[BOUND_QUEUE_CHANGES].rates.n = 2;
	CHECK(bound_response(&bound, 59) == 87);
	bound.events[BOUND_QUEUE_CHANGES].rates.n = 1;
	bound.events[BOUND_QUEUE_CHANGES].cost = 34;
	CHECK(bound_response(&bound, 1) == BOUND_NONE);
}
