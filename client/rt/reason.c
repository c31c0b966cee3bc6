/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- side by side ------------------------------------------------------------------------- */

/* Would they fit if engines were shared? */
static bool fits_sharing_engines(const struct rt_plan *plan, const unsigned *least)
{
	struct rt_partition *partitions = calloc(plan->set->n_partitions, sizeof(*partitions));
	struct rt_layout *layout = calloc(1, sizeof(*layout));
	struct rt_set set = *plan->set;
	bool fits = false;

	set.partitions = partitions;
	for (size_t i = 0; partitions && i < set.n_partitions; i++) {
		partitions[i] = plan->set->partitions[i];
		partitions[i].isolation = ISOLATION_CU;
		partitions[i].alone = false;
	}
	if (partitions && layout)
		fits = rt_fit(plan->gpu, &set, least, layout) == 0;
	free(partitions);
	free(layout);
	return fits;
}

void rt_reason_fit(struct rt_plan *plan, const unsigned *least)
{
	const char *advice = "take a GPU with more shader engines, or fewer partitions";

	if (plan->layout.lacks == REASON_QUEUES || plan->layout.lacks == REASON_PROCESSES)
		advice =
			"ask for fewer (queues = N, processes = N), or put tasks of several partitions "
			"into one";
	else if (fits_sharing_engines(plan, least))
		advice = "with isolation = cu in each partition they would, sharing shader engines";
	snprintf(plan->reason, sizeof(plan->reason),
		 "the partitions do not fit side by side: %s; %s", plan->layout.why, advice);
}

/* ---- one task ----------------------------------------------------------------------------- */

/* With nobody else in its partition. */
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
			 "it passes on %u CUs or more, which this GPU does not have for "
			 "one lease",
			 partition->least);
	else if (partition->bound.latency > 0 && response != BOUND_NONE &&
		 response + task->jitter <= task->deadline)
		snprintf(buf, size,
			 "but for %llu us of activation it would pass: release the first "
			 "job when the lease is granted (waits-for-grant = yes)",
			 (unsigned long long)partition->bound.latency);
	else if (t->bound <= task->period)
		snprintf(buf, size, "a deadline of %llu us would do", (unsigned long long)t->bound);
	else if (plan->set->partitions[task->partition].n_tasks > 1 && passes_alone(plan, i))
		snprintf(buf, size, "in a partition of its own it would pass on so many");
	else
		snprintf(buf, size,
			 "no deadline within its period would do: it needs a period of "
			 "%llu us, or shorter execution times",
			 (unsigned long long)t->bound);
}

void rt_reason_task(struct rt_plan *plan, size_t i)
{
	const struct rt_task *task = &plan->set->tasks[i];
	const struct rt_partition_plan *partition = &plan->partitions[task->partition];
	struct rt_task_plan *ret = &plan->tasks[i];
	char advice[192];

	if (ret->wcet == RT_UNSET) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "measured from %u CUs on only, and this GPU "
			 "has %u for one lease: measure it on that many",
			 task->points[0].cus, partition->effective);
		return;
	}
	if (partition->work == RT_UNSET) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "not known: another task of its partition "
			 "was not measured on so few CUs as this GPU has for one lease");
		return;
	}
	if (ret->bound == BOUND_NONE) {
		snprintf(ret->reason, sizeof(ret->reason),
			 "changes of masks stop the GPU for %llu us "
			 "and may come every %llu us: name fewer changed-queues, or make "
			 "activate-min-interval longer",
			 (unsigned long long)partition->bound.change,
			 (unsigned long long)partition->bound.interval);
		return;
	}
	advise(plan, i, advice, sizeof(advice));
	snprintf(ret->reason, sizeof(ret->reason), "%lld us past its deadline on %u CUs, %s; %s",
		 (long long)-ret->slack, partition->effective,
		 partition->placed ? "where its partition is"
				   : "the most that this GPU has for one "
				     "lease",
		 advice);
}
