/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Task sets made by hand, for the tests of `rt plan`. */

#include <string.h>

#include "client/rt/task-plan.h"
#include "made-gpus.h"

#define RIG_TASKS 8U

struct rt_rig {
	struct rt_set set;
	struct rt_task tasks[RIG_TASKS];
	struct gpu_info gpu; /* of rt_rig_init() */
};

/* Nothing disturbs, nothing is added, all that can be stated is. For the variable rig. */
#define RT_RIG_INIT(rig)                                              \
	{                                                             \
		.set = {                                              \
			.capped = true,                               \
			.masked = true,                               \
			.no_graphics = true,                          \
			.own_pipes = true,                            \
			.own_copies = true,                           \
			.independent_copies = true,                   \
			.neighbours = RT_UNSET,                       \
			.law = true,                                  \
			.law_stated = true,                           \
			.preemption = RT_UNSET,                       \
			.changed_queues = RT_UNSET,                   \
			.daemon = { .activate_grace = 1000000,        \
				    .activate_min_interval = 1000000, \
				    .enforce_delay = 1000000 },       \
			.tasks = (rig).tasks,                         \
		},                                                    \
	}

struct rt_partition *rt_rig_partition(struct rt_rig *rig, const char *name);

/* Of the last partition; it takes `usec` on `cus` CUs. */
struct rt_task *rt_rig_task(struct rt_rig *rig, uint64_t period, uint64_t deadline, unsigned cus,
			    uint64_t usec);

/* rt_plan_make() with one GPU. */
int rt_rig_make(const struct rt_rig *rig, const struct gpu_info *gpu, struct rt_plan **ret,
		char *problem, size_t size);

struct rt_plan *rt_rig_plan_on(const struct rt_rig *rig, const struct gpu_info *gpu);

/* On a Radeon VII. */
void rt_rig_init(struct rt_rig *rig);
struct rt_plan *rt_rig_plan(const struct rt_rig *rig);

/* A partition with one task that needs `cus` CUs: on fewer nothing is known of it. */
struct rt_partition *rt_rig_needs(struct rt_rig *rig, unsigned cus);
