/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The longest responses of the tasks of a partition whose dispatcher chooses the next job: the one
 * with the earliest deadline (np-edf), or that of the task with the shortest one (np-dm). A job that
 * runs is never preempted. Pure; times are microseconds. The proofs are in gpuarbctl-rt(1).
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/rt/bound.h"

struct rt_demand {
	uint64_t cost; /* of one job: execution with margin, and host time */
	uint64_t period, deadline, jitter;
};

/* From the release of a job until its program knows that it is done, for each task. BOUND_NONE: jobs
 * and standstill take more than DISPATCH_LOAD_MAX of the time, or the busy period is longer than an
 * hour or has more than DISPATCH_POINTS_MAX deadlines. -ENOMEM. */
#define DISPATCH_LOAD_MAX 0.9999
#define DISPATCH_BUSY_MAX (UINT64_C(3600) * 1000000)
#define DISPATCH_POINTS_MAX 100000U
int dispatch_edf(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret);
int dispatch_dm(const struct bound *bound, const struct rt_demand *tasks, size_t n, uint64_t *ret);

/* From release to notice in the order of submission, if none exceeds a deadline, and no deadline a
 * period. */
void dispatch_fifo(const struct bound *bound, const struct rt_demand *tasks, size_t n,
		   uint64_t *ret);

/* Whether jobs and standstill take more than DISPATCH_LOAD_MAX of the time: then no busy period of use ends. */
bool dispatch_is_overloaded(const struct bound *bound, const struct rt_demand *tasks, size_t n);

/* The longest time in which the server is never without a job; BOUND_NONE. */
uint64_t dispatch_busy(const struct bound *bound, const struct rt_demand *tasks, size_t n);
