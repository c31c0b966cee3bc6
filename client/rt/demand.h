/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tasks of a partition, each for itself. */

#include "client/rt/dispatch.h"
#include "client/rt/task-plan.h"

/* What its tasks demand, and their responses from release to notice, in the order of the set. */
struct demands {
	const struct rt_plan *plan;
	size_t partition, n;
	struct rt_demand *list;
	uint64_t *responses;
	uint64_t *offsets; /* RT_UNSET: the task is released at any time */
	bool phased;       /* the responses are those with offsets */
};

int demands_new(const struct rt_plan *plan, size_t partition, struct demands *ret);
void demands_done(struct demands *demands);

/* What one job of task i takes of its partition, but for standstill. A dispatcher submits a job when it knows of
 * the end of the one before it: host time is part of the job. With fifo it is part of the bound. */
uint64_t demand_cost(const struct rt_plan *plan, size_t i, uint64_t wcet);

/* On so many CUs. false: an execution time is unknown. */
bool demands_fill(struct demands *demands, unsigned cus);

/* Finds the responses. 1: all deadlines are kept; 0; -ENOMEM. */
int demands_respond(struct demands *demands);

/* By how much the execution time of one task may grow. */
int demands_growth(struct demands *demands, size_t i, uint64_t *ret,
		   enum rt_growth_limit *ret_limit);
