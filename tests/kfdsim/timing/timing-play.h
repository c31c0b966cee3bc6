/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Programs that were measured on real GPUs, played on the timing model. */

#include "kfdsim/timing/timing.h"

#define MATRIX_1024 ((struct timing_kernel){ .blocks = 1024, .threads = 1024 })
#define MATRIX_256 ((struct timing_kernel){ .blocks = 4096, .threads = 256 })

/* A thread that launches one kernel after the other on a stream with a CU mask, bits as KFD
 * deals them over the engines. */
struct player {
	uint64_t mask;
	struct timing_kernel kernel;
};

#define PLAY_PLAYERS 4U
#define PLAY_TIMES 11U /* an odd number: the median is one of them */
#define PLAY_CUS 60U

/* Radeon VII: 4 shader engines of 15 CUs. Players run beside each other; the first one's
 * times, launch to end, are taken so many times: their median in ns. -ENOMEM. */
int play_loops(const struct player *players, unsigned n, unsigned times, uint64_t *ret);

/* Ranks that do steps of one kernel each, and each step needs all to have done the one
 * before. */
struct ranks {
	unsigned ranks, queues, steps; /* queues: of a rank, one at work at a time */
	unsigned queue_slots, process_slots;
	uint64_t step_ns; /* of a rank's kernel, among so many ranks */
};

/* How long they take, in ns. -EINVAL, -ENOMEM. */
int play_ranks(const struct ranks *ranks, uint64_t *ret);
