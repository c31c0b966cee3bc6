/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The steps that make a plan. */

#include "client/rt/task-plan.h"

/* Computes all figures. -ENOMEM; -EINVAL with an error in problem. */
int rt_judge(struct rt_plan *plan, char *problem, size_t size);

/* Adds reasons: why partitions that pass do not fit, and why tasks do not pass. */
void rt_plan_reason(struct rt_plan *plan);

/* Adds the sentences. -ENOMEM. */
int rt_plan_assume(struct rt_plan *plan);

/* The longest response that all tasks of the partition allow. */
uint64_t rt_plan_allowed(const struct rt_plan *plan, size_t partition);
