/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The policies of rt plan: which share of random sets each one serves, beside the best fixed order of
 * the tasks (all orders are tried), and how long the analysis takes. Periods are 10 to 100 ms,
 * evenly in their logarithm; deadlines are periods; utilisations are drawn uniformly (UUniFast). Nothing
 * disturbs. The floor of the times is the sum of the execution times.
 *
 *	bench-policies [SEED]
 */

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "bench/bench.h"
#include "check-cond.h"
#include "client/rt/dispatch.h"
#include "util/base.h"

#define SETS 500U
#define BEST_TASKS 5U
#define TASKS 4096U

enum policy { FIFO, NP_EDF, NP_DM, BEST, POLICIES };

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

/* Tries every order of the tasks from the i-th on. Deadlines of the copy are ranks. */
static bool any_order_keeps(const struct rt_demand *tasks, size_t n, size_t *rank, size_t i)
{
	struct rt_demand ranked[BEST_TASKS];
	uint64_t bounds[BEST_TASKS];

	for (size_t j = i; j < n; j++) {
		size_t swap = rank[i];

		rank[i] = rank[j];
		rank[j] = swap;
		if (i + 1 < n && any_order_keeps(tasks, n, rank, i + 1))
			return true;
		swap = rank[i];
		rank[i] = rank[j];
		rank[j] = swap;
	}
	if (i + 1 < n)
		return false;
	memcpy(ranked, tasks, n * sizeof(*tasks));
	for (size_t j = 0; j < n; j++)
		ranked[j].deadline = rank[j] + 1;
	CHECK(dispatch_dm(&quiet, ranked, n, bounds) == 0);
	return keeps(tasks, n, bounds);
}

static void try_policies(const struct rt_demand *tasks, size_t n, unsigned served[POLICIES])
{
	size_t rank[BEST_TASKS];
	uint64_t bounds[TASKS];

	if (fifo_keeps(tasks, n))
		served[FIFO]++;
	CHECK(dispatch_edf(&quiet, tasks, n, bounds) == 0);
	if (keeps(tasks, n, bounds))
		served[NP_EDF]++;
	CHECK(dispatch_dm(&quiet, tasks, n, bounds) == 0);
	if (keeps(tasks, n, bounds))
		served[NP_DM]++;
	for (size_t i = 0; i < n && n <= BEST_TASKS; i++)
		rank[i] = i;
	if (n <= BEST_TASKS && any_order_keeps(tasks, n, rank, 0))
		served[BEST]++;
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
		if (p == BEST && n > BEST_TASKS)
			printf(" %8s", "-");
		else
			printf(" %7.1f%%", 100.0 * served[p] / SETS);
	printf("\n{\"tasks\":%zu,\"utilisation\":%.1f,\"fifo\":%.3f,\"np_edf\":%.3f,\"np_dm\":%.3f}\n",
	       n, utilisation, (double)served[FIFO] / SETS, (double)served[NP_EDF] / SETS,
	       (double)served[NP_DM] / SETS);
}

static void measure_time(size_t n)
{
	static struct rt_demand tasks[TASKS];
	static uint64_t bounds[TASKS];
	volatile uint64_t floor;
	uint64_t time[4];

	draw(tasks, n, 0.5);
	time[0] = bench_nsec();
	floor = sum_of(tasks, n);
	time[1] = bench_nsec();
	CHECK(dispatch_edf(&quiet, tasks, n, bounds) == 0);
	time[2] = bench_nsec();
	CHECK(dispatch_dm(&quiet, tasks, n, bounds) == 0);
	time[3] = bench_nsec();
	(void)floor;
	for (unsigned i = 3; i > 0; i--)
		time[i] -= time[i - 1];
	printf("%5zu %10.1f %10.1f %12.1f\n{\"tasks\":%zu,\"floor_ns\":%llu,\"np_edf_ns\":%llu,"
	       "\"np_dm_ns\":%llu}\n",
	       n, (double)time[1] / 1000, (double)time[2] / 1000, (double)time[3] / 1000, n,
	       (unsigned long long)time[1], (unsigned long long)time[2],
	       (unsigned long long)time[3]);
}

int main(int argc, char *argv[])
{
	static const size_t sizes[] = { 3, 5, 8 }, many[] = { 50, 200, 1000, 4096 };
	long seed = argc > 1 ? atol(argv[1]) : 21;

	srand48(seed);
	printf("seed %ld, %u sets each\nTASKS UTILISATION     FIFO   NP-EDF    NP-DM BEST ORDER\n",
	       seed, SETS);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (double utilisation = 0.3; utilisation < 0.8; utilisation += 0.2)
			measure_acceptance(sizes[i], utilisation);
	printf("\nTASKS   FLOOR us  NP-EDF us     NP-DM us\n");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		measure_time(many[i]);
	return 0;
}
