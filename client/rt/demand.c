/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdlib.h>

/* ---- offsets -------------------------------------------------------------------------------- */

/*
 * Responses of tasks that are released at offsets of one clock: task i at offset[i] + k x period, for
 * every k. Never longer than those of dispatch_edf() and the others, which hold for all offsets. The proofs are in
 * gpuarbctl-rt(1).
 */

/* Windows times jobs in each, of which more would take too long. */
#define PHASE_STEPS_MAX 200000U
#define PHASE_FIFO_TASKS 64U

struct job {
	size_t task;
	int64_t release; /* from the start of the window */
};

/* The tasks of a partition, and the jobs of the window that begins at `start`. */
struct phase {
	const struct bound *bound;
	const struct rt_demand *tasks;
	const uint64_t *offsets;
	size_t n;
	uint64_t busy; /* no window is longer */
	int64_t start;
	struct job *jobs;
	size_t n_jobs;
	uint64_t *responses;
};

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b > 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The first of the times offset + k x period that is not before `from`. */
static int64_t next_time(uint64_t offset, uint64_t period, int64_t from)
{
	int64_t rest = (from - (int64_t)offset) % (int64_t)period;

	return rest > 0 ? from + (int64_t)period - rest : from - rest;
}

/* ---- the order of submission ---------------------------------------------------------------- */

/* Whether a job of task j can be in the queue when one of task i enters it: the distance of their releases
 * is more than -(response + jitter) of j, and at most the jitter and the host time of i. */
static bool can_meet(const struct phase *p, size_t i, size_t j)
{
	const struct rt_demand *a = &p->tasks[i], *b = &p->tasks[j];
	uint64_t divisor = greatest_divisor(a->period, b->period), distance;
	int64_t least = 1 - (int64_t)(p->responses[j] + b->jitter);

	if (p->offsets[i] == RT_UNSET || p->offsets[j] == RT_UNSET)
		return true;
	distance = (p->offsets[j] % divisor + divisor - p->offsets[i] % divisor) % divisor;
	return next_time(distance, divisor, least) <= (int64_t)(a->jitter + p->bound->host);
}

/* From each job alone upwards, until no response grows. Without the jitter. */
static int respond_fifo(struct phase *p)
{
	bool grows = true;

	if (p->n > PHASE_FIFO_TASKS)
		return 0;
	for (size_t i = 0; i < p->n; i++)
		p->responses[i] = 0;
	while (grows) {
		grows = false;
		for (size_t i = 0; i < p->n; i++) {
			uint64_t work = p->tasks[i].cost, response;

			for (size_t j = 0; j < p->n; j++)
				if (j != i && can_meet(p, i, j))
					work += p->tasks[j].cost;
			response = bound_response(p->bound, work);
			if (response == BOUND_NONE)
				return 0;
			grows |= response > p->responses[i];
			p->responses[i] = max_u64(p->responses[i], response);
		}
	}
	for (size_t i = 0; i < p->n; i++)
		p->responses[i] += p->tasks[i].jitter;
	return 1;
}

/* ---- windows of a dispatcher ---------------------------------------------------------------- */

/* The jobs that can be ready within the window and not before it. */
static void collect(struct phase *p)
{
	p->n_jobs = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct rt_demand *task = &p->tasks[i];
		int64_t time = next_time(p->offsets[i], task->period,
					 p->start - (int64_t)task->jitter);

		for (time -= p->start; time < (int64_t)p->busy; time += (int64_t)task->period)
			p->jobs[p->n_jobs++] = (struct job){ i, time };
	}
}

/* The longest job that was released before the window, and whose deadline is after this time, from
 * the start of the window; of tasks with deadlines longer than `longer`. */
static uint64_t blocking(const struct phase *p, uint64_t longer, int64_t time)
{
	uint64_t longest = 0;

	for (size_t k = 0; k < p->n; k++) {
		const struct rt_demand *task = &p->tasks[k];
		int64_t after = p->start + time - (int64_t)task->deadline;

		if (task->deadline > longer && task->cost > longest &&
		    next_time(p->offsets[k], task->period, after + 1) < p->start)
			longest = task->cost;
	}
	return longest;
}

static void note(struct phase *p, const struct job *job, uint64_t work)
{
	uint64_t end = min_u64(bound_finish(p->bound, work, DISPATCH_BUSY_MAX), p->busy);
	int64_t response = (int64_t)end - job->release;

	if (response > (int64_t)p->responses[job->task])
		p->responses[job->task] = (uint64_t)response;
}

static int64_t deadline_of(const struct phase *p, const struct job *job)
{
	return job->release + (int64_t)p->tasks[job->task].deadline;
}

/* All jobs with the same deadline or an earlier one go before. */
static void window_edf(struct phase *p)
{
	for (size_t i = 0; i < p->n_jobs; i++) {
		int64_t deadline = deadline_of(p, &p->jobs[i]);
		uint64_t work = blocking(p, 0, deadline);

		for (size_t j = 0; j < p->n_jobs; j++)
			if (deadline_of(p, &p->jobs[j]) <= deadline)
				work += p->tasks[p->jobs[j].task].cost;
		note(p, &p->jobs[i], work);
	}
}

/* Whether job j goes before job i, which starts at this time at the earliest. */
static bool precedes(const struct phase *p, const struct job *j, const struct job *i,
		     uint64_t start)
{
	if (j->task == i->task)
		return j->release < i->release;
	return p->tasks[j->task].deadline <= p->tasks[i->task].deadline &&
	       j->release <= (int64_t)start;
}

static void window_dm(struct phase *p)
{
	for (size_t i = 0; i < p->n_jobs; i++) {
		const struct job *job = &p->jobs[i];
		uint64_t start = 0, next = 0, work;

		do {
			start = next;
			work = blocking(p, p->tasks[job->task].deadline, 0);
			for (size_t j = 0; j < p->n_jobs; j++)
				if (precedes(p, &p->jobs[j], job, start))
					work += p->tasks[p->jobs[j].task].cost;
			next = min_u64(bound_finish(p->bound, work, DISPATCH_BUSY_MAX), p->busy);
		} while (next > start);
		note(p, job, work + p->tasks[job->task].cost);
	}
}

/* How many windows begin within the time after which all releases repeat; 0: too many. */
static uint64_t count_windows(const struct phase *p, uint64_t *ret_cycle)
{
	uint64_t cycle = 1, windows = 0;

	for (size_t i = 0; i < p->n; i++) {
		uint64_t period = p->tasks[i].period;

		cycle = bound_add(0, cycle, period / greatest_divisor(cycle, period));
		if (cycle > BOUND_TIME_MAX)
			return 0;
	}
	for (size_t i = 0; i < p->n; i++)
		windows += cycle / p->tasks[i].period;
	*ret_cycle = cycle;
	return windows;
}

/* A window begins when a job is ready as late as it can be: see the proof. */
static int respond_dispatched(struct phase *p, enum rt_policy policy)
{
	uint64_t cycle = 0, windows = count_windows(p, &cycle), room = 0;

	p->busy = dispatch_busy(p->bound, p->tasks, p->n);
	if (windows == 0 || p->busy == BOUND_NONE)
		return 0;
	for (size_t i = 0; i < p->n; i++)
		room += (p->busy + p->tasks[i].jitter) / p->tasks[i].period + 1;
	if (bound_add(0, windows, bound_add(0, room, room + p->n)) > PHASE_STEPS_MAX)
		return 0;
	p->jobs = calloc(room, sizeof(*p->jobs));
	if (!p->jobs)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		p->responses[i] = 0;
	for (size_t i = 0; i < p->n; i++)
		for (uint64_t time = p->offsets[i]; time < p->offsets[i] + cycle;
		     time += p->tasks[i].period) {
			p->start = (int64_t)(time + p->tasks[i].jitter);
			collect(p);
			(policy == RT_NP_EDF ? window_edf : window_dm)(p);
		}
	free(p->jobs);
	return 1;
}

/* offsets[i] RT_UNSET: task i is released at any time, which only fifo permits. The responses hold if
 * each keeps its deadline. 1; 0: there is no such analysis, or it would take too long; -ENOMEM. */
static int phase_respond(const struct bound *bound, enum rt_policy policy,
			 const struct rt_demand *tasks, const uint64_t *offsets, size_t n,
			 uint64_t *ret)
{
	struct phase phase = { bound, tasks, offsets, n, 0, 0, NULL, 0, ret };

	if (policy == RT_FIFO)
		return respond_fifo(&phase);
	for (size_t i = 0; i < n; i++)
		if (offsets[i] == RT_UNSET)
			return 0;
	return respond_dispatched(&phase, policy);
}

/* ---- demands --------------------------------------------------------------------------------- */

int demands_new(const struct rt_plan *plan, size_t partition, struct demands *ret)
{
	size_t n = plan->set->partitions[partition].n_tasks;

	*ret = (struct demands){ .plan = plan, .partition = partition, .n = n };
	ret->list = calloc(n, sizeof(*ret->list));
	ret->responses = calloc(n, sizeof(*ret->responses));
	ret->offsets = calloc(n, sizeof(*ret->offsets));
	return ret->list && ret->responses && ret->offsets ? 0 : -ENOMEM;
}

void demands_done(struct demands *demands)
{
	free(demands->list);
	free(demands->responses);
	free(demands->offsets);
}

uint64_t demand_cost(const struct rt_plan *plan, size_t i, uint64_t wcet)
{
	size_t partition = plan->set->tasks[i].partition;
	const struct rt_partition *p = &plan->set->partitions[partition];
	uint64_t copies = min_u64(plan->tasks[i].copies, BOUND_TIME_MAX);
	uint64_t host = rt_partition_dispatches(p) ? p->host_submission : 0;

	return copies + wcet + bound_margin(&plan->partitions[partition].bound, wcet) +
	       (host != RT_UNSET ? host : 0);
}

bool demands_fill(struct demands *demands, unsigned cus)
{
	const struct rt_set *set = demands->plan->set;
	size_t n = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];
		enum rt_source source;
		uint64_t wcet;

		if (task->partition != demands->partition)
			continue;
		wcet = rt_set_wcet(set, task, cus, &source);
		if (wcet == RT_UNSET)
			return false;
		demands->offsets[n] = demands->plan->tasks[i].offset;
		demands->list[n++] = (struct rt_demand){
			.cost = demand_cost(demands->plan, i, wcet),
			.period = task->period,
			.deadline = task->deadline,
			.jitter = demands->plan->tasks[i].jitter,
		};
	}
	return true;
}

static bool keeps_deadlines(const struct demands *demands, const uint64_t *responses)
{
	for (size_t i = 0; i < demands->n; i++)
		if (responses[i] > demands->list[i].deadline)
			return false;
	return true;
}

/* Takes the responses with offsets, which hold if they keep all deadlines. */
static int respond_phased(struct demands *demands, const struct bound *bound, enum rt_policy policy)
{
	_cleanup_(freep) uint64_t *phased = calloc(demands->n, sizeof(*phased));
	int r;

	if (!phased)
		return -ENOMEM;
	r = phase_respond(bound, policy, demands->list, demands->offsets, demands->n, phased);
	if (r <= 0 || !keeps_deadlines(demands, phased))
		return r;
	for (size_t i = 0; i < demands->n; i++)
		demands->responses[i] = min_u64(demands->responses[i], phased[i]);
	demands->phased = true;
	return 0;
}

int demands_respond(struct demands *demands)
{
	const struct rt_partition_plan *plan = &demands->plan->partitions[demands->partition];
	enum rt_policy policy = demands->plan->set->partitions[demands->partition].policy;
	struct bound bound = plan->bound;
	int r = 0;

	bound.margin_percent = 0; /* costs have it */
	demands->phased = false;
	if (policy == RT_FIFO)
		dispatch_fifo(&bound, demands->list, demands->n, demands->responses);
	else
		r = (policy == RT_NP_EDF ? dispatch_edf : dispatch_dm)(
			&bound, demands->list, demands->n, demands->responses);
	if (r >= 0 && plan->offsets != RT_NO_OFFSETS)
		r = respond_phased(demands, &bound, policy);
	return r < 0 ? r : keeps_deadlines(demands, demands->responses);
}

static void grow(struct demands *demands, size_t i, uint64_t cost, uint64_t more)
{
	const struct bound *bound = &demands->plan->partitions[demands->partition].bound;

	demands->list[i].cost = cost + more + bound_margin(bound, more);
}

/* The partition fails with the demands as they are: the reason. */
static enum rt_growth_limit find_limit(const struct demands *demands)
{
	const struct rt_plan *plan = demands->plan;

	if (plan->set->partitions[demands->partition].policy != RT_FIFO &&
	    dispatch_is_overloaded(&plan->partitions[demands->partition].bound, demands->list,
				   demands->n))
		return RT_GROWTH_UTILISATION;
	for (size_t i = 0; i < demands->n; i++)
		if (demands->responses[i] == BOUND_NONE)
			return RT_GROWTH_NO_BOUND;
	return RT_GROWTH_DEADLINE;
}

int demands_growth(struct demands *demands, size_t i, uint64_t *ret,
		   enum rt_growth_limit *ret_limit)
{
	struct rt_demand *task = &demands->list[i];
	uint64_t cost = task->cost, fits = 0, fails = task->deadline + 1;
	int r;

	while (fits + 1 < fails) {
		uint64_t more = (fits + fails) / 2;

		grow(demands, i, cost, more);
		r = demands_respond(demands);
		if (r < 0)
			return r;
		*(r > 0 ? &fits : &fails) = more;
	}
	grow(demands, i, cost, fails);
	r = demands_respond(demands);
	*ret_limit = find_limit(demands);
	task->cost = cost;
	*ret = fits;
	return r < 0 ? r : 0;
}
