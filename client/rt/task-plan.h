/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A plan: whether a task set meets its deadlines on a GPU, on which CUs, and with which slack.
 *
 *	set, set-file, set-value	the file
 *	disturbance, copy	what delays jobs beside others of their partition
 *	judge, fit, margin	the CUs of each partition, and their place on the GPU
 *	demand	the jobs of one partition, with
 *	bound, dispatch, phase	the arithmetic of the proof: fifo, policies, offsets
 *	reason, assume, show	sentences and output
 *
 * rt-plan calls these in this order. watch compares a plan with what happens; measure fills in the file.
 */

#include <string.h>

#include "client/rt/bound.h"
#include "client/rt/fit.h"
#include "client/rt/set.h"

enum rt_result {
	RT_ACCEPTED,
	RT_CONDITIONAL, /* proved under conditions that the file does not state */
	RT_REJECTED,
};

#define RT_GROWTH_TASKS 32U

/* What ends the growth of an execution time: one microsecond more would be too late for a deadline; or jobs and
 * standstill would take all of the time; or no bound would be found. */
enum rt_growth_limit { RT_GROWTH_DEADLINE, RT_GROWTH_UTILISATION, RT_GROWTH_NO_BOUND };

struct rt_task_plan {
	bool meets;
	uint64_t jitter; /* its own, and the bound of the task that it comes after */
	uint64_t wcet;
	uint64_t offset; /* of its chain; RT_UNSET: it is released at any time */
	uint64_t copies; /* of one job, with what they wait for; BOUND_NONE */
	enum rt_source source;
	uint64_t bound; /* response, jitter and, if it counts, activation; BOUND_NONE */
	int64_t slack;  /* deadline - bound */
	/* The longest execution of a job as a dispatcher measures it: copies, margin, host time and standstill
	 * included, the wait for other jobs not. BOUND_NONE: it does not meet its deadline. */
	uint64_t budget;
	/* By which its execution time alone may grow; BOUND_NONE: unknown, the set has chains, its
	 * partition uses offsets, or it has a policy and more than RT_GROWTH_TASKS tasks. */
	uint64_t growth;
	enum rt_growth_limit growth_limit;
	char reason[320]; /* of a task that does not: the reason, and what would help */
};

/* Whether the offsets of its tasks shorten its bounds. */
enum rt_offsets {
	RT_NO_OFFSETS,
	RT_OFFSETS_USED,
	RT_OFFSETS_UNUSED, /* its bounds hold for any offsets */
};

struct rt_partition_plan {
	size_t gpu;
	bool passes;
	enum rt_offsets offsets;
	bool copies;        /* its jobs copy */
	bool placed;        /* false: judged on the most CUs that one lease can have */
	unsigned least;     /* the fewest effective CUs on which it passes; 0: none */
	unsigned effective; /* the effective CUs of all figures below */
	struct bound bound;
	int64_t most_work;   /* with fifo, that keeps all deadlines; -1: none */
	uint64_t activation; /* RT_UNSET: the lease is active from the start */
	uint64_t work;       /* sum of one job of each task */
	uint64_t response;   /* the longest of its tasks, from ready to notice; BOUND_NONE */
	uint64_t margin, changes, standstill; /* parts of the response; BOUND_NONE */
};

/* A GPU of a set. */
struct rt_gpu {
	char name[RT_GPU_NAME_MAX]; /* in the set */
	struct gpu_info info;       /* its name is that of the GPU, or of the profile */
	char target[16];            /* gfx906 */
	bool here;                  /* one of this machine */
	char memory[48]; /* GPUs with the same value share it; "": unknown, or none does */

	/* Of those that gpuarbd observes on it: processes without a lease, and leases that are not
	 * capped, or not verified. */
	size_t unmanaged, uncapped, unverified;
};

struct rt_gpu_plan {
	struct rt_gpu gpu;
	size_t n_partitions;
	uint64_t queues;     /* of its partitions */
	bool preempts;       /* before gfx11: a mask change stops all queues */
	uint64_t preemption; /* of the set, or calibrated; RT_UNSET */
	uint64_t changed_queues;
	struct margin margin; /* row "": given by the user */
	unsigned neighbours;  /* leases that run at the same time as a partition */
	unsigned most;        /* effective CUs of one partition that is alone */
};

struct rt_plan {
	const struct rt_set *set;
	struct rt_gpu_plan gpus[RT_GPUS_MAX];
	size_t n_gpus;
	enum rt_result result;
	struct rt_partition_plan partitions[RT_PARTITIONS_MAX];
	struct rt_task_plan *tasks; /* as in the set */
	struct rt_layout layout;    /* of all GPUs; empty with `why`: the partitions do not fit */
	size_t crowded;             /* the GPU on which they do not */
	char reason[768]; /* of a set that is rejected although each partition passes alone */

	char **assumptions, **conditions; /* sentences, owned */
	size_t n_assumptions, n_conditions;
};

static inline const struct rt_gpu_plan *rt_plan_gpu(const struct rt_plan *plan, size_t partition)
{
	return &plan->gpus[plan->partitions[partition].gpu];
}

/* Do two GPUs, or one with itself, use the same memory? */
static inline bool rt_plan_shares_memory(const struct rt_plan *plan, size_t a, size_t b)
{
	const char *memory = plan->gpus[a].gpu.memory;

	return a == b || (*memory && strcmp(memory, plan->gpus[b].gpu.memory) == 0);
}

/* Other partitions of the set that use the memory of one on this GPU. */
static inline size_t rt_plan_beside(const struct rt_plan *plan, size_t gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_gpus; i++)
		if (rt_plan_shares_memory(plan, gpu, i))
			n += plan->gpus[i].n_partitions;
	return n - (plan->gpus[gpu].n_partitions > 0);
}

/* ---- steps that fill it in ------------------------------------------------------------------ */

/* Finds what delays jobs beside others of their partition: standstill of the GPU, and the activation.
 * -EINVAL with an error in problem. */
int rt_plan_disturb(struct rt_plan *plan, char *problem, size_t size);

/* Whether changes of masks stop the partition. Activations of other leases count only then. */
bool rt_plan_masks_change(const struct rt_plan *plan, size_t partition);

/* Of other leases, as the plan counts them: where the set states no number, each other partition of the GPU that
 * starts inactive is activated once. */
struct rt_often rt_plan_activations(const struct rt_plan *plan, size_t partition);

/* Finds how long the copies of one job of each task take, with all that they wait for. */
void rt_plan_copy(struct rt_plan *plan);
