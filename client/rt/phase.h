/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Responses of tasks that are released at offsets of one clock: task i at offset[i] + k x period, for
 * every k. Never longer than those of dispatch.h, which hold for all offsets. The proofs are in
 * gpuarbctl-rt(1).
 */

#include "client/rt/dispatch.h"
#include "client/rt/set.h"

/* Windows times jobs in each, of which more would take too long. */
#define PHASE_STEPS_MAX 200000U
#define PHASE_FIFO_TASKS 64U

/* offsets[i] RT_UNSET: task i is released at any time, which only fifo permits. The responses hold if
 * each keeps its deadline. 1; 0: there is no such analysis, or it would take too long; -ENOMEM. */
int phase_respond(const struct bound *bound, enum rt_policy policy, const struct rt_demand *tasks,
		  const uint64_t *offsets, size_t n, uint64_t *ret);
