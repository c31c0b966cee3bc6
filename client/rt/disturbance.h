/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What delays the jobs of a partition beside its own jobs: standstill of the GPU, and the activation. */

#include "client/rt/plan.h"

/* Fills in the bounds of all partitions, without jobs. -EINVAL with an error in problem. */
int rt_plan_disturb(struct rt_plan *plan, char *problem, size_t size);
