/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A plan: whether a task set meets its deadlines on a GPU, on which CUs, and with which slack.
 *
 *	set, set-file	the file
 *	delay	what delays jobs beside others of their partition
 *	rt-plan, fit, margin	the CUs of each partition, and their place on the GPU
 *	demand	the jobs of one partition, with offsets, and with
 *	bound, dispatch	the arithmetic of the proof: fifo, policies
 *	reason, assume, show	sentences and output
 *
 * rt-plan calls these in this order. watch compares a plan with what happens; measure fills in the file.
 */

#include <string.h>

#include "client/rt/bound.h"
#include "client/rt/set.h"
#include "core/mask/cuset.h"
#include "core/mask/gpu-info.h"
#include "core/policy/result.h"

/* ---- places --------------------------------------------------------------------------------- */

/*
 * Places partitions on an empty GPU with the daemon's own arbiter, one after the other: the result
 * is what gpuarbd grants to the same requests in that order.
 */

/* The request for one partition; the command line of `run` is made from it. */
struct rt_ask {
	unsigned least;   /* the fewest effective CUs; 0: do not place it */
	unsigned cus;     /* the CUs to aim at */
	unsigned engines; /* number of shader engines; 0: any */
};

struct rt_place {
	struct rt_ask ask;
	struct cuset set;
	unsigned cus, effective; /* 0: not placed */
	uint32_t engines;        /* one bit each */
};

struct rt_layout {
	struct rt_place places[RT_PARTITIONS_MAX]; /* by partition */
	size_t order[RT_PARTITIONS_MAX];           /* in which the leases are requested */
	size_t n;
	bool any_order;    /* they fit in any order */
	char why[512];     /* they do not fit: the refusal of the arbiter */
	enum reason lacks; /* the reason of that refusal */
};

/*
 * Places all partitions whose least[] is not 0: with whole shader engines if the partition shares
 * none, else with the fewest CUs, and with few shader engines in total. Tries up to RT_ORDERS_MAX
 * orders, the largest partitions first. The daemon places one lease after the other, so a placement
 * can exist that no order leads to. 0; -ENOSPC with `why`; -ENOMEM.
 */
#define RT_ORDERS_MAX 720U
int rt_fit(const struct gpu_info *gpu, const struct rt_set *set, const unsigned *least,
	   struct rt_layout *ret);

/* The most effective CUs of one partition that is alone on the GPU. */
unsigned rt_fit_most(const struct gpu_info *gpu);

/* ---- the plan ------------------------------------------------------------------------------- */

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

/* Adds reasons: why partitions that pass do not fit, and why tasks do not pass. */
void rt_plan_reason(struct rt_plan *plan);

/* Adds the sentences. -ENOMEM. */
int rt_plan_assume(struct rt_plan *plan);

/* The longest response that all tasks of the partition allow. */
uint64_t rt_plan_allowed(const struct rt_plan *plan, size_t partition);

/* ---- the jobs of one partition -------------------------------------------------------------- */

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

/* ---- for callers ---------------------------------------------------------------------------- */

/* By the names in the set, then by those of the GPUs or profiles; no name: the only one. n: none. */
size_t rt_gpu_find(const struct rt_gpu *gpus, size_t n, const char *name);

/* 0 whatever the result is; -ENOMEM; -EINVAL with an error in problem: the file lacks a key that
 * a GPU needs, or a partition is on none of the GPUs. set must outlive the plan. */
int rt_plan_make(const struct rt_set *set, const struct rt_gpu *gpus, size_t n_gpus,
		 struct rt_plan **ret, char *problem, size_t size);
struct rt_plan *rt_plan_free(struct rt_plan *plan);
DEFINE_CLEANUP(struct rt_plan *, rt_plan_free)

/* Prints a plan, and the lines of policy and of a shell that put it into effect. */
struct command;
void rt_show_text(const struct command *command, const struct rt_plan *plan);
void rt_show_json(const struct rt_plan *plan);
