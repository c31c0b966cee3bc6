/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/rt-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/reason.h"
#include "core/policy/settings.h"

#define CUS_MAX 1024U

const char *rt_result_name(enum rt_result result)
{
	static const char *const names[] = {
		[RT_ACCEPTED] = "accepted",
		[RT_CONDITIONAL] = "conditional",
		[RT_REJECTED] = "rejected",
	};

	return names[result];
}

uint64_t rt_plan_allowed(const struct rt_set *set, size_t partition)
{
	uint64_t allowed = UINT64_MAX;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];
		uint64_t own = task->deadline > task->jitter ? task->deadline - task->jitter : 0;

		if (task->partition == partition && own < allowed)
			allowed = own;
	}
	return allowed;
}

/* ---- what disturbs ------------------------------------------------------------------------ */

/* Queues that are not this set's. */
static uint64_t queues_of_others(const struct rt_set *set, const struct gpu_info *gpu)
{
	uint64_t own = 0;

	for (size_t i = 0; i < set->n_partitions; i++)
		own += rt_partition_queues(&set->partitions[i]);
	return gpu->queue_slots > own ? gpu->queue_slots - own : 0;
}

/* Of other partitions of the set, each of which may be activated once. */
static uint64_t activations_of_others(const struct rt_set *set, size_t partition)
{
	uint64_t n = 0;

	for (size_t i = 0; i < set->n_partitions; i++)
		n += i != partition && set->partitions[i].start_inactive;
	return n;
}

/* As long as a borrower may take that never answers: what gpuarbd does about it is in core/change/lend.c
 * (set_deadline()) and core/change/enforcement.c (next_due()). When the grace is over it is reported and
 * frozen, at once, and one delay later killed. The kernel then takes its queues off, or resets
 * the GPU when its time-out is over; that they are gone is seen by the next look. */
static uint64_t activation(const struct rt_set *set, const struct rt_partition *partition)
{
	if (!partition->start_inactive)
		return RT_UNSET;
	if (partition->activation != RT_UNSET)
		return partition->activation;
	return set->daemon.activate_grace + set->daemon.enforce_delay + set->preemption_timeout +
	       LOOK_WHILE_ENDING_USEC;
}

static void make_bound(const struct rt_plan *plan, size_t i, struct rt_partition_plan *ret)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[i];
	uint64_t activations = set->activations != RT_UNSET ? set->activations
							    : activations_of_others(set, i);

	ret->activation = activation(set, partition);
	ret->bound = (struct bound){
		.margin_percent = set->margin_percent,
		.host = partition->host_submission,
		.interval = set->daemon.activate_min_interval,
	};
	if (partition->start_inactive && !partition->waits_for_grant)
		ret->bound.latency = ret->activation;
	if (!plan->preempts)
		return;
	if (set->borrowers) {
		ret->bound.change = plan->changed_queues * set->preemption;
		ret->bound.once = activations * ret->bound.change;
	}
	if (set->queue_changes != RT_UNSET)
		ret->bound.once += set->queue_changes * set->preemption;
}

/* On such GPUs the cost of a preemption has to be known where there may be one. */
static int check_preemption(const struct rt_plan *plan, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	bool others = set->queue_changes != RT_UNSET && set->queue_changes > 0;

	if (!plan->preempts || set->preemption != RT_UNSET || (!set->borrowers && !others))
		return 0;
	snprintf(
		problem, size,
		"[taskset] has no preemption: on a GPU before gfx11, as this one, a "
		"change of anybody's mask or queues stops every queue for a time; measure what one "
		"costs on it (preemption = TIME)%s",
		others ? ""
		       : ", or say that no lease borrows "
			 "(borrowers = no)");
	return -EINVAL;
}

/* ---- one partition ------------------------------------------------------------------------ */

/* The sum of its execution times; RT_UNSET: one of them is unknown. */
static uint64_t work_of(const struct rt_set *set, size_t partition, unsigned cus)
{
	uint64_t work = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		enum rt_source source;
		uint64_t wcet;

		if (set->tasks[i].partition != partition)
			continue;
		wcet = rt_wcet(&set->tasks[i], cus, set->law, &source);
		if (wcet == RT_UNSET)
			return RT_UNSET;
		work += wcet;
	}
	return work;
}

/* The fewest CUs on which it passes; 0: none. Times do not grow with CUs. */
static unsigned find_least(const struct rt_plan *plan, size_t i)
{
	int64_t most = bound_work_within(&plan->partitions[i].bound, rt_plan_allowed(plan->set, i));
	unsigned fails = 0, passes = CUS_MAX + 1;

	while (fails + 1 < passes) {
		unsigned cus = (fails + passes) / 2;
		uint64_t work = work_of(plan->set, i, cus);

		if (work != RT_UNSET && most >= 0 && work <= (uint64_t)most)
			passes = cus;
		else
			fails = cus;
	}
	return passes > CUS_MAX ? 0 : passes;
}

static void judge_task(struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_partition_plan *partition = &plan->partitions[task->partition];
	struct rt_task_plan *ret = &plan->tasks[i];
	int64_t most;

	ret->wcet = rt_wcet(task, partition->effective, plan->set->law, &ret->source);
	ret->bound = BOUND_NONE;
	if (partition->response != BOUND_NONE) {
		ret->bound = partition->response + task->jitter;
		ret->slack = (int64_t)task->deadline - (int64_t)ret->bound;
	}
	ret->meets = ret->bound <= task->deadline;
	if (partition->passes) {
		most = bound_work_within(&partition->bound,
					 rt_plan_allowed(plan->set, task->partition));
		ret->growth = (uint64_t)most - partition->work;
	}
}

static void judge_partition(struct rt_plan *plan, size_t i, unsigned most)
{
	struct rt_partition_plan *ret = &plan->partitions[i];

	ret->placed = plan->layout.places[i].effective > 0;
	ret->effective = ret->placed ? plan->layout.places[i].effective : most;
	ret->work = work_of(plan->set, i, ret->effective);
	ret->response = ret->work == RT_UNSET ? BOUND_NONE : bound_response(&ret->bound, ret->work);
	ret->passes = ret->response <= rt_plan_allowed(plan->set, i);
}

/* ---- the set ------------------------------------------------------------------------------ */

static int place_all(struct rt_plan *plan, unsigned most)
{
	unsigned least[RT_PARTITIONS_MAX] = { 0 };
	bool alone = true; /* all pass alone */
	int r;

	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		struct rt_partition_plan *p = &plan->partitions[i];

		make_bound(plan, i, p);
		p->least = find_least(plan, i);
		least[i] = p->least <= most ? p->least : 0;
		alone &= least[i] > 0;
	}
	r = rt_fit(plan->gpu, plan->set, least, &plan->layout);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		rt_reason_fit(plan, least);
		memset(plan->layout.places, 0, sizeof(plan->layout.places));
		plan->layout.n = 0;
	}
	if (r < 0 || !alone)
		plan->result = RT_REJECTED;
	return 0;
}

static void judge(struct rt_plan *plan)
{
	unsigned most = rt_fit_most(plan->gpu);

	for (size_t i = 0; i < plan->set->n_partitions; i++)
		judge_partition(plan, i, most);
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		judge_task(plan, i);
		if (!plan->tasks[i].meets)
			rt_reason_task(plan, i);
	}
}

int rt_plan_make(const struct rt_set *set, const struct gpu_info *gpu, struct rt_plan **ret,
		 char *problem, size_t size)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (plan)
		plan->tasks = calloc(set->n_tasks, sizeof(*plan->tasks));
	if (!plan || !plan->tasks)
		return -ENOMEM;
	plan->set = set;
	plan->gpu = gpu;
	plan->preempts = gpu->scheduler != SCHEDULER_MES;
	plan->changed_queues = set->changed_queues != RT_UNSET ? set->changed_queues
							       : queues_of_others(set, gpu);
	r = check_preemption(plan, problem, size);
	if (r >= 0)
		r = place_all(plan, rt_fit_most(gpu));
	if (r < 0)
		return r;
	judge(plan);
	r = rt_plan_assume(plan);
	if (r < 0)
		return r;
	if (plan->result != RT_REJECTED && plan->n_conditions > 0)
		plan->result = RT_CONDITIONAL;
	*ret = TAKE_PTR(plan);
	return 0;
}

struct rt_plan *rt_plan_free(struct rt_plan *plan)
{
	if (!plan)
		return NULL;

	for (size_t i = 0; i < plan->n_assumptions; i++)
		free(plan->assumptions[i]);
	for (size_t i = 0; i < plan->n_conditions; i++)
		free(plan->conditions[i]);
	free(plan->assumptions);
	free(plan->conditions);
	free(plan->tasks);
	free(plan);
	return NULL;
}
