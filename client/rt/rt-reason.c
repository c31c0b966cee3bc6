/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Why a set or a task is rejected, and what would help. */

#include <stdio.h>

#include "client/rt/task-plan.h"

/* ---- reasons of the set ------------------------------------------------------------------- */

/* Whether the partitions fit if they share shader engines. */
static bool fits_sharing_engines(const struct rt_plan *plan, const unsigned *least)
{
	struct rt_set set = *plan->set;
	struct rt_layout layout;

	for (size_t i = 0; i < set.n_partitions; i++) {
		set.partitions[i].isolation = ISOLATION_CU;
		set.partitions[i].alone = false;
	}
	return rt_fit(&plan->gpus[plan->crowded].gpu.info, &set, least, &layout) == 0;
}

static void reason_fit(struct rt_plan *plan)
{
	const struct rt_gpu_plan *gpu = &plan->gpus[plan->crowded];
	unsigned least[RT_PARTITIONS_MAX] = { 0 };
	const char *advice = "use a GPU with more shader engines, or fewer partitions";

	for (size_t i = 0; i < plan->set->n_partitions; i++)
		if (plan->partitions[i].gpu == plan->crowded &&
		    plan->partitions[i].least <= gpu->most)
			least[i] = plan->partitions[i].least;
	if (plan->layout.lacks == REASON_SDMA)
		advice =
			"request fewer (sdma-queues = N): without one, HIP copies with compute units";
	else if (plan->layout.lacks == REASON_QUEUES || plan->layout.lacks == REASON_PROCESSES)
		advice = "request fewer (queues = N, processes = N), or move tasks of several "
			 "partitions into one";
	else if (fits_sharing_engines(plan, least))
		advice = "with isolation = cu in each partition they fit, and share shader engines";
	snprintf(plan->reason, sizeof(plan->reason),
		 "the partitions do not fit side by side%s%s: %s; %s",
		 plan->n_gpus > 1 ? " on " : "", plan->n_gpus > 1 ? gpu->gpu.name : "",
		 plan->layout.why, advice);
}

/* ---- reasons of a task -------------------------------------------------------------------- */

/* Whether the task passes in a partition of its own. */
static bool passes_alone(const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	struct bound bound = plan->partitions[task->partition].bound;
	uint64_t response;

	bound.margin_percent = 0; /* the cost has it */
	response = bound_response(&bound, demand_cost(plan, i, plan->tasks[i].wcet));

	return response != BOUND_NONE && response + plan->tasks[i].jitter <= task->deadline;
}

/* Whether its copies take longer than its deadline only because jobs of other partitions on its GPU copy, too. */
static bool copies_with_others(const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	size_t own = task->partition;
	uint64_t longer = max_u64(task->copy_in, task->copy_out);

	if (longer + bound_margin(&plan->partitions[own].bound, longer) > task->deadline)
		return false;
	for (size_t k = 0; k < plan->set->n_partitions; k++)
		if (k != own && plan->partitions[k].copies &&
		    plan->partitions[k].gpu == plan->partitions[own].gpu)
			return true;
	return false;
}

static void advise(const struct rt_plan *plan, size_t i, char *buf, size_t size)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_partition_plan *partition = &plan->partitions[task->partition];
	const struct rt_task_plan *t = &plan->tasks[i];
	if (partition->least > 0)
		snprintf(buf, size,
			 "it passes on %u CUs or more, and one lease cannot have so many on this "
			 "GPU",
			 partition->least);
	else if (plan->set->partitions[task->partition].policy != RT_FIFO)
		snprintf(
			buf, size,
			"it needs shorter execution times or longer periods in its partition, or a "
			"later deadline");
	else if (partition->bound.latency > 0 &&
		 t->bound - partition->bound.latency <= task->deadline)
		snprintf(buf, size,
			 "it passes without the %llu us of activation: release the first job "
			 "when the lease is granted (waits-for-grant = yes)",
			 ull(partition->bound.latency));
	else if (t->bound <= task->period)
		snprintf(buf, size, "it passes with a deadline of %llu us", ull(t->bound));
	else if (plan->set->partitions[task->partition].n_tasks > 1 && !partition->copies &&
		 passes_alone(plan, i))
		snprintf(buf, size, "it passes in a partition of its own with as many CUs");
	else
		snprintf(buf, size,
			 "no deadline within its period is long enough: it needs a period of "
			 "%llu us, or shorter execution times",
			 ull(t->bound));
}

static void reason_task(struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_partition_plan *partition = &plan->partitions[task->partition];
	struct rt_task_plan *ret = &plan->tasks[i];
	char advice[192];

	if (ret->wcet == RT_UNSET) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "measured on %u CUs or more only, and one lease can have %u on this GPU: "
			 "measure it on so many",
			 task->points[0].cus, partition->effective);
		return;
	}
	if (partition->work == RT_UNSET) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "unknown: another task of its partition was not measured on as few CUs as "
			 "one lease can have on this GPU");
		return;
	}
	if (ret->copies == BOUND_NONE) {
		snprintf(
			ret->reason, sizeof(ret->reason),
			copies_with_others(plan, i)
				? "its copies can wait for those of other partitions until after its "
				  "deadline: use fewer or shorter copies, or longer periods"
				: "its copies alone take longer than its deadline, with their margin and "
				  "standstill: use shorter copies, or a longer period");
		return;
	}
	if (ret->bound == BOUND_NONE && plan->set->partitions[task->partition].policy != RT_FIFO &&
	    bound_load(&partition->bound) < 1) {
		snprintf(
			ret->reason, sizeof(ret->reason),
			"no bound: jobs and standstill leave no time, or the partition is busy for more "
			"than an hour or %u deadlines; use longer periods or shorter execution times",
			DISPATCH_POINTS_MAX);
		return;
	}
	if (ret->bound == BOUND_NONE) {
		snprintf(
			ret->reason, sizeof(ret->reason),
			"changes of masks stop the GPU for %llu us and can come every %llu us: use "
			"fewer changed-queues or a longer activate-min-interval",
			ull(partition->bound.change), ull(partition->bound.interval));
		return;
	}
	advise(plan, i, advice, sizeof(advice));
	snprintf(ret->reason, sizeof(ret->reason), "%lld us past its deadline on %u CUs, %s; %s",
		 (long long)-ret->slack, partition->effective,
		 partition->placed ? "the CUs of its partition"
				   : "the most that one lease can have on this GPU",
		 advice);
}

void rt_plan_reason(struct rt_plan *plan)
{
	if (plan->layout.n == 0 && plan->layout.why[0])
		reason_fit(plan);
	for (size_t i = 0; i < plan->set->n_tasks; i++)
		if (!plan->tasks[i].meets)
			reason_task(plan, i);
}
