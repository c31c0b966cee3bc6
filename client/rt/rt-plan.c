/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/rt-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/settings.h"

#define CUS_MAX 1024U

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

/* ---- disturbances ------------------------------------------------------------------------- */

/* Queues that do not belong to this set. */
static uint64_t queues_of_others(const struct rt_set *set, const struct gpu_info *gpu)
{
	uint64_t own = rt_set_queues(set);

	return gpu->queue_slots > own ? gpu->queue_slots - own : 0;
}

/* Other partitions of the set, each of which may be activated once. */
static uint64_t activations_of_others(const struct rt_set *set, size_t partition)
{
	uint64_t n = 0;

	for (size_t i = 0; i < set->n_partitions; i++)
		n += i != partition && set->partitions[i].start_inactive;
	return n;
}

/* How often masks change for activations within one response. gpuarbd tells a borrower of an activation
 * at once, and the borrower may answer much later. So a response may begin while the agent still makes
 * one change, which bound_changes() counts; the agent then sets the newest mask, which may be that of an
 * activation before the response. */
static uint64_t activation_changes(const struct rt_set *set, size_t partition)
{
	uint64_t activations = set->activations != RT_UNSET ? set->activations
							    : activations_of_others(set, partition);

	return activations + (activations > 0);
}

/* A preemption that times out; 0: the fault model of the set has none. */
static uint64_t timed_out(const struct rt_set *set)
{
	return set->preemption_timeout != RT_UNSET ? set->preemption_timeout : 0;
}

/* The worst case is a borrower that never acknowledges: see set_deadline() in core/change/lend.c
 * and next_due() in core/change/enforcement.c. At the end of the grace gpuarbd reports and
 * freezes the borrower, and one enforce-delay later kills it. The kernel then removes its
 * queues: by one preemption each, or by a reset of the GPU after its preemption time-out. The next
 * scan observes that the queues are gone. */
static uint64_t activation(const struct rt_plan *plan, const struct rt_partition *partition)
{
	const struct rt_set *set = plan->set;
	uint64_t removal = 0;

	if (!partition->start_inactive)
		return RT_UNSET;
	if (partition->activation != RT_UNSET)
		return partition->activation;
	if (set->preemption != RT_UNSET)
		removal = plan->changed_queues * set->preemption;
	return set->daemon.activate_grace + set->daemon.enforce_delay +
	       max_u64(removal, timed_out(set)) + SCAN_WHILE_ENDING_USEC;
}

static void make_bound(const struct rt_plan *plan, size_t i, struct rt_partition_plan *ret)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[i];

	ret->activation = activation(plan, partition);
	ret->bound = (struct bound){
		.margin_percent = plan->margin.percent,
		.host = partition->host_submission != RT_UNSET ? partition->host_submission : 0,
		.interval = set->daemon.activate_min_interval,
		.once = timed_out(set),
	};
	if (partition->start_inactive && !partition->waits_for_grant)
		ret->bound.latency = ret->activation;
	if (!plan->preempts)
		return;
	if (set->borrowers) {
		ret->bound.change = plan->changed_queues * set->preemption;
		ret->bound.once += activation_changes(set, i) * ret->bound.change;
	}
	if (set->queue_changes != RT_UNSET)
		ret->bound.once += set->queue_changes * set->preemption;
}

/* A statement that this GPU contradicts. */
static int check_pipes(const struct rt_plan *plan, char *problem, size_t size)
{
	if (!plan->set->own_pipes || plan->set->n_partitions <= plan->gpu->pipes)
		return 0;
	snprintf(problem, size,
		 "[taskset]: own-pipes = yes cannot be true: this set has %zu partitions, and the "
		 "GPU has %u pipes; use fewer partitions, or leave the key out",
		 plan->set->n_partitions, plan->gpu->pipes);
	return -EINVAL;
}

/* A plan with preemptions needs their cost. */
static int check_preemption(const struct rt_plan *plan, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	bool others = set->queue_changes != RT_UNSET && set->queue_changes > 0;

	if (!plan->preempts || set->preemption != RT_UNSET || (!set->borrowers && !others))
		return 0;
	snprintf(problem, size,
		 "[taskset] has no preemption: on this GPU (before gfx11) a change of a mask or of "
		 "queues stops all queues for a time; measure that time (preemption = TIME)%s",
		 others ? "" : ", or state that no lease borrows CUs (borrowers = no)");
	return -EINVAL;
}

/* ---- one partition ------------------------------------------------------------------------ */

/* The sum of the execution times; RT_UNSET: one of them is unknown. */
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

/* The fewest CUs on which the partition passes; 0: none. Times never grow with CUs. */
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
	ret->margin = ret->changes = ret->standstill = BOUND_NONE;
	if (ret->work != RT_UNSET)
		ret->margin = bound_margin(&ret->bound, ret->work);
	if (ret->response != BOUND_NONE) {
		ret->changes = bound_changes(&ret->bound, ret->response);
		ret->standstill = bound_standstill(&ret->bound, ret->response);
	}
}

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
	return rt_fit(plan->gpu, &set, least, &layout) == 0;
}

static void reason_fit(struct rt_plan *plan, const unsigned *least)
{
	const char *advice = "use a GPU with more shader engines, or fewer partitions";

	if (plan->layout.lacks == REASON_QUEUES || plan->layout.lacks == REASON_PROCESSES)
		advice = "request fewer (queues = N, processes = N), or move tasks of several "
			 "partitions into one";
	else if (fits_sharing_engines(plan, least))
		advice = "with isolation = cu in each partition they fit, and share shader engines";
	snprintf(plan->reason, sizeof(plan->reason),
		 "the partitions do not fit side by side: %s; %s", plan->layout.why, advice);
}

/* ---- reasons of a task -------------------------------------------------------------------- */

/* Whether the task passes in a partition of its own. */
static bool passes_alone(const struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	uint64_t response = bound_response(&plan->partitions[task->partition].bound,
					   plan->tasks[i].wcet);

	return response != BOUND_NONE && response + task->jitter <= task->deadline;
}

static void advise(const struct rt_plan *plan, size_t i, char *buf, size_t size)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_partition_plan *partition = &plan->partitions[task->partition];
	const struct rt_task_plan *t = &plan->tasks[i];
	struct bound active = partition->bound;
	uint64_t response;

	active.latency = 0;
	response = bound_response(&active, partition->work);
	if (partition->least > 0)
		snprintf(buf, size,
			 "it passes on %u CUs or more, and one lease cannot have so many on this "
			 "GPU",
			 partition->least);
	else if (partition->bound.latency > 0 && response != BOUND_NONE &&
		 response + task->jitter <= task->deadline)
		snprintf(buf, size,
			 "it passes without the %llu us of activation: release the first job "
			 "when the lease is granted (waits-for-grant = yes)",
			 ull(partition->bound.latency));
	else if (t->bound <= task->period)
		snprintf(buf, size, "it passes with a deadline of %llu us", ull(t->bound));
	else if (plan->set->partitions[task->partition].n_tasks > 1 && passes_alone(plan, i))
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

/* ---- the set ------------------------------------------------------------------------------ */

static int place_all(struct rt_plan *plan, unsigned most)
{
	unsigned least[RT_PARTITIONS_MAX] = { 0 };
	bool alone = true; /* each partition passes alone */
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
		reason_fit(plan, least);
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
			reason_task(plan, i);
	}
}

/* Leases that run beside a partition, if the file does not tell: the other partitions, and one that
 * borrows. */
static unsigned neighbours(const struct rt_set *set)
{
	if (set->neighbours != RT_UNSET)
		return (unsigned)set->neighbours;
	return (unsigned)(set->n_partitions > 0 ? set->n_partitions - 1 : 0) + set->borrowers;
}

static void find_margin(struct rt_plan *plan)
{
	const struct rt_set *set = plan->set;

	plan->neighbours = neighbours(set);
	if (set->margin_percent == MARGIN_MEASURED)
		margin_find(plan->gpu, set->neighbours_use, plan->neighbours, &plan->margin);
	else
		plan->margin = (struct margin){ .percent = set->margin_percent };
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
	find_margin(plan);
	r = check_preemption(plan, problem, size);
	if (r >= 0)
		r = check_pipes(plan, problem, size);
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
