/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/demand.h"

#include <errno.h>
#include <stdlib.h>

int demands_new(const struct rt_plan *plan, size_t partition, struct demands *ret)
{
	size_t n = plan->set->partitions[partition].n_tasks;

	*ret = (struct demands){ .plan = plan, .partition = partition, .n = n };
	ret->list = calloc(n, sizeof(*ret->list));
	ret->responses = calloc(n, sizeof(*ret->responses));
	return ret->list && ret->responses ? 0 : -ENOMEM;
}

void demands_done(struct demands *demands)
{
	free(demands->list);
	free(demands->responses);
}

/* A dispatcher submits a job when it knows of the end of the one before it: host time is part of the job. */
static uint64_t cost_of(const struct rt_plan *plan, size_t partition, uint64_t wcet)
{
	uint64_t host = plan->set->partitions[partition].host_submission;

	return wcet + bound_margin(&plan->partitions[partition].bound, wcet) +
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
		wcet = rt_wcet(task, cus, set->law, &source);
		if (wcet == RT_UNSET)
			return false;
		demands->list[n++] = (struct rt_demand){
			.cost = cost_of(demands->plan, demands->partition, wcet),
			.period = task->period,
			.deadline = task->deadline,
			.jitter = demands->plan->tasks[i].jitter,
		};
	}
	return true;
}

int demands_respond(struct demands *demands)
{
	const struct bound *bound = &demands->plan->partitions[demands->partition].bound;
	enum rt_policy policy = demands->plan->set->partitions[demands->partition].policy;
	int r = (policy == RT_NP_EDF ? dispatch_edf : dispatch_dm)(bound, demands->list, demands->n,
								   demands->responses);

	if (r < 0)
		return r;
	for (size_t i = 0; i < demands->n; i++)
		if (demands->responses[i] > demands->list[i].deadline)
			return 0;
	return 1;
}

int demands_growth(struct demands *demands, size_t i, uint64_t *ret)
{
	const struct bound *bound = &demands->plan->partitions[demands->partition].bound;
	struct rt_demand *task = &demands->list[i];
	uint64_t cost = task->cost, fits = 0, fails = task->deadline + 1;
	int r;

	while (fits + 1 < fails) {
		uint64_t more = (fits + fails) / 2;

		task->cost = cost + more + bound_margin(bound, more);
		r = demands_respond(demands);
		if (r < 0)
			return r;
		*(r > 0 ? &fits : &fails) = more;
	}
	task->cost = cost;
	*ret = fits;
	return 0;
}
