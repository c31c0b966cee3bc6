/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The policies of rt plan: which share of random sets each one serves, beside the best fixed order of
 * the tasks, and beside any schedule; and how long the analysis takes, in CPU time. Periods are 10 to 100
 * ms, evenly in their logarithm; deadlines are periods; utilisations are drawn uniformly (UUniFast).
 * Nothing disturbs. The floor of the times is the sum of the execution times.
 *
 * Any schedule: all orders of jobs are searched, with idle time before a job, for the releases on which
 * np-edf would fail: all tasks at once, one of them just before. No policy knows what is released later,
 * so none serves more.
 *
 *	bench-policies [SEED]
 */

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "client/rt/bound.h"
#include "util/base.h"

#define SETS 500U
#define BEST_TASKS 8U
#define TASKS 4096U

enum policy { FIFO, NP_EDF, NP_DM, BEST, ANY, POLICIES };

#define SEARCH_MAX 200000U /* schedules; more count as served */
#define JOBS_MAX 200U

static const struct bound quiet = { .interval = 1000000 };

static void draw(struct rt_demand *tasks, size_t n, double utilisation)
{
	for (size_t i = 0; i < n; i++) {
		double rest = i + 1 < n ? utilisation * pow(drand48(), 1.0 / (double)(n - i - 1))
					: 0;
		double period = 10000 * pow(10, drand48());

		tasks[i].period = tasks[i].deadline = (uint64_t)period;
		tasks[i].cost = (uint64_t)fmax(1, (utilisation - rest) * period);
		tasks[i].jitter = 0;
		utilisation = rest;
	}
}

static bool keeps(const struct rt_demand *tasks, size_t n, const uint64_t *bounds)
{
	for (size_t i = 0; i < n; i++)
		if (bounds[i] > tasks[i].deadline)
			return false;
	return true;
}

static uint64_t sum_of(const struct rt_demand *tasks, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += tasks[i].cost;
	return sum;
}

static bool fifo_keeps(const struct rt_demand *tasks, size_t n)
{
	uint64_t response = bound_response(&quiet, sum_of(tasks, n));

	for (size_t i = 0; i < n; i++)
		if (response > tasks[i].deadline)
			return false;
	return true;
}

/* Gives the last place to any task that keeps its deadline there, and so on: if none does, no order
 * serves the set (Audsley). Deadlines of the copy are places. */
static bool any_order_keeps(const struct rt_demand *tasks, size_t n)
{
	struct rt_demand ranked[BEST_TASKS];
	uint64_t bounds[BEST_TASKS];
	bool placed[BEST_TASKS] = { 0 };

	memcpy(ranked, tasks, n * sizeof(*tasks));
	for (size_t place = n; place > 0; place--) {
		size_t i;

		for (i = 0; i < n; i++) {
			if (placed[i])
				continue;
			for (size_t j = 0; j < n; j++)
				if (!placed[j])
					ranked[j].deadline = j == i ? place : 0;
			CHECK(dispatch_dm(&quiet, ranked, n, bounds) == 0);
			if (bounds[i] <= tasks[i].deadline)
				break;
		}
		if (i == n)
			return false;
		placed[i] = true;
	}
	return true;
}

/* ---- any schedule --------------------------------------------------------------------------- */

struct job {
	uint64_t release, deadline, cost;
};

struct search {
	struct job jobs[JOBS_MAX];
	size_t n;
	unsigned schedules;
};

static int by_deadline(const void *left, const void *right)
{
	const struct job *a = left, *b = right;

	return a->deadline < b->deadline ? -1 : a->deadline > b->deadline;
}

static uint64_t end_after(const struct job *job, uint64_t time)
{
	return max_u64(job->release, time) + job->cost;
}

/* Whether the jobs from the i-th on can all be in time after this time. The jobs are by deadline; a job
 * that is released after another one could have ended is not the next. */
static bool can_end(struct search *s, size_t i, uint64_t time)
{
	uint64_t soonest = UINT64_MAX;

	if (i == s->n || ++s->schedules > SEARCH_MAX)
		return true;
	for (size_t k = i; k < s->n; k++) {
		uint64_t end = end_after(&s->jobs[k], time);

		if (end > s->jobs[k].deadline)
			return false;
		soonest = end < soonest ? end : soonest;
	}
	for (size_t k = i; k < s->n; k++) {
		struct job next = s->jobs[k];
		bool found;

		if (next.release >= soonest)
			continue;
		memmove(&s->jobs[i + 1], &s->jobs[i], (k - i) * sizeof(next));
		s->jobs[i] = next;
		found = can_end(s, i + 1, end_after(&next, time));
		memmove(&s->jobs[i], &s->jobs[i + 1], (k - i) * sizeof(next));
		s->jobs[k] = next;
		if (found)
			return true;
	}
	return false;
}

/* Jobs until the end of the longest busy period; task `first` is released 1 before the others. */
static bool any_schedule_keeps(const struct rt_demand *tasks, size_t n)
{
	uint64_t busy = dispatch_busy(&quiet, tasks, n);

	for (size_t first = 0; first < n; first++) {
		struct search s = { 0 };

		for (size_t i = 0; i < n; i++)
			for (uint64_t time = i != first; time <= busy && s.n < JOBS_MAX;
			     time += tasks[i].period)
				s.jobs[s.n++] = (struct job){ time, time + tasks[i].deadline,
							      tasks[i].cost };
		qsort(s.jobs, s.n, sizeof(s.jobs[0]), by_deadline);
		if (!can_end(&s, 0, 0))
			return false;
	}
	return true;
}

static void try_policies(const struct rt_demand *tasks, size_t n, unsigned served[POLICIES])
{
	uint64_t bounds[TASKS];

	if (fifo_keeps(tasks, n))
		served[FIFO]++;
	CHECK(dispatch_edf(&quiet, tasks, n, bounds) == 0);
	if (keeps(tasks, n, bounds))
		served[NP_EDF]++;
	CHECK(dispatch_dm(&quiet, tasks, n, bounds) == 0);
	if (keeps(tasks, n, bounds))
		served[NP_DM]++;
	served[BEST] += any_order_keeps(tasks, n);
	served[ANY] += any_schedule_keeps(tasks, n);
}

static void measure_acceptance(size_t n, double utilisation)
{
	unsigned served[POLICIES] = { 0 };
	struct rt_demand tasks[TASKS];

	for (unsigned i = 0; i < SETS; i++) {
		draw(tasks, n, utilisation);
		try_policies(tasks, n, served);
	}
	printf("%5zu %11.1f", n, utilisation);
	for (unsigned p = 0; p < POLICIES; p++)
		printf(" %7.1f%%", 100.0 * served[p] / SETS);
	printf("\n{\"tasks\":%zu,\"utilisation\":%.1f,\"fifo\":%.3f,\"np_edf\":%.3f,\"np_dm\":%.3f,"
	       "\"best_order\":%.3f,\"any_schedule\":%.3f}\n",
	       n, utilisation, (double)served[FIFO] / SETS, (double)served[NP_EDF] / SETS,
	       (double)served[NP_DM] / SETS, (double)served[BEST] / SETS,
	       (double)served[ANY] / SETS);
}

static void measure_time(size_t n)
{
	static struct rt_demand tasks[TASKS];
	static uint64_t bounds[TASKS];
	volatile uint64_t floor;
	uint64_t time[5];

	draw(tasks, n, 0.5);
	time[0] = bench_thread_nsec();
	floor = sum_of(tasks, n);
	time[1] = bench_thread_nsec();
	dispatch_fifo(&quiet, tasks, n, bounds);
	time[2] = bench_thread_nsec();
	CHECK(dispatch_edf(&quiet, tasks, n, bounds) == 0);
	time[3] = bench_thread_nsec();
	CHECK(dispatch_dm(&quiet, tasks, n, bounds) == 0);
	time[4] = bench_thread_nsec();
	(void)floor;
	for (unsigned i = 4; i > 0; i--)
		time[i] -= time[i - 1];
	printf("%5zu %10.1f %10.1f %10.1f %12.1f\n{\"tasks\":%zu,\"floor_ns\":%llu,"
	       "\"fifo_ns\":%llu,\"np_edf_ns\":%llu,\"np_dm_ns\":%llu}\n",
	       n, (double)time[1] / 1000, (double)time[2] / 1000, (double)time[3] / 1000,
	       (double)time[4] / 1000, n, (unsigned long long)time[1], (unsigned long long)time[2],
	       (unsigned long long)time[3], (unsigned long long)time[4]);
}

int main(int argc, char *argv[])
{
	static const size_t sizes[] = { 3, 5, 8 }, many[] = { 50, 200, 1000, 4096 };
	long seed = argc > 1 ? atol(argv[1]) : 21;

	srand48(seed);
	printf("seed %ld, %u sets each\nTASKS UTILISATION         FIFO   NP-EDF    NP-DM BEST ORD ANY SCHED\n",
	       seed, SETS);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (double utilisation = 0.3; utilisation < 0.8; utilisation += 0.2)
			measure_acceptance(sizes[i], utilisation);
	printf("\nTASKS   FLOOR us    FIFO us  NP-EDF us     NP-DM us\n");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		measure_time(many[i]);
	return 0;
}
