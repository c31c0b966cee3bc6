/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

/* The most jobs of one task that become ready in a time of this length. */
static uint64_t jobs_within(const struct rt_demand *task, uint64_t time)
{
	return bound_divide_up(time + task->jitter, task->period);
}

bool dispatch_is_overloaded(const struct bound *bound, const struct rt_demand *tasks, size_t n)
{
	double load = bound_load(bound);

	for (size_t i = 0; i < n; i++)
		load += (double)tasks[i].cost / (double)tasks[i].period;
	return load > DISPATCH_LOAD_MAX;
}

/* The longest time in which the server is never without a job of the first n tasks, which begins with
 * work of so much. */
static uint64_t busy_period(const struct bound *bound, const struct rt_demand *tasks, size_t n,
			    uint64_t first)
{
	uint64_t time = bound->latency + 1, next;

	if (dispatch_is_overloaded(bound, tasks, n))
		return BOUND_NONE;
	while (time <= DISPATCH_BUSY_MAX) {
		next = bound->latency + first + bound_standstill(bound, time);
		for (size_t i = 0; i < n; i++)
			next += jobs_within(&tasks[i], time) * tasks[i].cost;
		if (next <= time)
			return time;
		time = next;
	}
	return BOUND_NONE;
}

static uint64_t longest_job(const struct rt_demand *tasks, size_t n)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < n; i++)
		longest = max_u64(longest, tasks[i].cost);
	return longest;
}

uint64_t dispatch_busy(const struct bound *bound, const struct rt_demand *tasks, size_t n)
{
	return busy_period(bound, tasks, n, longest_job(tasks, n));
}

/* ---- the order of submission -------------------------------------------------------------- */

void dispatch_fifo(const struct bound *bound, const struct rt_demand *tasks, size_t n,
		   uint64_t *ret)
{
	uint64_t work = 0, response;

	for (size_t i = 0; i < n; i++)
		work += tasks[i].cost;
	response = bound_response(bound, work);
	for (size_t i = 0; i < n; i++)
		ret[i] = response != BOUND_NONE ? response + tasks[i].jitter : BOUND_NONE;
}

/* ---- earliest deadline first -------------------------------------------------------------- */

/* A deadline in the window that begins when the server has no job with this deadline or an earlier
 * one. */
struct point {
	int64_t time;
	uint64_t cost;    /* of the job that has it */
	int64_t lateness; /* of the latest job with this deadline or a later one */
};

struct edf {
	const struct bound *bound;
	const struct rt_demand *tasks; /* by first_deadline() */
	size_t n;
	uint64_t *blocking; /* the longest job of this task or those after it */
	uint64_t busy;
	struct point *points; /* sorted */
	size_t n_points;
};

/* A job that is ready at the beginning of the window was released up to the jitter before. */
static int64_t first_deadline(const struct rt_demand *task)
{
	return (int64_t)task->deadline - (int64_t)task->jitter;
}

static int by_time(const void *left, const void *right)
{
	const struct point *a = left, *b = right;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* Deadlines of jobs that are ready within the busy period. 0: there are too many. */
static int collect(struct edf *edf)
{
	uint64_t n = 0;

	for (size_t i = 0; i < edf->n && n <= DISPATCH_POINTS_MAX; i++)
		n += jobs_within(&edf->tasks[i], edf->busy);
	if (n > DISPATCH_POINTS_MAX)
		return 0;
	edf->points = calloc(n, sizeof(*edf->points));
	if (!edf->points)
		return -ENOMEM;
	for (size_t i = 0; i < edf->n; i++) {
		const struct rt_demand *task = &edf->tasks[i];
		uint64_t jobs = jobs_within(task, edf->busy);
		int64_t time = first_deadline(task);

		for (uint64_t k = 0; k < jobs; k++, time += (int64_t)task->period)
			edf->points[edf->n_points++] = (struct point){ time, task->cost, 0 };
	}
	qsort(edf->points, edf->n_points, sizeof(*edf->points), by_time);
	return 1;
}

/* The lateness of a job with each deadline: the work with deadlines up to it, and one longer job that
 * began before the window and has a later one. Such a job is of a task without a job in the window: the two
 * releases would be less than a jitter apart. */
static void find_lateness(struct edf *edf)
{
	uint64_t work = 0;
	size_t later = 0; /* the first task without a deadline so far */

	for (size_t k = 0; k < edf->n_points; k++) {
		struct point *point = &edf->points[k];
		uint64_t end;

		work += point->cost;
		if (k + 1 < edf->n_points && edf->points[k + 1].time == point->time)
			continue;
		while (later < edf->n && first_deadline(&edf->tasks[later]) <= point->time)
			later++;
		end = bound_finish(edf->bound, work + edf->blocking[later], DISPATCH_BUSY_MAX);
		if (end > edf->busy)
			end = edf->busy;
		point->lateness = (int64_t)end - point->time;
	}
	for (size_t k = edf->n_points; k-- > 1;) {
		struct point *before = &edf->points[k - 1], *point = &edf->points[k];

		if (before->time == point->time || before->lateness < point->lateness)
			before->lateness = point->lateness;
	}
}

static uint64_t latest(const struct edf *edf, const struct rt_demand *task)
{
	size_t least = 0, most = edf->n_points;

	while (least < most) {
		size_t middle = (least + most) / 2;

		if (edf->points[middle].time < first_deadline(task))
			least = middle + 1;
		else
			most = middle;
	}
	return (uint64_t)((int64_t)task->deadline + edf->points[least].lateness);
}

static int by_first_deadline(const void *left, const void *right)
{
	int64_t a = first_deadline(left), b = first_deadline(right);

	return a < b ? -1 : a > b;
}

static int explore(struct edf *edf, uint64_t *blocking)
{
	int r;

	edf->blocking = blocking;
	for (size_t i = edf->n; i-- > 0;)
		blocking[i] = max_u64(blocking[i + 1], edf->tasks[i].cost);
	edf->busy = dispatch_busy(edf->bound, edf->tasks, edf->n);
	if (edf->busy == BOUND_NONE)
		return 0;
	r = collect(edf);
	if (r > 0)
		find_lateness(edf);
	return r;
}

int dispatch_edf(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret)
{
	_cleanup_(freep) struct rt_demand *sorted = calloc(n, sizeof(*sorted));
	_cleanup_(freep) uint64_t *blocking = calloc(n + 1, sizeof(*blocking));
	struct edf edf = { .bound = bound, .tasks = sorted, .n = n };
	int r;

	if (!sorted || !blocking)
		return -ENOMEM;
	memcpy(sorted, tasks, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_first_deadline);
	r = explore(&edf, blocking);
	for (size_t i = 0; r >= 0 && i < n; i++)
		ret[i] = r > 0 ? latest(&edf, &tasks[i]) : BOUND_NONE;
	free(edf.points);
	return r < 0 ? r : 0;
}

/* ---- deadline monotonic ------------------------------------------------------------------- */

static int by_deadline(const void *left, const void *right)
{
	const struct rt_demand *a = left, *b = right;

	return a->deadline < b->deadline ? -1 : a->deadline > b->deadline;
}

/* Task i of a list sorted by deadline; tasks with the same deadline may go before it. */
struct dm {
	const struct bound *bound;
	const struct rt_demand *tasks;
	size_t i, before; /* tasks up to `before` have its deadline or a shorter one */
	uint64_t blocking;
};

/* The work of other tasks that goes before a job of the task which starts at this time. */
static uint64_t work_before(const struct dm *dm, uint64_t time)
{
	uint64_t work = 0;

	for (size_t j = 0; j < dm->before && work <= DISPATCH_BUSY_MAX; j++) {
		const struct rt_demand *task = &dm->tasks[j];

		if (j != dm->i)
			work += ((time + task->jitter) / task->period + 1) * task->cost;
	}
	return work;
}

/* The end of the job after `earlier` of the same task, all in one busy period. */
static uint64_t end_of(const struct dm *dm, uint64_t earlier)
{
	uint64_t cost = dm->tasks[dm->i].cost, own = dm->blocking + earlier * cost;
	uint64_t start = 0, next, work = 0;

	for (;;) {
		work = own + work_before(dm, start);
		next = work <= DISPATCH_BUSY_MAX ? bound_finish(dm->bound, work, DISPATCH_BUSY_MAX)
						 : BOUND_NONE;
		if (next == BOUND_NONE)
			return BOUND_NONE;
		if (next <= start)
			return bound_finish(dm->bound, work + cost, DISPATCH_BUSY_MAX);
		start = next;
	}
}

static uint64_t respond(const struct dm *dm)
{
	const struct rt_demand *task = &dm->tasks[dm->i];
	uint64_t busy = busy_period(dm->bound, dm->tasks, dm->before, dm->blocking + 1);
	uint64_t jobs, longest = 0;

	if (busy == BOUND_NONE)
		return BOUND_NONE;
	jobs = jobs_within(task, busy);
	if (jobs > DISPATCH_POINTS_MAX)
		return BOUND_NONE;
	for (uint64_t q = 0; q < jobs; q++) {
		uint64_t end = end_of(dm, q);

		if (end == BOUND_NONE)
			return BOUND_NONE;
		if (end > q * task->period)
			longest = max_u64(longest, end - q * task->period);
	}
	return longest + task->jitter;
}

int dispatch_dm(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret)
{
	_cleanup_(freep) struct rt_demand *sorted = calloc(n, sizeof(*sorted));
	struct dm dm = { .bound = bound, .tasks = sorted };

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, tasks, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_deadline);
	for (size_t i = 0; i < n; i++) {
		for (dm.i = 0; memcmp(&sorted[dm.i], &tasks[i], sizeof(*tasks)) != 0;)
			dm.i++;
		for (dm.before = dm.i;
		     dm.before < n && sorted[dm.before].deadline == tasks[i].deadline;)
			dm.before++;
		dm.blocking = longest_job(sorted + dm.before, n - dm.before);
		ret[i] = respond(&dm);
	}
	return 0;
}
