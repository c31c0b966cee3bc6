/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Task sets made by hand, for the tests of `rt plan`. */

#include <string.h>

#include "client/rt/rt-plan.h"
#include "ledger-rig.h"

#define RIG_TASKS 8U

struct rt_rig {
	struct rt_set set;
	struct rt_partition partitions[RIG_TASKS];
	struct rt_task tasks[RIG_TASKS];
};

/* Nothing disturbs, nothing is added, all that can be stated is. */
static inline void rt_rig_init(struct rt_rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rig->set = (struct rt_set){
		.capped = true,
		.no_graphics = true,
		.law = true,
		.queue_changes = 0,
		.preemption = RT_UNSET,
		.activations = RT_UNSET,
		.changed_queues = RT_UNSET,
		.daemon = { .activate_grace = 1000000,
			    .activate_min_interval = 1000000,
			    .enforce_delay = 1000000 },
		.preemption_timeout = 9000000,
		.partitions = rig->partitions,
		.tasks = rig->tasks,
	};
}

static inline struct rt_partition *rt_rig_partition(struct rt_rig *rig, const char *name)
{
	struct rt_partition *partition = &rig->partitions[rig->set.n_partitions++];

	snprintf(partition->name, sizeof(partition->name), "%s", name);
	partition->isolation = ISOLATION_SHADER_ENGINE;
	partition->activation = RT_UNSET;
	partition->processes = 1;
	partition->priority = PRIORITY_NORMAL;
	return partition;
}

/* Of the last partition; it takes `usec` on `cus` CUs. */
static inline struct rt_task *rt_rig_task(struct rt_rig *rig, uint64_t period, uint64_t deadline,
					  unsigned cus, uint64_t usec)
{
	struct rt_task *task = &rig->tasks[rig->set.n_tasks++];

	snprintf(task->name, sizeof(task->name), "t%zu", rig->set.n_tasks);
	task->partition = rig->set.n_partitions - 1;
	rig->partitions[task->partition].n_tasks++;
	task->period = period;
	task->deadline = deadline;
	task->points[0] = (struct rt_point){ cus, usec };
	task->n_points = 1;
	return task;
}

static inline struct rt_plan *rt_rig_plan(const struct rt_rig *rig, const struct gpu_info *gpu)
{
	struct rt_plan *plan = NULL;
	char problem[512];

	CHECK(rt_plan_make(&rig->set, gpu, &plan, problem, sizeof(problem)) == 0);
	return plan;
}

/* A partition with one task that needs `cus` CUs: on fewer nothing is known of it. */
static inline struct rt_partition *rt_rig_needs(struct rt_rig *rig, unsigned cus)
{
	struct rt_partition *partition;
	char name[16];

	snprintf(name, sizeof(name), "p%zu", rig->set.n_partitions);
	partition = rt_rig_partition(rig, name);
	rt_rig_task(rig, 1000, 1000, cus, 500);
	return partition;
}
