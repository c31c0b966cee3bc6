/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One partition as it may behave, explored whole: a server in steps of a microsecond, with up to
 * three tasks. At each moment anything may happen that the model of gpuarbctl-rt(1) allows: a
 * release as soon as the period is over or later, a job ready within its jitter, host time
 * before the queue or after the end, ties in any order, an end after any time up to the
 * longest, changes of masks told and applied when they may be, other standstill wherever as
 * much of it is left, an activation that takes any time that it may. Every state that can be
 * reached is looked at once. Times are whole: a miss between two steps is not looked for.
 */

#include <stdbool.h>
#include <stddef.h>

#define RT_MODEL_TASKS 3U
#define RT_MODEL_TIME 15U /* the longest period */
#define RT_MODEL_ONCE 2U

struct rt_model {
	size_t n_tasks;
	struct {
		unsigned period, deadline, jitter, longest;
	} task[RT_MODEL_TASKS];
	unsigned host;
	unsigned interval, queues; /* of paced changes, each queue one step; queues 0: none */
	unsigned once, window;     /* so many steps of other standstill in a window; 0: none */
	unsigned activation;       /* 0: active from the start */
};

struct rt_seen {
	bool missed;
	bool cut;                       /* not all was explored: standstill piles up */
	unsigned worst[RT_MODEL_TASKS]; /* from release to notice, of those that were in time */
	size_t states;
};

/* Stops at the first miss. */
void rt_model_explore(const struct rt_model *model, struct rt_seen *ret);
