/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The longest response of a partition's tasks. Pure; times are microseconds.
 *
 *	R = work + margin + standstill within R + host, plus the latency of an activation
 *
 * is the longest time from ready to done of each job, where work is the sum of one longest
 * execution of each task. No deadline is missed if R + jitter <= deadline <= period for every task.
 * Within R each borrower changes its queues at most ceil(R / interval) + 1 times. The model and the
 * proof are in gpuarbctl-rt(1); they rely on is_settled() in core/change/share/growth.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOUND_NONE UINT64_MAX /* no bound: the iteration does not converge within a day */
#define BOUND_TIME_MAX (UINT64_C(24) * 3600 * 1000000)
#define BOUND_COST_MAX (UINT64_MAX / 16) /* no cost or number of events exceeds it */
#define BOUND_RATES_MAX 4U

/* At most so many events in any time of this length, which is not 0. */
struct bound_rate {
	uint64_t count, usec;
};

/* All rates hold at once: an arrival curve. */
struct bound_rates {
	struct bound_rate list[BOUND_RATES_MAX];
	size_t n;
};

/* What stops the GPU for `cost` each time. n = 0: there are none. */
struct bound_events {
	uint64_t cost;
	uint64_t late;   /* so many from before a window count in it */
	uint64_t before; /* those that begin so long before a window can reach into it */
	struct bound_rates rates;
};

enum bound_source { BOUND_ACTIVATIONS, BOUND_QUEUE_CHANGES, BOUND_TIMEOUTS, BOUND_SOURCES };

struct bound {
	unsigned margin_percent;
	uint64_t host;     /* h */
	uint64_t latency;  /* of the activation, before the first job can run */
	uint64_t change;   /* cost of one change of masks; 0: there are none */
	uint64_t interval; /* between two changes; not 0 */
	uint64_t once;     /* standstill for what is counted by response, in any of them */
	struct bound_events events[BOUND_SOURCES];
};

static inline uint64_t bound_divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b > 0);
}

/* sum + count x cost, or BOUND_COST_MAX. */
uint64_t bound_add(uint64_t sum, uint64_t count, uint64_t cost);

/* The most events in a time of this length; UINT64_MAX: there are no rates. */
uint64_t bound_rates_within(const struct bound_rates *rates, uint64_t window);

/* The least time in which so much work is done, with the latency and all standstill in it; BOUND_NONE: it is
 * longer than `most`. */
uint64_t bound_finish(const struct bound *bound, uint64_t work, uint64_t most);

/* R for the sum of execution times `work`, latency included. */
uint64_t bound_response(const struct bound *bound, uint64_t work);

/* Parts of a response that bound_response() has returned. */
uint64_t bound_margin(const struct bound *bound, uint64_t work);      /* g(work) - work */
uint64_t bound_changes(const struct bound *bound, uint64_t response); /* how many */
uint64_t bound_standstill(const struct bound *bound, uint64_t response);

/* The share of the time that all standstill but `once` can take. From 1 on there is no bound. */
double bound_load(const struct bound *bound);

/* The longest time for which the GPU stands still without a pause; BOUND_NONE. */
uint64_t bound_longest_stop(const struct bound *bound);

/* The most work whose response is not longer than this, exactly; -1: even no work at all takes
 * longer. */
int64_t bound_work_within(const struct bound *bound, uint64_t response);

/* ---- policies -------------------------------------------------------------------------------- */

/*
 * The longest responses of the tasks of a partition whose dispatcher chooses the next job: the one
 * with the earliest deadline (np-edf), or that of the task with the shortest one (np-dm). A job that
 * runs is never preempted. Pure; times are microseconds. The proofs are in gpuarbctl-rt(1).
 */

struct rt_demand {
	uint64_t cost; /* of one job: execution with margin, and host time */
	uint64_t period, deadline, jitter;
};

/* From the release of a job until its program knows that it is done, for each task. BOUND_NONE: jobs
 * and standstill take more than DISPATCH_LOAD_MAX of the time, or the busy period is longer than an
 * hour or has more than DISPATCH_POINTS_MAX deadlines. -ENOMEM. */
#define DISPATCH_LOAD_MAX 0.9999
#define DISPATCH_BUSY_MAX (UINT64_C(3600) * 1000000)
#define DISPATCH_POINTS_MAX 100000U
int dispatch_edf(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret);
int dispatch_dm(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret);

/* From release to notice in the order of submission, if none exceeds a deadline, and no deadline a
 * period. */
void dispatch_fifo(const struct bound *bound, const struct rt_demand *tasks, size_t n,
		   uint64_t *ret);

/* Whether jobs and standstill take more than DISPATCH_LOAD_MAX of the time: then no busy period of use ends. */
bool dispatch_is_overloaded(const struct bound *bound, const struct rt_demand *tasks, size_t n);

/* The longest time in which the server is never without a job; BOUND_NONE. */
uint64_t dispatch_busy(const struct bound *bound, const struct rt_demand *tasks, size_t n);
