/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the plan of a task set on one or more GPUs, with its sentences. */

#include "client/rt/judge.h"

/* By the names in the set, then by those of the GPUs or profiles; no name: the only one. n: none. */
size_t rt_gpu_find(const struct rt_gpu *gpus, size_t n, const char *name);

/* 0 whatever the result is; -ENOMEM; -EINVAL with an error in problem: the file lacks a key that
 * a GPU needs, or a partition is on none of the GPUs. set must outlive the plan. */
int rt_plan_make(const struct rt_set *set, const struct rt_gpu *gpus, size_t n_gpus,
		 struct rt_plan **ret, char *problem, size_t size);
struct rt_plan *rt_plan_free(struct rt_plan *plan);
DEFINE_CLEANUP(struct rt_plan *, rt_plan_free)
