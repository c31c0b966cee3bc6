/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdlib.h>

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
