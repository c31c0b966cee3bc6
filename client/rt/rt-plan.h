/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a task set keeps its deadlines on a GPU, on which CUs, and by how much. */

#include "client/rt/bound.h"
#include "client/rt/fit.h"
#include "client/rt/wcet.h"

enum rt_result {
	RT_ACCEPTED,
	RT_CONDITIONAL, /* proved under conditions that nobody has stated */
	RT_REJECTED,
};

const char *rt_result_name(enum rt_result result); /* accepted conditional rejected */

struct rt_task_plan {
	bool meets;
	uint64_t wcet;
	enum rt_source source;
	uint64_t bound;   /* response, jitter and, where it counts, activation; BOUND_NONE */
	int64_t slack;    /* deadline - bound */
	uint64_t growth;  /* what its execution time may grow by, alone, and still pass */
	char reason[320]; /* of one that does not: why, and what would do */
};

struct rt_partition_plan {
	bool passes;
	bool placed;        /* else it is judged on the most CUs that one can have */
	unsigned least;     /* effective CUs without which it does not pass; 0: none pass */
	unsigned effective; /* what the rest is said of */
	struct bound bound;
	uint64_t activation; /* RT_UNSET: the lease is active from the start */
	uint64_t work;       /* of one job of each task */
	uint64_t response;   /* BOUND_NONE */
	char reason[320];
};

struct rt_plan {
	const struct rt_set *set;
	const struct gpu_info *gpu;
	enum rt_result result;
	bool preempts; /* before gfx11: mask changes stop everybody */
	uint64_t changed_queues;
	struct rt_partition_plan partitions[RT_PARTITIONS_MAX];
	struct rt_task_plan *tasks; /* as in the set */
	struct rt_layout layout;
	char reason[512]; /* of a set that is rejected as a whole, though each part passes alone */

	char **assumptions, **conditions; /* sentences, owned */
	size_t n_assumptions, n_conditions;
};

/* 0 whatever the result; -ENOMEM; -EINVAL with the sentence in problem where the file does not
 * say what this GPU needs. set and gpu have to outlive it. */
int rt_plan_make(const struct rt_set *set, const struct gpu_info *gpu, struct rt_plan **ret,
		 char *problem, size_t size);
struct rt_plan *rt_plan_free(struct rt_plan *plan);
DEFINE_CLEANUP(struct rt_plan *, rt_plan_free)

/* Of the longest response that the tasks of a partition allow. */
uint64_t rt_plan_allowed(const struct rt_set *set, size_t partition);
