/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A queue's dispatch: how it starts, is interrupted, and is forgotten. */

#include <errno.h>
#include <stdlib.h>

#include "kfdsim/timing/timing-internal.h"

#define BUNDLES_MAX 640U /* MM256 on a Radeon VII, 600 at a time, is not bundled */

bool timing_all_out(const struct timing_queue *queue)
{
	for (unsigned x = 0; x < TIMING_XCCS; x++)
		if (queue->runs[x].left + queue->runs[x].n_saved > 0)
			return false;
	return true;
}

/* How many blocks fit on an XCC's CUs at a time. */
static uint32_t slots(const struct timing *t, const struct timing_queue *queue, unsigned xcc)
{
	uint32_t cus = 0;

	for (unsigned e = 0; e < t->engines; e++)
		cus += (uint32_t)__builtin_popcount(queue->enabled[timing_first_pair(t, xcc) + e]);
	return cus * (t->cu_threads / queue->threads);
}

void timing_enter(struct timing *t, struct timing_queue *queue)
{
	uint64_t pairs = 0;

	if (!queue->busy || !queue->mapped)
		return;
	for (unsigned x = 0; x < t->xccs; x++) {
		struct timing_run *run = &queue->runs[x];

		run->slots = slots(t, queue, x);
		timing_wait_no_more(t, run);
		if (run->left + run->n_saved == 0)
			continue;
		if (!queue->enabled[run->pair] && !timing_next_pair(t, queue, x, &run->pair))
			continue;
		timing_wait_at(t, run);
		pairs |= UINT64_C(1) << run->pair;
	}
	timing_deal(t, pairs);
}

/* Takes the queue's blocks off the CUs; keep: to be put there again. */
static void take_off(struct timing *t, struct timing_queue *queue, bool keep)
{
	uint64_t now = max_u64(t->now, t->stopped);
	size_t n = 0;

	if (queue->resident == 0)
		return;
	for (size_t i = 0; i < t->heap.n; i++) {
		struct timing_block *block = &t->heap.blocks[i];
		struct timing_run *run = &queue->runs[block->pair / t->engines];

		if (block->queue != queue) {
			t->heap.blocks[n++] = *block;
			continue;
		}
		t->room[block->pair][block->cu] += (uint16_t)queue->threads;
		if (keep)
			run->saved[run->n_saved++] = block->end - now;
	}
	t->heap.n = n;
	timing_heap_order(&t->heap);
	queue->resident = 0;
	queue->last_end = 0;
	t->users--;
}

void timing_leave(struct timing *t, struct timing_queue *queue)
{
	for (unsigned x = 0; x < t->xccs; x++)
		timing_wait_no_more(t, &queue->runs[x]);
	take_off(t, queue, true);
}

void timing_forget(struct timing *t, struct timing_queue *queue)
{
	for (unsigned x = 0; x < t->xccs; x++) {
		timing_wait_no_more(t, &queue->runs[x]);
		queue->runs[x].left = queue->runs[x].n_saved = 0;
	}
	take_off(t, queue, false);
	t->n_done -= queue->done;
	queue->busy = queue->done = false;
	free(queue->saved);
	queue->saved = NULL;
	timing_deal(t, TIMING_ALL(t));
}

/* The XCCs take turns, block by block; one without a CU for the queue is passed over. Returns how many bundles they
 * have; the last one of each may have room for more blocks than are left. */
static uint32_t share_out(struct timing *t, struct timing_queue *queue, uint32_t blocks)
{
	unsigned n = 0, i = 0;
	uint32_t all = 0;

	for (unsigned x = 0; x < t->xccs; x++)
		n += slots(t, queue, x) > 0;
	for (unsigned x = 0; x < t->xccs; x++) {
		struct timing_run *run = &queue->runs[x];

		run->pair = timing_first_pair(t, x);
		if (n == 0 ? x == 0 : slots(t, queue, x) > 0)
			run->left = n == 0 ? blocks : blocks / n + (i++ < blocks % n);
		run->left = (run->left + queue->bundle - 1) / queue->bundle;
		all += run->left;
	}
	return all;
}

/* How many blocks an XCC can have on its CUs, whatever the mask comes to be. */
static uint32_t most_resident(const struct timing *t, const struct timing_queue *queue,
			      unsigned xcc)
{
	uint32_t cus = 0;

	for (unsigned e = 0; e < t->engines; e++)
		cus += (uint32_t)__builtin_popcount(t->cus[timing_first_pair(t, xcc) + e]);
	return cus * (t->cu_threads / queue->threads);
}

/* Room for all that can ever have to be taken off, so that preempting cannot fail. */
static int make_room_for_saved(struct timing *t, struct timing_queue *queue)
{
	uint32_t need[TIMING_XCCS] = { 0 };
	size_t all = 0;

	for (unsigned x = 0; x < t->xccs; x++) {
		need[x] = min_u(queue->runs[x].left, most_resident(t, queue, x));
		all += need[x];
	}
	queue->saved = calloc(all, sizeof(queue->saved[0]));
	if (!queue->saved)
		return -ENOMEM;
	all = 0;
	for (unsigned x = 0; x < t->xccs; x++) {
		queue->runs[x].saved = queue->saved + all;
		all += need[x];
	}
	return 0;
}

/* n 0: it is not asked for. */
static int make_room_for_ran(struct timing_queue *queue, size_t n)
{
	free(queue->ran);
	queue->n_ran = 0;
	queue->ran = n > 0 ? calloc(n, sizeof(queue->ran[0])) : NULL;
	return n > 0 && !queue->ran ? -ENOMEM : 0;
}

/* Where more blocks than BUNDLES_MAX would be on the CUs at a time, some go as one: else the
 * model could not keep up with what it models. A part of what fits on a CU, without rest. */
static uint32_t bundle(const struct timing *t, const struct timing_queue *queue, uint32_t blocks)
{
	uint32_t each = t->cu_threads / queue->threads, all = 0, n = 1;

	for (unsigned x = 0; x < t->xccs; x++)
		all += most_resident(t, queue, x);
	while (n < each && (min_u(blocks, all) / n > BUNDLES_MAX || each % n > 0))
		n++;
	return n;
}

int timing_start(struct timing *t, struct timing_queue *queue, const struct timing_kernel *kernel)
{
	uint32_t waves = kernel->threads / TIMING_WAVE + (kernel->threads % TIMING_WAVE > 0), n;

	/* One that no CU could hold takes a whole one. */
	queue->threads = min_u(waves, t->cu_threads / TIMING_WAVE) * TIMING_WAVE;
	queue->block_ns = kernel->block_ns ? kernel->block_ns : t->block_ns;
	n = bundle(t, queue, kernel->blocks);
	queue->threads *= n;
	queue->bundle = n;
	queue->exact = kernel->exact;
	n = share_out(t, queue, kernel->blocks);
	if (make_room_for_ran(queue, kernel->places ? n : 0) < 0 ||
	    make_room_for_saved(t, queue) < 0) {
		for (unsigned x = 0; x < t->xccs; x++)
			queue->runs[x].left = 0;
		return -ENOMEM;
	}
	queue->busy = true;
	queue->last_end = 0;
	timing_enter(t, queue);
	return 0;
}

void timing_stop(struct timing *t, struct timing_queue *queue, uint64_t ns)
{
	uint64_t from = max_u64(t->now, t->stopped), late = ns;

	if (!queue) {
		late = max_u64(from, t->now + ns) - from;
		t->stopped = from + late;
	}
	for (size_t i = 0; i < t->heap.n; i++)
		if (!queue || t->heap.blocks[i].queue == queue)
			t->heap.blocks[i].end += late;
	if (queue)
		timing_heap_order(&t->heap);
	for (struct timing_queue *q = t->queues; q; q = q->next)
		if (q->resident > 0 && (!queue || q == queue))
			q->last_end += late;
}

/* The earliest that the dispatch can end: exact once all blocks are handed out. Before that the
 * next block goes out at the next event, and those that are left take rounds. */
uint64_t timing_least(const struct timing *t, const struct timing_queue *queue)
{
	uint64_t next = t->heap.n > 0 ? t->heap.blocks[0].end : TIMING_NEVER, rounds = 0;
	bool waiting = false;

	if (timing_all_out(queue))
		return queue->last_end;
	if (next > t->turn_end)
		next = t->turn_end;
	for (unsigned x = 0; x < t->xccs; x++) {
		const struct timing_run *run = &queue->runs[x];

		if (run->left == 0)
			continue;
		waiting = true;
		if (run->slots > 0 && run->left / run->slots > rounds)
			rounds = run->left / run->slots;
	}
	if (next == TIMING_NEVER || !waiting)
		return next;
	rounds += rounds == 0;
	return next + rounds * (queue->block_ns * (1000 - TIMING_SPREAD) / 1000);
}
