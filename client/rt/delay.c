/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdio.h>

#include "core/policy/settings.h"

/* Queues that do not belong to this set. */
static uint64_t queues_of_others(const struct rt_gpu_plan *gpu)
{
	uint64_t slots = gpu->gpu.info.queue_slots;

	return slots > gpu->queues ? slots - gpu->queues : 0;
}

/* Other partitions of the GPU, each of which may be activated once. */
static uint64_t activations_of_others(const struct rt_plan *plan, size_t partition)
{
	const struct rt_set *set = plan->set;
	uint64_t n = 0;

	for (size_t i = 0; i < set->n_partitions; i++)
		n += i != partition && set->partitions[i].start_inactive &&
		     plan->partitions[i].gpu == plan->partitions[partition].gpu;
	return n;
}

bool rt_plan_masks_change(const struct rt_plan *plan, size_t partition)
{
	return plan->set->borrowers && rt_plan_gpu(plan, partition)->preempts;
}

struct rt_often rt_plan_activations(const struct rt_plan *plan, size_t partition)
{
	struct rt_often activations = plan->set->activations;

	if (!rt_often_is_stated(&activations))
		activations.number = activations_of_others(plan, partition);
	return activations;
}

/* A preemption that times out; 0: the fault model of the set has none. */
static uint64_t timed_out(const struct rt_set *set)
{
	return set->preemption_timeout != RT_UNSET ? set->preemption_timeout : 0;
}

/* The worst case is a borrower that never acknowledges: see set_deadline() in core/change/share/lend.c
 * and next_due() in core/change/enforce/enforcement.c. At the end of the grace gpuarbd reports and
 * freezes the borrower, and one enforce-delay later kills it. The kernel then removes its
 * queues: by one preemption each, or by a reset of the GPU after its preemption time-out. The next
 * scan observes that the queues are gone. */
static uint64_t activation(const struct rt_plan *plan, size_t i)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[i];
	const struct rt_gpu_plan *gpu = rt_plan_gpu(plan, i);
	uint64_t removal = 0;

	if (!partition->start_inactive)
		return RT_UNSET;
	if (partition->activation != RT_UNSET)
		return partition->activation;
	if (gpu->preemption != RT_UNSET)
		removal = gpu->changed_queues * gpu->preemption;
	return set->daemon.activate_grace + set->daemon.enforce_delay +
	       max_u64(removal, timed_out(set)) + SCAN_WHILE_ENDING_USEC;
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
		often.rates = (struct bound_rates){
			{ { often.number, rt_set_longest_deadline(set, i) } }, 1
		};
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
	const struct rt_gpu_plan *gpu = rt_plan_gpu(plan, i);

	bound->change = gpu->changed_queues * gpu->preemption;
	add_events(set, i, rt_plan_activations(plan, i), 1, bound->change, BOUND_ACTIVATIONS,
		   bound);
}

static void make_bound(struct rt_plan *plan, size_t i)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[i];
	const struct rt_gpu_plan *gpu = rt_plan_gpu(plan, i);
	struct rt_partition_plan *ret = &plan->partitions[i];
	const struct rt_often timeouts = { .number = timed_out(set) > 0 };
	uint64_t host = partition->host_submission != RT_UNSET ? partition->host_submission : 0;
	struct bound *bound = &ret->bound;

	ret->activation = activation(plan, i);
	*bound = (struct bound){
		.margin_percent = gpu->margin.percent,
		.host = rt_partition_dispatches(partition) ? 0 : host, /* else part of each job */
		.interval = set->daemon.activate_min_interval,
	};
	if (partition->start_inactive && !partition->waits_for_grant)
		bound->latency = ret->activation;
	add_events(set, i, timeouts, 0, timed_out(set), BOUND_TIMEOUTS, bound);
	if (!gpu->preempts)
		return;
	if (rt_plan_masks_change(plan, i))
		add_borrowers(plan, i, bound);
	add_events(set, i, set->queue_changes, 0, gpu->preemption, BOUND_QUEUE_CHANGES, bound);
	add_earlier(set, bound);
}

/* ---- statements of the set that do not suit the GPU ---------------------------------------- */

/* A statement that the GPU contradicts. */
static int check_pipes(const struct rt_plan *plan, const struct rt_gpu_plan *gpu, char *problem,
		       size_t size)
{
	if (!plan->set->own_pipes || gpu->n_partitions <= gpu->gpu.info.pipes)
		return 0;
	snprintf(
		problem, size,
		"[taskset]: own-pipes = yes cannot be true: this set has %zu partitions on %s, and the "
		"GPU has %u pipes; use fewer partitions, or leave the key out",
		gpu->n_partitions, gpu->gpu.name, gpu->gpu.info.pipes);
	return -EINVAL;
}

/* Partitions of the set are neighbours, and their activations count; borrowers are neighbours with queues. */
static int check_counts(const struct rt_plan *plan, size_t gpu, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	const struct rt_gpu_plan *g = &plan->gpus[gpu];
	size_t beside = rt_plan_beside(plan, gpu);

	if (set->neighbours < beside) {
		snprintf(
			problem, size,
			"[taskset]: neighbours = %llu cannot be true: this set has %zu partitions on "
			"%s%s; use %zu or more, or leave the key out",
			ull(set->neighbours), beside + 1, g->gpu.name,
			beside >= g->n_partitions ? " and GPUs that share its memory" : "", beside);
		return -EINVAL;
	}
	if (set->borrowers && (set->neighbours == 0 || (g->preempts && set->changed_queues == 0))) {
		snprintf(
			problem, size,
			"[taskset]: %s = 0 cannot be true while a lease on %s borrows CUs: use 1 or "
			"more, or state that none does (borrowers = no; the default is yes)",
			set->neighbours == 0 ? "neighbours" : "changed-queues", g->gpu.name);
		return -EINVAL;
	}
	for (size_t i = 0; i < set->n_partitions; i++) {
		if (plan->partitions[i].gpu != gpu ||
		    set->activations.number >= activations_of_others(plan, i))
			continue;
		snprintf(
			problem, size,
			"[taskset]: activations = %llu cannot be true for [partition %s]: this set has "
			"other partitions on %s that start inactive, and are activated; use %llu or "
			"more, or leave the key out",
			ull(set->activations.number), set->partitions[i].name, g->gpu.name,
			ull(activations_of_others(plan, i)));
		return -EINVAL;
	}
	return 0;
}

/* A plan with preemptions needs their cost. */
static int check_preemption(const struct rt_plan *plan, const struct rt_gpu_plan *gpu,
			    char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	bool others = rt_often_is_stated(&set->queue_changes) && set->queue_changes.number > 0;

	if (!gpu->preempts || gpu->preemption != RT_UNSET || (!set->borrowers && !others))
		return 0;
	snprintf(problem, size,
		 "[taskset] has no preemption: on this GPU (before gfx11) a change of a mask or of "
		 "queues stops all queues for a time; measure that time (preemption = TIME)%s",
		 others ? "" : ", or state that no lease borrows CUs (borrowers = no)");
	return -EINVAL;
}

static int disturb_gpu(struct rt_plan *plan, size_t i, char *problem, size_t size)
{
	const struct rt_set *set = plan->set;
	struct rt_gpu_plan *gpu = &plan->gpus[i];
	unsigned calibrated = gpu->gpu.info.calibrated.preemption_usec;
	int r;

	gpu->preempts = gpu->gpu.info.scheduler != SCHEDULER_MES;
	gpu->preemption = set->preemption;
	if (set->preemption == RT_UNSET && calibrated > 0)
		gpu->preemption = calibrated;
	gpu->changed_queues = set->changed_queues != RT_UNSET ? set->changed_queues
							      : queues_of_others(gpu);
	if (gpu->n_partitions == 0)
		return 0;
	r = check_preemption(plan, gpu, problem, size);
	if (r >= 0)
		r = check_pipes(plan, gpu, problem, size);
	return r < 0 ? r : check_counts(plan, i, problem, size);
}

int rt_plan_disturb(struct rt_plan *plan, char *problem, size_t size)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < plan->n_gpus; i++)
		r = disturb_gpu(plan, i, problem, size);
	for (size_t i = 0; r >= 0 && i < plan->set->n_partitions; i++)
		make_bound(plan, i);
	return r;
}

/* ---- copies --------------------------------------------------------------------------------- */

/*
 * Copies are made by SDMA engines. Neither the driver nor the firmware documents which engine serves a
 * queue, nor in which order an engine serves its queues: all copies of a GPU share one engine here, which serves
 * them in any order and in parts, but never idles while one waits. A partition runs one job at a time,
 * so its own copies never meet. The proof is in gpuarbctl-rt(1).
 */

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
static uint64_t copy_time(const struct rt_plan *plan, const struct rt_task *task, uint64_t usec)
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
		uint64_t in = copy_time(plan, task, task->copy_in);
		uint64_t out = copy_time(plan, task, task->copy_out);

		plan->tasks[i].copies = in == BOUND_NONE || out == BOUND_NONE ? BOUND_NONE
									      : in + out;
	}
}
