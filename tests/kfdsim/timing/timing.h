/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A model of how long dispatches take on one GPU, labelled «model» wherever it is shown. Pure:
 * time comes as an argument, in nanoseconds, and never goes back.
 *
 * What it is made of, and how well it fits: the comment in timing.c and test/test-timing-data.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"

#define TIMING_XCCS 8U
#define TIMING_ENGINES 8U
#define TIMING_ARRAYS 2U

struct timing;

struct timing_gpu {
	unsigned xccs, engines;
	/* CUs that work, at most 16 each: the first bits of an array's half word. */
	uint8_t active[TIMING_XCCS][TIMING_ENGINES][TIMING_ARRAYS];
	unsigned queue_slots, process_slots; /* 0: without end */
	bool mes;            /* gfx11 and later: a change preempts one queue, not all */
	unsigned cu_threads; /* that a CU holds; 0: Radeon VII's 2560 */
	uint64_t block_ns;   /* of a block on a CU full of its like; 0: Radeon VII's */
};

/* A work-group dispatch, what a kernel is to the dispatcher. */
struct timing_kernel {
	uint32_t blocks;
	uint32_t threads;  /* of a block */
	uint64_t block_ns; /* of a block alone; 0: the GPU's */
	bool exact;        /* each block takes as long as that, whoever is beside it */
	bool places;       /* for timing_ran() */
};

/* Where some blocks of a dispatch ran, and when they were last put there. */
struct timing_ran {
	uint8_t xcc, engine, cu; /* cu: bit of the engine's word */
	uint32_t blocks;
	uint64_t begin_ns, end_ns;
};

/* -EINVAL: a shape out of range, or no CU at all. -ENOMEM. */
int timing_new(const struct timing_gpu *gpu, struct timing **ret);
struct timing *timing_free(struct timing *timing);
DEFINE_CLEANUP(struct timing *, timing_free)

/*
 * Makes or changes a queue. They are named by the caller's key, never 0. process: whose it is,
 * for turns among processes. engines: words as in the MQD, by XCC and shader engine: low 16
 * bits array 0; all ones: no mask; no CU on an XCC: it runs unmasked; no CU at all: its dispatches
 * never end (assumed: a comment of the driver). priority: 0..15, as KFD has it. Blocks that run stay where they are. On MES the queue is
 * preempted. -EINVAL: key 0. -ENOMEM.
 */
int timing_queue_set(struct timing *timing, uint64_t key, uint64_t process,
		     const uint32_t engines[TIMING_XCCS][TIMING_ENGINES], unsigned priority,
		     uint64_t now_ns);

/* Its dispatch is forgotten: it will not be told as ended. */
void timing_queue_drop(struct timing *timing, uint64_t key, uint64_t now_ns);

/* The run list was sent again: everything is preempted and goes on a while later. On MES
 * there is none: nothing happens. */
void timing_preempt(struct timing *timing, uint64_t now_ns);

/* One at a time for each queue: -EBUSY until timing_ended() has told of it. -ENOENT: no such
 * queue. -EINVAL: no blocks, or none of threads. -ENOMEM. */
int timing_dispatch(struct timing *timing, uint64_t key, const struct timing_kernel *kernel,
		    uint64_t now_ns);

/* Lets time pass until now. True and the key for a dispatch that has ended, *ret_end when it
 * did (<= now), oldest first; call again until false. */
bool timing_ended(struct timing *timing, uint64_t now_ns, uint64_t *ret_key, uint64_t *ret_end);

/* The blocks of the queue's last dispatch, in the order of their end, if its places were asked for. Valid until the
 * next one. *ret_n is 0: unknown. */
const struct timing_ran *timing_ran(const struct timing *timing, uint64_t key, size_t *ret_n);

/* The model's own time: that of the last call, or before it where the CPU cannot keep up. A
 * dispatch that was taken just now starts here. */
uint64_t timing_now(const struct timing *timing);

/* No dispatch ends before; it may be too early, but never by so much that asking again then
 * costs more than the blocks that ran meanwhile. UINT64_MAX: nothing runs that could end. */
uint64_t timing_next(const struct timing *timing);
