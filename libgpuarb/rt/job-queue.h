/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The jobs that wait for a stream, and which of them runs next. Pure; times are microseconds. */

#include <stdbool.h>

#include "libgpuarb/rt/gpuarb-rt.h"

struct gpuarb_rt_task {
	struct gpuarb_rt *rt;
	struct gpuarb_rt_task *next; /* of all tasks */
	char name[64];
	uint64_t period, deadline, budget, bound; /* budget, bound 0: none */
	uint64_t paid_until;                      /* by budgets, for the jobs that are done */
	uint64_t released;                        /* of the job that was submitted last */
	struct gpuarb_rt_statistics statistics;
};

struct job {
	struct job *next; /* in the order of submission */
	struct gpuarb_rt_task *task;
	gpuarb_rt_function function;
	void *userdata;
	uint64_t release;
};

struct job_queue {
	uint32_t policy;
	struct job *first;
	size_t n;
};

/* Appends a job, which the queue owns from then on. */
void job_queue_add(struct job_queue *queue, struct job *job);

/* Takes the job that runs next. NULL: none may run before *ret_when, UINT64_MAX: none waits. */
struct job *job_queue_take(struct job_queue *queue, uint64_t now, uint64_t *ret_when);

/* Counts a job that has run from `begin` to `end`. */
void job_count(const struct job *job, uint64_t begin, uint64_t end);
