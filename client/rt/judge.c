/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/rt/dispatch.h"
#include "core/policy/settings.h"

#define CUS_MAX 1024U
#define LEAST_ROUNDS 16U
#define JITTER_ROUNDS 1000U

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

static uint64_t longest_deadline(const struct rt_set *set, size_t partition)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < set->n_tasks; i++)
		if (set->tasks[i].partition == partition)
			longest = max_u64(longest, set->tasks[i].deadline);
	return longest;
}

/* Adds what stops the GPU, and how often. A partition with a policy serves several jobs of a task in
 * one busy period: there a number is for its longest deadline. */
static void add_events(const struct rt_set *set, size_t i, struct rt_often often, uint64_t late,
		       uint64_t cost, enum bound_source source, struct bound *bound)
{
	if (often.rates.n == 0 && (often.number == 0 || often.number == RT_UNSET))
		return;
	if (often.rates.n == 0 && set->partitions[i].policy == RT_FIFO) {
		bound->once = bound_add(bound->once, often.number + late, cost);
		return;
	}
	if (often.rates.n == 0)
		often.rates = (struct bound_rates){ { { often.number, longest_deadline(set, i) } },
						    1 };
	bound->events[source] = (struct bound_events){ cost, late, 0, often.rates };
}

/* Rates tell when events begin, so those that begin before a window can reach into it. */
static void add_earlier(const struct rt_set *set, struct bound *bound)
{
	uint64_t stop = min_u64(bound_longest_stop(bound), BOUND_TIME_MAX);

	if (set->activations.rates.n > 0)
		bound->events[BOUND_ACTIVATIONS].before = stop;
	if (set->queue_changes.rates.n > 0)
		bound->events[BOUND_QUEUE_CHANGES].before = stop;
}

/* gpuarbd tells a borrower of an activation at once, and the borrower may answer much later. So a window
 * may begin while the agent still makes one change, which bound_changes() counts; the agent then sets the
 * newest mask, which may be that of an activation before the window. */
static void add_borrowers(const struct rt_plan *plan, size_t i, struct bound *bound)
{
	const struct rt_set *set = plan->set;
	struct rt_often activations = set->activations;

	if (!rt_often_is_stated(&activations))
		activations.number = activations_of_others(set, i);
	bound->change = plan->changed_queues * set->preemption;
	add_events(set, i, activations, 1, bound->change, BOUND_ACTIVATIONS, bound);
}

static void make_bound(const struct rt_plan *plan, size_t i, struct rt_partition_plan *ret)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[i];
	const struct rt_often timeouts = { .number = timed_out(set) > 0 };
	uint64_t host = partition->host_submission != RT_UNSET ? partition->host_submission : 0;
	struct bound *bound = &ret->bound;

	ret->activation = activation(plan, partition);
	*bound = (struct bound){
		.margin_percent = plan->margin.percent,
		.host = partition->policy == RT_FIFO ? host : 0, /* else part of each job */
		.interval = set->daemon.activate_min_interval,
	};
	if (partition->start_inactive && !partition->waits_for_grant)
		bound->latency = ret->activation;
	add_events(set, i, timeouts, 0, timed_out(set), BOUND_TIMEOUTS, bound);
	if (!plan->preempts)
		return;
	if (set->borrowers)
		add_borrowers(plan, i, bound);
	add_events(set, i, set->queue_changes, 0, set->preemption, BOUND_QUEUE_CHANGES, bound);
	add_earlier(set, bound);
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
	bool others = rt_often_is_stated(&set->queue_changes) && set->queue_changes.number > 0;

	if (!plan->preempts || set->preemption != RT_UNSET || (!set->borrowers && !others))
		return 0;
	snprintf(problem, size,
		 "[taskset] has no preemption: on this GPU (before gfx11) a change of a mask or of "
		 "queues stops all queues for a time; measure that time (preemption = TIME)%s",
		 others ? "" : ", or state that no lease borrows CUs (borrowers = no)");
	return -EINVAL;
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
		wcet = rt_wcet(&set->tasks[i], cus, set->law, &source);
		if (wcet == RT_UNSET)
			return RT_UNSET;
		work += wcet;
	}
	return work;
}

/* ---- the tasks of a partition with a policy ------------------------------------------------- */

/* What its tasks demand, and their responses from release to notice, in the order of the set. */
struct demands {
	const struct rt_plan *plan;
	size_t partition, n;
	struct rt_demand *list;
	uint64_t *responses;
};

static int demands_new(const struct rt_plan *plan, size_t partition, struct demands *ret)
{
	size_t n = plan->set->partitions[partition].n_tasks;

	*ret = (struct demands){ .plan = plan, .partition = partition, .n = n };
	ret->list = calloc(n, sizeof(*ret->list));
	ret->responses = calloc(n, sizeof(*ret->responses));
	return ret->list && ret->responses ? 0 : -ENOMEM;
}

static void demands_done(struct demands *demands)
{
	free(demands->list);
	free(demands->responses);
}

/* A dispatcher submits a job when it knows of the end of the one before it: host time is part of the job. */
static uint64_t cost_of(const struct rt_plan *plan, size_t partition, uint64_t wcet)
{
	uint64_t host = plan->set->partitions[partition].host_submission;

	return wcet + bound_margin(&plan->partitions[partition].bound, wcet) +
	       (host != RT_UNSET ? host : 0);
}

/* On so many CUs. false: an execution time is unknown. */
static bool demands_fill(struct demands *demands, unsigned cus)
{
	const struct rt_set *set = demands->plan->set;
	size_t n = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const struct rt_task *task = &set->tasks[i];
		enum rt_source source;
		uint64_t wcet;

		if (task->partition != demands->partition)
			continue;
		wcet = rt_wcet(task, cus, set->law, &source);
		if (wcet == RT_UNSET)
			return false;
		demands->list[n++] = (struct rt_demand){
			.cost = cost_of(demands->plan, demands->partition, wcet),
			.period = task->period,
			.deadline = task->deadline,
			.jitter = demands->plan->tasks[i].jitter,
		};
	}
	return true;
}

/* 1: all deadlines are kept; 0; -ENOMEM. */
static int demands_respond(struct demands *demands)
{
	const struct bound *bound = &demands->plan->partitions[demands->partition].bound;
	enum rt_policy policy = demands->plan->set->partitions[demands->partition].policy;
	int r = (policy == RT_NP_EDF ? dispatch_edf : dispatch_dm)(bound, demands->list, demands->n,
								   demands->responses);

	if (r < 0)
		return r;
	for (size_t i = 0; i < demands->n; i++)
		if (demands->responses[i] > demands->list[i].deadline)
			return 0;
	return 1;
}

/* By how much the execution time of one task may grow. */
static int demands_growth(struct demands *demands, size_t i, uint64_t *ret)
{
	const struct bound *bound = &demands->plan->partitions[demands->partition].bound;
	struct rt_demand *task = &demands->list[i];
	uint64_t cost = task->cost, fits = 0, fails = task->deadline + 1;
	int r;

	while (fits + 1 < fails) {
		uint64_t more = (fits + fails) / 2;

		task->cost = cost + more + bound_margin(bound, more);
		r = demands_respond(demands);
		if (r < 0)
			return r;
		*(r > 0 ? &fits : &fails) = more;
	}
	task->cost = cost;
	*ret = fits;
	return 0;
}

/* ---- one partition ------------------------------------------------------------------------ */

/* 1: it passes on so many CUs; 0; -ENOMEM. */
static int passes_on(const struct rt_plan *plan, size_t i, unsigned cus)
{
	_cleanup_(demands_done) struct demands demands = { 0 };
	const struct rt_partition_plan *p = &plan->partitions[i];
	uint64_t work;
	int r;

	if (plan->set->partitions[i].policy == RT_FIFO) {
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
static void judge_fifo(struct rt_plan *plan, size_t partition)
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

static int judge_dispatched(struct rt_plan *plan, size_t partition)
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
	bool fifo = plan->set->partitions[partition].policy == RT_FIFO;
	int r = 0;

	if (!p->passes || rt_set_has_chains(plan->set) ||
	    (!fifo && plan->set->partitions[partition].n_tasks > RT_GROWTH_TASKS))
		return 0;
	if (!fifo)
		r = demands_new(plan, partition, &demands);
	if (!fifo && r >= 0)
		(void)demands_fill(&demands, p->effective); /* it was known before */
	for (size_t i = 0, k = 0; r >= 0 && i < plan->set->n_tasks; i++) {
		if (plan->set->tasks[i].partition != partition)
			continue;
		if (fifo)
			plan->tasks[i].growth = (uint64_t)p->most_work - p->work;
		else
			r = demands_growth(&demands, k++, &plan->tasks[i].growth);
	}
	return r;
}

static void judge_task(struct rt_plan *plan, size_t i)
{
	struct rt_task_plan *ret = &plan->tasks[i];

	ret->wcet = rt_wcet(&plan->set->tasks[i],
			    plan->partitions[plan->set->tasks[i].partition].effective,
			    plan->set->law, &ret->source);
	ret->bound = ret->growth = BOUND_NONE;
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
	if (plan->set->partitions[i].policy == RT_FIFO)
		judge_fifo(plan, i);
	else
		r = judge_dispatched(plan, i);
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

/* What a task comes after makes it ready late. Whether any of that changed. */
static bool spread_jitter(struct rt_plan *plan)
{
	bool changed = false;

	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task *task = &plan->set->tasks[i];
		uint64_t jitter = task->jitter;

		if (task->after > 0)
			jitter += min_u64(plan->tasks[task->after - 1].bound, BOUND_TIME_MAX);
		/* Beyond its deadline it fails, however late it is. */
		jitter = min_u64(jitter, task->deadline + task->jitter);
		changed |= jitter != plan->tasks[i].jitter;
		plan->tasks[i].jitter = jitter;
	}
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
static int find_chained_least(struct rt_plan *plan, unsigned most)
{
	bool chains = rt_set_has_chains(plan->set);
	int r = find_all_least(plan);

	for (unsigned round = 0; r >= 0 && chains && round < LEAST_ROUNDS; round++) {
		for (size_t i = 0; r >= 0 && i < plan->set->n_partitions; i++) {
			unsigned least = plan->partitions[i].least;

			r = judge_partition(plan, i, least > 0 && least <= most ? least : most);
		}
		if (r < 0 || !spread_jitter(plan))
			break;
		r = find_all_least(plan);
	}
	return r;
}

static int place_all(struct rt_plan *plan, unsigned most)
{
	unsigned least[RT_PARTITIONS_MAX] = { 0 };
	bool alone = true; /* each partition passes alone */
	int r = find_chained_least(plan, most);

	for (size_t i = 0; i < plan->set->n_partitions; i++) {
		least[i] = plan->partitions[i].least <= most ? plan->partitions[i].least : 0;
		alone &= least[i] > 0;
	}
	if (r >= 0)
		r = rt_fit(plan->gpu, plan->set, least, &plan->layout);
	if (r < 0 && r != -ENOSPC)
		return r;
	if (r < 0) {
		memset(plan->layout.places, 0, sizeof(plan->layout.places));
		plan->layout.n = 0;
	}
	if (r < 0 || !alone)
		plan->result = RT_REJECTED;
	return 0;
}

/* From the jitter of each task alone up to the least that holds for all: chains of partitions that wait
 * for each other can have none. */
static int judge_all(struct rt_plan *plan, unsigned most)
{
	const struct rt_set *set = plan->set;
	unsigned round = 0;
	int r = 0;

	for (size_t i = 0; i < set->n_tasks; i++)
		plan->tasks[i].jitter = set->tasks[i].jitter;
	do
		for (size_t i = 0; r >= 0 && i < set->n_partitions; i++) {
			unsigned cus = plan->layout.places[i].effective;

			plan->partitions[i].placed = cus > 0;
			plan->partitions[i].most_work = bound_work_within(
				&plan->partitions[i].bound, rt_plan_allowed(plan, i));
			r = judge_partition(plan, i, cus > 0 ? cus : most);
		}
	while (r >= 0 && spread_jitter(plan) && ++round < JITTER_ROUNDS);
	for (size_t i = 0; round == JITTER_ROUNDS && i < set->n_tasks; i++) {
		plan->partitions[set->tasks[i].partition].passes = false;
		set_response(plan, i, BOUND_NONE);
	}
	for (size_t i = 0; r >= 0 && i < set->n_partitions; i++) {
		if (!plan->partitions[i].passes)
			plan->result = RT_REJECTED;
		r = judge_growth(plan, i);
	}
	return r;
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

int rt_judge(struct rt_plan *plan, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	unsigned most = rt_fit_most(plan->gpu);
	int r;

	plan->preempts = plan->gpu->scheduler != SCHEDULER_MES;
	plan->changed_queues = set->changed_queues != RT_UNSET ? set->changed_queues
							       : queues_of_others(set, plan->gpu);
	find_margin(plan);
	r = check_preemption(plan, problem, size);
	if (r >= 0)
		r = check_pipes(plan, problem, size);
	for (size_t i = 0; r >= 0 && i < set->n_partitions; i++)
		make_bound(plan, i, &plan->partitions[i]);
	for (size_t i = 0; i < set->n_tasks; i++)
		plan->tasks[i].jitter = set->tasks[i].jitter;
	if (r >= 0)
		r = place_all(plan, most);
	return r < 0 ? r : judge_all(plan, most);
}
