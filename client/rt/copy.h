/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copies of jobs by SDMA engines. Neither the driver nor the firmware documents which engine serves a
 * queue, nor in which order an engine serves its queues: all copies of a GPU share one engine here, which serves
 * them in any order and in parts, but never idles while one waits. A partition runs one job at a time,
 * so its own copies never meet. The proof is in gpuarbctl-rt(1).
 */

#include "client/rt/plan.h"

/* Finds how long the copies of one job of each task take, with all that they wait for. */
void copy_find(struct rt_plan *plan);
