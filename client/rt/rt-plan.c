/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/settings.h"

#define CUS_MAX 1024U
#define LEAST_ROUNDS 16U

uint64_t rt_plan_allowed(const struct rt_plan *plan, size_t partition)
{
	uint64_t allowed = UINT64_MAX;

	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task *task = &plan->set->tasks[i];
		uint64_t jitter = plan->tasks[i].jitter;

		if (task->partition == partition)
			allowed = min_u64(allowed,
					  task->deadline > jitter ? task->deadline - jitter : 0);
	}
	return allowed;
}

/* The sum of the execution times; RT_UNSET: one of them is unknown. */
static uint64_t work_of(const struct rt_set *set, size_t partition, unsigned cus)
{
	uint64_t work = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		enum rt_source source;
		uint64_t wcet;

		if (set->tasks[i].partition != partition)
			continue;
		wcet = rt_set_wcet(set, &set->tasks[i], cus, &source);
		if (wcet == RT_UNSET)
			return RT_UNSET;
		work += wcet;
	}
	return work;
}

/* ---- one partition ------------------------------------------------------------------------ */

/* Whether one number is the bound of all tasks, as the proof of fifo has it. */
static bool has_one_bound(const struct rt_plan *plan, size_t i)
{
	return !rt_partition_dispatches(&plan->set->partitions[i]) &&
	       plan->partitions[i].offsets == RT_NO_OFFSETS && !plan->partitions[i].copies;
}

/* 1: it passes on so many CUs; 0; -ENOMEM. */
static int passes_on(const struct rt_plan *plan, size_t i, unsigned cus)
{
	_cleanup_(demands_done) struct demands demands = { 0 };
	const struct rt_partition_plan *p = &plan->partitions[i];
	uint64_t work;
	int r;

	if (has_one_bound(plan, i)) {
		work = work_of(plan->set, i, cus);
		return work != RT_UNSET && p->most_work >= 0 && work <= (uint64_t)p->most_work;
	}
	r = demands_new(plan, i, &demands);
	if (r < 0)
		return r;
	return demands_fill(&demands, cus) ? demands_respond(&demands) : 0;
}

/* The fewest CUs on which the partition passes; 0: none. Times never grow with CUs. */
static int find_least(const struct rt_plan *plan, size_t i, unsigned *ret)
{
	unsigned fails = 0, passes = CUS_MAX + 1;

	while (fails + 1 < passes) {
		unsigned cus = (fails + passes) / 2;
		int r = passes_on(plan, i, cus);

		if (r < 0)
			return r;
		*(r > 0 ? &passes : &fails) = cus;
	}
	*ret = passes > CUS_MAX ? 0 : passes;
	return 0;
}

static void set_response(const struct rt_plan *plan, size_t i, uint64_t bound)
{
	const struct rt_task *task = &plan->set->tasks[i];
	struct rt_task_plan *ret = &plan->tasks[i];

	ret->bound = bound;
	if (bound != BOUND_NONE)
		ret->slack = (int64_t)task->deadline - (int64_t)bound;
	ret->meets = bound <= task->deadline;
}

/* All jobs of one partition wait for one job of each other task. */
static void judge_together(struct rt_plan *plan, size_t partition)
{
	struct rt_partition_plan *p = &plan->partitions[partition];

	if (p->work != RT_UNSET)
		p->response = bound_response(&p->bound, p->work);
	p->passes = p->response <= rt_plan_allowed(plan, partition);
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		if (plan->set->tasks[i].partition != partition)
			continue;
		set_response(plan, i,
			     p->response != BOUND_NONE ? p->response + plan->tasks[i].jitter
						       : BOUND_NONE);
	}
}

static int judge_each(struct rt_plan *plan, size_t partition)
{
	_cleanup_(demands_done) struct demands demands = { 0 };
	struct rt_partition_plan *p = &plan->partitions[partition];
	int r = demands_new(plan, partition, &demands);
	size_t n = 0;

	if (r >= 0)
		r = demands_fill(&demands, p->effective) ? demands_respond(&demands) : 0;
	if (r < 0)
		return r;
	p->passes = r > 0;
	if (p->offsets != RT_NO_OFFSETS)
		p->offsets = demands.phased ? RT_OFFSETS_USED : RT_OFFSETS_UNUSED;
	p->response = p->work != RT_UNSET ? 0 : BOUND_NONE;
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		if (plan->set->tasks[i].partition != partition)
			continue;
		set_response(plan, i, p->work != RT_UNSET ? demands.responses[n] : BOUND_NONE);
		if (plan->tasks[i].bound == BOUND_NONE)
			p->response = BOUND_NONE;
		else if (p->response != BOUND_NONE)
			p->response = max_u64(p->response,
					      plan->tasks[i].bound - demands.list[n].jitter);
		n++;
	}
	return 0;
}

/* By how much the execution time of each task alone may grow. */
static int judge_growth(struct rt_plan *plan, size_t partition)
{
	_cleanup_(demands_done) struct demands demands = { 0 };
	const struct rt_partition_plan *p = &plan->partitions[partition];
	bool together = has_one_bound(plan, partition);
	int r = 0;

	if (!p->passes || rt_set_has_chains(plan->set) || p->offsets == RT_OFFSETS_USED ||
	    (!together && plan->set->partitions[partition].n_tasks > RT_GROWTH_TASKS))
		return 0;
	if (!together)
		r = demands_new(plan, partition, &demands);
	if (!together && r >= 0)
		(void)demands_fill(&demands, p->effective); /* it was known before */
	for (size_t i = 0, k = 0; r >= 0 && i < plan->set->n_tasks; i++) {
		if (plan->set->tasks[i].partition != partition)
			continue;
		if (together)
			plan->tasks[i].growth = (uint64_t)p->most_work - p->work;
		else
			r = demands_growth(&demands, k++, &plan->tasks[i].growth,
					   &plan->tasks[i].growth_limit);
	}
	return r;
}

static void judge_task(struct rt_plan *plan, size_t i)
{
	struct rt_task_plan *ret = &plan->tasks[i];

	ret->wcet = rt_set_wcet(plan->set, &plan->set->tasks[i],
				plan->partitions[plan->set->tasks[i].partition].effective,
				&ret->source);
	ret->bound = ret->growth = ret->budget = BOUND_NONE;
}

static int judge_partition(struct rt_plan *plan, size_t i, unsigned cus)
{
	struct rt_partition_plan *ret = &plan->partitions[i];
	int r = 0;

	ret->effective = cus;
	ret->work = work_of(plan->set, i, ret->effective);
	ret->response = ret->margin = ret->changes = ret->standstill = BOUND_NONE;
	for (size_t k = 0; k < plan->set->n_tasks; k++)
		if (plan->set->tasks[k].partition == i)
			judge_task(plan, k);
	if (has_one_bound(plan, i))
		judge_together(plan, i);
	else
		r = judge_each(plan, i);
	if (ret->work != RT_UNSET)
		ret->margin = bound_margin(&ret->bound, ret->work);
	if (ret->response != BOUND_NONE) {
		ret->changes = bound_changes(&ret->bound,
					     max_u64(ret->response, ret->bound.latency));
		ret->standstill = bound_standstill(&ret->bound,
						   max_u64(ret->response, ret->bound.latency));
	}
	return r;
}

/* ---- the set ------------------------------------------------------------------------------ */

/* Raises the bound of a task with its jitter to what it is at least, so that the rest of its chain need not
 * wait for the next judgement. */
static void set_jitter(struct rt_plan *plan, size_t i, uint64_t jitter)
{
	size_t partition = plan->set->tasks[i].partition;
	struct rt_task_plan *t = &plan->tasks[i];

	if (t->bound == BOUND_NONE)
		;
	else if (plan->set->partitions[partition].policy == RT_NP_EDF ||
		 plan->partitions[partition].offsets == RT_OFFSETS_USED)
		t->bound = max_u64(t->bound, jitter + t->wcet);
	else
		t->bound += jitter - t->jitter;
	t->jitter = jitter;
}

/* What a task comes after makes it ready late. Whether any of that changed. */
static bool spread_jitter(struct rt_plan *plan)
{
	bool changed = false, more;

	do {
		more = false;
		for (size_t i = 0; i < plan->set->n_tasks; i++) {
			const struct rt_task *task = &plan->set->tasks[i];
			uint64_t jitter = task->jitter;

			if (task->after > 0)
				jitter += min_u64(plan->tasks[task->after - 1].bound,
						  BOUND_TIME_MAX);
			/* Beyond its deadline it fails, however late it is. */
			jitter = min_u64(jitter, task->deadline + task->jitter);
			if (jitter == plan->tasks[i].jitter)
				continue;
			set_jitter(plan, i, jitter);
			more = changed = true;
		}
	} while (more);
	return changed;
}

/* The fewest CUs of each partition. */
static int find_all_least(struct rt_plan *plan)
{
	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		struct rt_partition_plan *p = &plan->partitions[i];
		int r;

		p->most_work = bound_work_within(&p->bound, rt_plan_allowed(plan, i));
		r = find_least(plan, i, &p->least);
		if (r < 0)
			return r;
	}
	return 0;
}

/* With chains, the CUs of one partition depend on the responses of others on their CUs. */
static int find_chained_least(struct rt_plan *plan)
{
	bool chains = rt_set_has_chains(plan->set);
	int r = find_all_least(plan);

	for (unsigned round = 0; r >= 0 && chains && round < LEAST_ROUNDS; round++) {
		for (size_t i = 0; r >= 0 && i < plan->set->n_partitions; i++) {
			unsigned least = plan->partitions[i].least;
			unsigned most = rt_plan_gpu(plan, i)->most;

			r = judge_partition(plan, i, least > 0 && least <= most ? least : most);
		}
		if (r < 0 || !spread_jitter(plan))
			break;
		r = find_all_least(plan);
	}
	return r;
}

/* Adds what was placed on one GPU to the layout of all. */
static void add_layout(struct rt_layout *all, const struct rt_layout *one)
{
	for (size_t n = 0; n < one->n; n++) {
		size_t i = one->order[n];

		all->order[all->n++] = i;
		all->places[i] = one->places[i];
	}
	all->any_order &= one->any_order;
}

/* Places the partitions of one GPU. -ENOSPC: they do not fit. */
static int place_gpu(struct rt_plan *plan, size_t gpu)
{
	unsigned least[RT_PARTITIONS_MAX] = { 0 };
	struct rt_layout layout;
	int r;

	for (size_t i = 0; i < plan->set->n_partitions; i++)
		if (plan->partitions[i].gpu == gpu &&
		    plan->partitions[i].least <= plan->gpus[gpu].most)
			least[i] = plan->partitions[i].least;
	r = rt_fit(&plan->gpus[gpu].gpu.info, plan->set, least, &layout);
	if (r >= 0) {
		add_layout(&plan->layout, &layout);
	} else if (r == -ENOSPC) {
		plan->layout = layout;
		memset(plan->layout.places, 0, sizeof(plan->layout.places));
		plan->layout.n = 0;
		plan->crowded = gpu;
	}
	return r;
}

static int place_all(struct rt_plan *plan)
{
	int r = find_chained_least(plan);

	plan->layout.any_order = true;
	for (size_t i = 0; r >= 0 && i < plan->n_gpus; i++)
		r = place_gpu(plan, i);
	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		unsigned least = plan->partitions[i].least;

		if (least == 0 || least > rt_plan_gpu(plan, i)->most)
			plan->result = RT_REJECTED;
	}
	if (r < 0)
		plan->result = RT_REJECTED;
	return r == -ENOSPC ? 0 : r;
}

/* One job alone, with all that the plan allows to delay it. */
static void judge_budget(struct rt_plan *plan, size_t i)
{
	struct bound bound = plan->partitions[plan->set->tasks[i].partition].bound;
	struct rt_task_plan *task = &plan->tasks[i];

	bound.margin_percent = 0; /* the cost has it */
	if (task->meets)
		task->budget = bound_response(&bound, demand_cost(plan, i, task->wcet));
}

/* From the jitter of each task alone up to the least that holds for all: bounds never shrink while jitters
 * grow, and no jitter grows past the deadline of its task, so this ends. */
static int judge_all(struct rt_plan *plan)
{
	const struct rt_set *set = plan->set;
	int r = 0;

	for (size_t i = 0; i < set->n_tasks; i++)
		plan->tasks[i].jitter = set->tasks[i].jitter;
	do
		for (size_t i = 0; r >= 0 && i < set->n_partitions; i++) {
			unsigned cus = plan->layout.places[i].effective;

			plan->partitions[i].placed = cus > 0;
			plan->partitions[i].most_work = bound_work_within(
				&plan->partitions[i].bound, rt_plan_allowed(plan, i));
			r = judge_partition(plan, i, cus > 0 ? cus : rt_plan_gpu(plan, i)->most);
		}
	while (r >= 0 && spread_jitter(plan));
	for (size_t i = 0; r >= 0 && i < set->n_partitions; i++) {
		if (!plan->partitions[i].passes)
			plan->result = RT_REJECTED;
		r = judge_growth(plan, i);
	}
	for (size_t i = 0; r >= 0 && i < set->n_tasks; i++)
		judge_budget(plan, i);
	return r;
}

/* Leases that run beside a partition, if the file does not tell: the other partitions, and one on each GPU that
 * borrows. */
static unsigned neighbours(const struct rt_plan *plan, size_t gpu)
{
	size_t n = rt_plan_beside(plan, gpu);

	if (plan->set->neighbours != RT_UNSET)
		return (unsigned)plan->set->neighbours;
	for (size_t i = 0; plan->set->borrowers && i < plan->n_gpus; i++)
		n += rt_plan_shares_memory(plan, gpu, i);
	return (unsigned)n;
}

static void judge_gpu(const struct rt_plan *plan, struct rt_gpu_plan *gpu)
{
	const struct rt_set *set = plan->set;

	gpu->most = rt_fit_most(&gpu->gpu.info);
	gpu->neighbours = neighbours(plan, (size_t)(gpu - plan->gpus));
	if (set->margin_percent == MARGIN_MEASURED)
		margin_find(&gpu->gpu.info, set->neighbours_use, gpu->neighbours, &gpu->margin);
	else
		gpu->margin = (struct margin){ .percent = set->margin_percent };
}

/* What makes a partition more than one sum of execution times. */
static void find_kinds(struct rt_plan *plan)
{
	for (size_t i = 0; i < plan->set->n_partitions; i++)
		plan->partitions[i].copies = rt_set_copies(plan->set, i);
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task *task = &plan->set->tasks[i];
		const struct rt_task *first = rt_set_first(plan->set, task);

		plan->tasks[i].offset = first->offset_line > 0 ? first->offset : RT_UNSET;
		if (first->offset_line > 0)
			plan->partitions[task->partition].offsets = RT_OFFSETS_UNUSED;
	}
}

/* Computes all figures. -ENOMEM; -EINVAL with an error in problem. */
static int rt_judge(struct rt_plan *plan, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	int r;

	for (size_t i = 0; i < plan->n_gpus; i++)
		judge_gpu(plan, &plan->gpus[i]);
	r = rt_plan_disturb(plan, problem, size);
	if (r < 0)
		return r;
	for (size_t i = 0; i < set->n_tasks; i++)
		plan->tasks[i].jitter = set->tasks[i].jitter;
	find_kinds(plan);
	rt_plan_copy(plan);
	r = place_all(plan);
	return r < 0 ? r : judge_all(plan);
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* "left, right" */
static void list_gpus(const struct rt_plan *plan, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_gpus && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 0 ? ", " : "",
				      plan->gpus[i].gpu.name);
}

size_t rt_gpu_find(const struct rt_gpu *gpus, size_t n, const char *name)
{
	if (!*name)
		return n == 1 ? 0 : n;
	for (size_t k = 0; k < n; k++)
		if (strcmp(name, gpus[k].name) == 0)
			return k;
	for (size_t k = 0; k < n; k++)
		if (strcmp(name, gpus[k].info.name) == 0)
			return k;
	return n;
}

static int find_gpu(struct rt_plan *plan, const struct rt_gpu *gpus, size_t i, char *problem,
		    size_t size)
{
	const struct rt_partition *partition = &plan->set->partitions[i];
	size_t k = rt_gpu_find(gpus, plan->n_gpus, partition->gpu);
	char names[256];

	if (k < plan->n_gpus) {
		plan->partitions[i].gpu = k;
		plan->gpus[k].n_partitions++;
		plan->gpus[k].queues += rt_partition_queues(partition);
		return 0;
	}
	list_gpus(plan, names, sizeof(names));
	if (*partition->gpu)
		snprintf(
			problem, size,
			"[partition %s]: gpu = %s is not in the set, which has %s: give it a GPU with "
			"--gpu=%s=GPU or --profile=%s=PROFILE",
			partition->name, partition->gpu, names, partition->gpu, partition->gpu);
	else
		snprintf(problem, size, "[partition %s] has no gpu, and the set has several: %s",
			 partition->name, names);
	return -EINVAL;
}

int rt_plan_make(const struct rt_set *set, const struct rt_gpu *gpus, size_t n_gpus,
		 struct rt_plan **ret, char *problem, size_t size)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = calloc(1, sizeof(*plan));
	int r = 0;

	if (plan)
		plan->tasks = calloc(set->n_tasks, sizeof(*plan->tasks));
	if (!plan || !plan->tasks)
		return -ENOMEM;
	plan->set = set;
	plan->n_gpus = n_gpus;
	for (size_t i = 0; i < n_gpus; i++)
		plan->gpus[i].gpu = gpus[i];
	for (size_t i = 0; r >= 0 && i < set->n_partitions; i++)
		r = find_gpu(plan, gpus, i, problem, size);
	if (r >= 0)
		r = rt_judge(plan, problem, size);
	if (r < 0)
		return r;
	rt_plan_reason(plan);
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
