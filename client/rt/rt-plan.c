/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/rt-plan.h"

#include <errno.h>
#include <stdlib.h>

int rt_plan_make(const struct rt_set *set, const struct gpu_info *gpu, struct rt_plan **ret,
		 char *problem, size_t size)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (plan)
		plan->tasks = calloc(set->n_tasks, sizeof(*plan->tasks));
	if (!plan || !plan->tasks)
		return -ENOMEM;
	plan->set = set;
	plan->gpu = gpu;
	r = rt_judge(plan, problem, size);
	if (r < 0)
		return r;
	rt_plan_reason(plan);
	r = rt_plan_assume(plan);
	if (r < 0)
		return r;
	if (plan->result != RT_REJECTED && plan->n_conditions > 0)
		plan->result = RT_CONDITIONAL;
	*ret = TAKE_PTR(plan);
	return 0;
}

struct rt_plan *rt_plan_free(struct rt_plan *plan)
{
	if (!plan)
		return NULL;

	for (size_t i = 0; i < plan->n_assumptions; i++)
		free(plan->assumptions[i]);
	for (size_t i = 0; i < plan->n_conditions; i++)
		free(plan->conditions[i]);
	free(plan->assumptions);
	free(plan->conditions);
	free(plan->tasks);
	free(plan);
	return NULL;
}
