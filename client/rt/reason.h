/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why a set is rejected, and what would do. */

#include "client/rt/rt-plan.h"

/* Partitions that pass alone do not fit side by side: plan->layout says which was the last. */
void rt_reason_fit(struct rt_plan *plan, const unsigned *least);

/* A task whose bound is past its deadline, on the CUs that its partition is judged on. */
void rt_reason_task(struct rt_plan *plan, size_t task);
