/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rt-rig.h"

#include "check-cond.h"

struct rt_partition *rt_rig_partition(struct rt_rig *rig, const char *name)
{
	struct rt_partition *partition = &rig->set.partitions[rig->set.n_partitions++];

	snprintf(partition->name, sizeof(partition->name), "%s", name);
	partition->isolation = ISOLATION_SHADER_ENGINE;
	partition->activation = RT_UNSET;
	partition->sdma_queues = RT_UNSET;
	partition->pipe_neighbours = RT_UNSET;
	partition->processes = 1;
	partition->priority = PRIORITY_NORMAL;
	return partition;
}

struct rt_task *rt_rig_task(struct rt_rig *rig, uint64_t period, uint64_t deadline, unsigned cus,
			    uint64_t usec)
{
	struct rt_task *task = &rig->tasks[rig->set.n_tasks++];

	snprintf(task->name, sizeof(task->name), "t%zu", rig->set.n_tasks);
	task->partition = rig->set.n_partitions - 1;
	rig->set.partitions[task->partition].n_tasks++;
	task->period = period;
	task->deadline = deadline;
	task->points[0] = (struct rt_point){ cus, usec };
	task->n_points = 1;
	return task;
}

int rt_rig_make(const struct rt_rig *rig, const struct gpu_info *gpu, struct rt_plan **ret,
		char *problem, size_t size)
{
	const struct rt_gpu one = { .name = "g", .info = *gpu };

	return rt_plan_make(&rig->set, &one, 1, ret, problem, size);
}

struct rt_plan *rt_rig_plan_on(const struct rt_rig *rig, const struct gpu_info *gpu)
{
	struct rt_plan *plan = NULL;
	char problem[512];

	CHECK(rt_rig_make(rig, gpu, &plan, problem, sizeof(problem)) == 0);
	return plan;
}

void rt_rig_init(struct rt_rig *rig)
{
	*rig = (struct rt_rig)RT_RIG_INIT(*rig);
	rig->gpu = radeon_vii("g");
}

struct rt_plan *rt_rig_plan(const struct rt_rig *rig)
{
	return rt_rig_plan_on(rig, &rig->gpu);
}

struct rt_partition *rt_rig_needs(struct rt_rig *rig, unsigned cus)
{
	struct rt_partition *partition;
	char name[16];

	snprintf(name, sizeof(name), "p%zu", rig->set.n_partitions);
	partition = rt_rig_partition(rig, name);
	rt_rig_task(rig, 1000, 1000, cus, 500);
	return partition;
}
