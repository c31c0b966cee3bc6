/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "left, right" */
static void list_gpus(const struct rt_plan *plan, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_gpus && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 0 ? ", " : "",
				      plan->gpus[i].gpu.name);
}

size_t rt_gpu_find(const struct rt_gpu *gpus, size_t n, const char *name)
{
	if (!*name)
		return n == 1 ? 0 : n;
	for (size_t k = 0; k < n; k++)
		if (strcmp(name, gpus[k].name) == 0)
			return k;
	for (size_t k = 0; k < n; k++)
		if (strcmp(name, gpus[k].info.name) == 0)
			return k;
	return n;
}

static int find_gpu(struct rt_plan *plan, const struct rt_gpu *gpus, size_t i, char *problem,
		    size_t size)
{
	const struct rt_partition *partition = &plan->set->partitions[i];
	size_t k = rt_gpu_find(gpus, plan->n_gpus, partition->gpu);
	char names[256];

	if (k < plan->n_gpus) {
		plan->partitions[i].gpu = k;
		plan->gpus[k].n_partitions++;
		plan->gpus[k].queues += rt_partition_queues(partition);
		return 0;
	}
	list_gpus(plan, names, sizeof(names));
	if (*partition->gpu)
		snprintf(
			problem, size,
			"[partition %s]: gpu = %s is not in the set, which has %s: give it a GPU with "
			"--gpu=%s=GPU or --profile=%s=PROFILE",
			partition->name, partition->gpu, names, partition->gpu, partition->gpu);
	else
		snprintf(problem, size, "[partition %s] has no gpu, and the set has several: %s",
			 partition->name, names);
	return -EINVAL;
}

int rt_plan_make(const struct rt_set *set, const struct rt_gpu *gpus, size_t n_gpus,
		 struct rt_plan **ret, char *problem, size_t size)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = calloc(1, sizeof(*plan));
	int r = 0;

	if (plan)
		plan->tasks = calloc(set->n_tasks, sizeof(*plan->tasks));
	if (!plan || !plan->tasks)
		return -ENOMEM;
	plan->set = set;
	plan->n_gpus = n_gpus;
	for (size_t i = 0; i < n_gpus; i++)
		plan->gpus[i].gpu = gpus[i];
	for (size_t i = 0; r >= 0 && i < set->n_partitions; i++)
		r = find_gpu(plan, gpus, i, problem, size);
	if (r >= 0)
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
