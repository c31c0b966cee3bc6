/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How blocks get to CUs: in order, in rotation over the engines. */

#include "kfdsim/timing/timing-internal.h"

/* What was fitted, and on what: timing.c. In thousandths, and nanoseconds. */
#define SPREAD TIMING_SPREAD
#define INTERFERENCE 170U
#define DISPATCH_NS 600U

/* The queue's next engine after `pair` with any CU for it; that one again if it is the only
 * one. False: there is none. */
bool timing_next_pair(const struct timing *t, const struct timing_queue *queue, unsigned xcc,
		      unsigned *pair)
{
	unsigned first = timing_first_pair(t, xcc), from = *pair - first;

	for (unsigned i = 1; i <= t->engines; i++) {
		unsigned next = first + (from + i) % t->engines;

		if (queue->enabled[next]) {
			*pair = next;
			return true;
		}
	}
	return false;
}

/* splitmix64: the same sequence in each run. */
static uint64_t draw(struct timing *t)
{
	uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t duration(struct timing *t, const struct timing_queue *queue)
{
	uint64_t thousandths = 1000;

	if (queue->exact)
		return queue->block_ns;
	thousandths = 1000 - SPREAD + draw(t) % (2 * SPREAD + 1);
	if (t->users > (queue->resident > 0))
		thousandths = thousandths * (1000 + INTERFERENCE) / 1000;
	return queue->block_ns * thousandths / 1000;
}

/* The engine's first CU with enough room; of those with as much room, the one after the CU that had a block last
 * (rx7800xt_occupied.tsv: all are used, also where another engine holds them up). */
static bool find_cu(const struct timing *t, const struct timing_queue *queue, unsigned pair,
		    unsigned *ret)
{
	uint32_t after = UINT32_MAX << t->last[pair] << 1, enabled = queue->enabled[pair];
	bool found = false;

	for (uint32_t cus = enabled; cus && !found; cus &= cus - 1) {
		*ret = (unsigned)__builtin_ctz(cus);
		found = t->room[pair][*ret] >= queue->threads;
	}
	for (uint32_t cus = enabled & after; cus && found; cus &= cus - 1)
		if (t->room[pair][__builtin_ctz(cus)] == t->room[pair][*ret]) {
			*ret = (unsigned)__builtin_ctz(cus);
			break;
		}
	return found;
}

/* By pipe, then whoever was served longest ago. */
static bool goes_before(const struct timing_run *run, const struct timing_run *other)
{
	if (!other || run->queue->level != other->queue->level)
		return !other || run->queue->level > other->queue->level;
	return run->served < other->served;
}

/* Big blocks wait until a whole place is free, and meanwhile small ones of other queues take
 * what becomes free («cutting ahead»). */
static struct timing_run *choose(const struct timing *t, unsigned pair, unsigned *ret_cu)
{
	struct timing_run *best = NULL;
	unsigned cu = 0;

	for (struct timing_run *run = t->waiting[pair]; run; run = run->next)
		if (goes_before(run, best) && find_cu(t, run->queue, pair, &cu)) {
			best = run;
			*ret_cu = cu;
		}
	return best;
}

static struct timing_run *choose_for(const struct timing *t, unsigned pair, unsigned cu)
{
	struct timing_run *best = NULL;

	for (struct timing_run *run = t->waiting[pair]; run; run = run->next)
		if (run->queue->threads <= t->room[pair][cu] &&
		    (run->queue->enabled[pair] >> cu & 1) && goes_before(run, best))
			best = run;
	return best;
}

void timing_wait_at(struct timing *t, struct timing_run *run)
{
	run->next = t->waiting[run->pair];
	t->waiting[run->pair] = run;
	run->waiting = true;
}

void timing_wait_no_more(struct timing *t, struct timing_run *run)
{
	struct timing_run **p = &t->waiting[run->pair];

	if (!run->waiting)
		return;
	while (*p != run)
		p = &(*p)->next;
	*p = run->next;
	run->waiting = false;
}

static void launch(struct timing *t, struct timing_run *run, unsigned cu)
{
	struct timing_queue *queue = run->queue;
	struct timing_block block = { .queue = queue,
				      .pair = (uint16_t)run->pair,
				      .cu = (uint8_t)cu };

	block.end = max_u64(run->ready, max_u64(t->now, t->stopped));
	run->ready = block.end + DISPATCH_NS;
	block.begin = block.end;
	if (run->n_saved > 0) {
		block.end += run->saved[--run->n_saved];
	} else {
		block.end += duration(t, queue);
		run->left--;
	}
	queue->last_end = max_u64(queue->last_end, block.end);
	t->room[run->pair][cu] -= (uint16_t)queue->threads;
	t->last[run->pair] = (uint8_t)cu;
	t->users += queue->resident++ == 0;
	run->served = ++t->serial;
	timing_heap_push(&t->heap, &block);
}

/* Hands out what can be, starting where there may be new room. */
void timing_deal(struct timing *t, uint64_t pairs)
{
	while (pairs) {
		unsigned pair = (unsigned)__builtin_ctzll(pairs), cu = 0;
		struct timing_run *run = choose(t, pair, &cu);

		if (!run) {
			pairs &= pairs - 1;
			continue;
		}
		timing_wait_no_more(t, run);
		launch(t, run, cu);
		if (run->left + run->n_saved == 0)
			continue;
		timing_next_pair(t, run->queue, pair / t->engines, &run->pair);
		timing_wait_at(t, run);
		pairs |= UINT64_C(1) << run->pair;
	}
}

/* From engine to engine until one is full. Back at `from` it waits as the others there do. */
static void go_round(struct timing *t, struct timing_run *run, unsigned from)
{
	unsigned cu = 0;

	while (run->left + run->n_saved > 0) {
		timing_next_pair(t, run->queue, run->pair / t->engines, &run->pair);
		if (run->pair == from || !find_cu(t, run->queue, run->pair, &cu)) {
			timing_wait_at(t, run);
			return;
		}
		launch(t, run, cu);
	}
}

void timing_block_ended(struct timing *t, const struct timing_block *block)
{
	struct timing_queue *queue = block->queue;
	struct timing_run *run;

	t->room[block->pair][block->cu] += (uint16_t)queue->threads;
	if (queue->ran)
		queue->ran[queue->n_ran++] = (struct timing_ran){
			.xcc = (uint8_t)(block->pair / t->engines),
			.engine = (uint8_t)(block->pair % t->engines),
			.cu = block->cu,
			.blocks = queue->bundle,
			.begin_ns = block->begin,
			.end_ns = block->end,
		};
	if (--queue->resident == 0) {
		t->users--;
		if (timing_all_out(queue)) {
			queue->done = true;
			queue->end = block->end;
			t->n_done++;
		}
	}
	/* Nobody who waits elsewhere found room before: this is all there is. */
	while ((run = choose_for(t, block->pair, block->cu))) {
		timing_wait_no_more(t, run);
		launch(t, run, block->cu);
		go_round(t, run, block->pair);
	}
}
