/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/rt/job-queue.h"

void job_queue_add(struct job_queue *queue, struct job *job)
{
	struct job **end = &queue->first;

	while (*end)
		end = &(*end)->next;
	job->next = NULL;
	*end = job;
	queue->n++;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The release that the plan counts: not before the budgets of the task have paid for its last job. */
static uint64_t release_of(const struct job *job)
{
	return larger(job->release, job->task->paid_until);
}

/* Of two jobs that may run; the later one was submitted after the earlier one. */
static bool overtakes(const struct job_queue *queue, const struct job *later,
		      const struct job *earlier)
{
	if (later->task == earlier->task)
		return false;
	switch (queue->policy) {
	case GPUARB_RT_NP_EDF:
		return release_of(later) + later->task->deadline <
		       release_of(earlier) + earlier->task->deadline;
	case GPUARB_RT_NP_DM: return later->task->deadline < earlier->task->deadline;
	default: return false;
	}
}

struct job *job_queue_take(struct job_queue *queue, uint64_t now, uint64_t *ret_when)
{
	struct job **best = NULL, *job;

	*ret_when = UINT64_MAX;
	for (struct job **p = &queue->first; *p; p = &(*p)->next) {
		uint64_t when = release_of(*p);

		if (when > now)
			*ret_when = when < *ret_when ? when : *ret_when;
		else if (!best || overtakes(queue, *p, *best))
			best = p;
	}
	if (!best)
		return NULL;
	job = *best;
	*best = job->next;
	queue->n--;
	return job;
}

/* In whole periods, and each job alone: then at no time has the task executed for longer than the plan
 * counts, but for the overrun of its last job. */
static void pay(const struct job *job, uint64_t execution)
{
	struct gpuarb_rt_task *task = job->task;
	uint64_t budgets;

	if (task->budget == 0)
		return;
	budgets = execution / task->budget + (execution % task->budget > 0);
	if (budgets > UINT32_MAX)
		budgets = UINT32_MAX; /* times GPUARB_RT_USEC_MAX is no overflow */
	task->paid_until = release_of(job) + budgets * task->period;
}

void job_count(const struct job *job, uint64_t begin, uint64_t end)
{
	struct gpuarb_rt_statistics *ret = &job->task->statistics;

	ret->jobs++;
	ret->waiting--;
	ret->last_response_usec = end - job->release;
	ret->last_execution_usec = end - begin;
	ret->longest_response_usec = larger(ret->longest_response_usec, end - job->release);
	ret->longest_execution_usec = larger(ret->longest_execution_usec, end - begin);
	ret->misses += end - job->release > job->task->deadline;
	ret->overruns += job->task->budget > 0 && end - begin > job->task->budget;
	ret->violations += job->task->bound > 0 && end - job->release > job->task->bound;
	pay(job, end - begin);
}
