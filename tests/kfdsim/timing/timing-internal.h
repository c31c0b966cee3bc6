/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the timing model share. */

#include <stddef.h>

#include "kfdsim/timing/timing.h"

#define TIMING_PAIRS (TIMING_XCCS * TIMING_ENGINES) /* one bit each in a uint64_t */
#define TIMING_NEVER UINT64_MAX
#define TIMING_WAVE 64U /* threads that come and go together */

/* How much block times differ, in thousandths either way. */
#define TIMING_SPREAD 300U

/* While waves are saved and restored nothing runs. Assumed, not measured: the 60 CUs of a
 * Radeon VII hold some 20 MB of registers and LDS, which go out and in at 1 TB/s, and the
 * firmware's own time. */
#define TIMING_SWITCH_NS UINT64_C(100000)

struct timing_queue;

/* A block on a CU. */
struct timing_block {
	uint64_t begin, end;
	struct timing_queue *queue;
	uint16_t pair;
	uint8_t cu;
};

/* By end, a binary heap (timing-heap.c). There is room for all that fit on the GPU. */
struct timing_heap {
	struct timing_block *blocks;
	size_t n, max;
};

/* What one XCC has of a queue's dispatch. Each XCC has a dispatcher, which hands out in order
 * and waits at one engine for each queue. */
struct timing_run {
	struct timing_queue *queue;
	uint32_t left;   /* blocks not handed out yet */
	uint64_t *saved; /* of those that were taken off the CUs: what they still need */
	uint32_t n_saved;
	uint32_t slots;  /* blocks that its CUs hold at a time */
	unsigned pair;   /* whose turn it is */
	bool waiting;    /* in the list of that pair */
	uint64_t served; /* when it last got a place: turns, not time */
	uint64_t ready;  /* when its dispatcher has sent the block before on its way */
	struct timing_run *next;
};

struct timing_queue {
	uint64_t key, process;
	unsigned level;                 /* of its pipe: 0 low, 1, 2 high */
	uint32_t enabled[TIMING_PAIRS]; /* CUs that it may use and that are there */
	bool mapped;                    /* has a hardware queue slot in this turn */
	bool chosen;                    /* for the turn that begins */
	bool busy, done;                /* a dispatch runs; it ended and nobody was told */
	uint64_t end;                   /* done: when */
	uint64_t last_end;              /* of the blocks on CUs */
	uint32_t resident;
	uint32_t threads; /* of a block, in whole waves */
	uint64_t block_ns;
	bool exact;
	uint32_t bundle;        /* blocks that go as one */
	struct timing_ran *ran; /* NULL: it is not asked for */
	size_t n_ran;
	struct timing_run runs[TIMING_XCCS];
	uint64_t *saved;           /* memory of all runs' saved */
	struct timing_queue *next; /* those of a process together */
};

struct timing {
	unsigned xccs, engines, cu_threads, queue_slots, process_slots;
	bool mes;
	uint64_t block_ns;
	uint64_t now, stopped; /* nothing runs before */
	uint64_t random, serial;
	uint32_t cus[TIMING_PAIRS];
	uint16_t room[TIMING_PAIRS][32]; /* threads free, by CU */
	uint8_t last[TIMING_PAIRS];      /* the CU that had a block last */
	struct timing_run *waiting[TIMING_PAIRS];
	unsigned users; /* queues with a block on a CU */
	unsigned n_done;
	struct timing_heap heap;
	struct timing_queue *queues;
	struct timing_queue *cursor; /* turns: the first of the next; NULL: the first of all */
	uint64_t turn_end;           /* NEVER: all are mapped */
};

/* ---- timing-heap.c ---- */
int timing_heap_init(struct timing_heap *heap, size_t max);
void timing_heap_push(struct timing_heap *heap, const struct timing_block *block);
struct timing_block timing_heap_pop(struct timing_heap *heap);
/* Puts it in order again after blocks were changed in place. */
void timing_heap_order(struct timing_heap *heap);

static inline unsigned timing_first_pair(const struct timing *t, unsigned xcc)
{
	return xcc * t->engines;
}

/* ---- timing-dispatch.c ---- */
bool timing_next_pair(const struct timing *t, const struct timing_queue *queue, unsigned xcc,
		      unsigned *pair);
void timing_wait_at(struct timing *t, struct timing_run *run);
void timing_wait_no_more(struct timing *t, struct timing_run *run);
/* Hands out what can be, starting at pairs where there may be new room. */
void timing_deal(struct timing *t, uint64_t pairs);
#define TIMING_ALL(t) (UINT64_MAX >> (TIMING_PAIRS - (t)->xccs * (t)->engines))
void timing_block_ended(struct timing *t, const struct timing_block *block);

/* ---- timing-kernel.c ---- */
int timing_start(struct timing *t, struct timing_queue *queue, const struct timing_kernel *kernel);
void timing_forget(struct timing *t, struct timing_queue *queue); /* the dispatch */
bool timing_all_out(const struct timing_queue *queue);            /* no block is to be handed out */
/* Waits for places again, where its mask or its being mapped changed. */
void timing_enter(struct timing *t, struct timing_queue *queue);
/* Waits no more; its blocks are taken off the CUs and saved. */
void timing_leave(struct timing *t, struct timing_queue *queue);
uint64_t timing_least(const struct timing *t, const struct timing_queue *queue);
/* Nothing of the queue, or of all with NULL, runs for so long. */
void timing_stop(struct timing *t, struct timing_queue *queue, uint64_t ns);

/* ---- timing-turns.c ---- */
void timing_turns_changed(struct timing *t); /* a queue came or went */
void timing_turn_next(struct timing *t);
void timing_cursor_skip(struct timing *t, const struct timing_queue *queue); /* it goes */
