/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Copies of jobs by SDMA engines. Neither the driver nor the firmware documents which engine serves a
 * queue, nor in which order an engine serves its queues: all copies of a GPU share one engine here, which serves
 * them in any order and in parts, but never idles while one waits. A partition runs one job at a time,
 * so its own copies never meet. The proof is in gpuarbctl-rt(1).
 */

#include "client/rt/task-plan.h"

#include "client/rt/dispatch.h"

/* Copies of other partitions' jobs that are released so that they can be under way in a window of this
 * length, if all jobs keep their deadlines. */
static uint64_t copied_by_others(const struct rt_plan *plan, size_t partition, uint64_t window)
{
	const struct rt_set *set = plan->set;
	const struct bound *bound = &plan->partitions[partition].bound;
	uint64_t sum = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];
		uint64_t jobs = (window + task->deadline) / task->period + 1;

		if (task->partition != partition &&
		    plan->partitions[task->partition].gpu == plan->partitions[partition].gpu)
			sum = bound_add(sum, jobs,
					task->copy_in + bound_margin(bound, task->copy_in) +
						task->copy_out +
						bound_margin(bound, task->copy_out));
	}
	return sum;
}

/* Standstill in the window is a part of the response already, and makes the window longer. */
static uint64_t time_of(const struct rt_plan *plan, const struct rt_task *task, uint64_t usec)
{
	struct bound bound = plan->partitions[task->partition].bound;
	uint64_t own = usec + bound_margin(&bound, usec), window = own, time, next;

	if (usec == 0)
		return 0;
	if (bound_load(&bound) > DISPATCH_LOAD_MAX)
		return BOUND_NONE;
	bound.latency = 0;
	while (window <= task->deadline) {
		time = own + copied_by_others(plan, task->partition, window);
		next = time + bound_standstill(&bound, window);
		if (next <= window)
			return time;
		window = next;
	}
	return BOUND_NONE;
}

void rt_plan_copy(struct rt_plan *plan)
{
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task *task = &plan->set->tasks[i];
		uint64_t in = time_of(plan, task, task->copy_in);
		uint64_t out = time_of(plan, task, task->copy_out);

		plan->tasks[i].copies = in == BOUND_NONE || out == BOUND_NONE ? BOUND_NONE
									      : in + out;
	}
}
