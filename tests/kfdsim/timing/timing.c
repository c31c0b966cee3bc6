/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An event simulation of blocks on CUs. What it holds true:
 *
 * - A queue's blocks go out in order, in strict rotation over the shader engines with any CU
 *   for it, however many CUs each has; a full engine holds up the rest (Otterness, Anderson,
 *   RTNS 2021: the law of masks). Several XCCs: a grid is dealt over them block by block, and
 *   each rotates for itself (law_mi300x.tsv: the worst XCC sets the time). One without a CU in
 *   the mask runs unmasked.
 * - A CU holds so many threads, 2560 on gfx906: two blocks of 1024, ten of 256. What fits goes:
 *   of those that wait at an engine, by pipe priority (assumed; firmware), then whoever was
 *   served longest ago. So small blocks cut ahead of big ones without a rule for it.
 * - A block's time does not depend on its size: 1024 and 256 threads take the same on CUs full
 *   of their like, within what can be told from the measurements.
 * - Preemption stops everything for TIMING_SWITCH_NS; oversubscription takes turns:
 *   timing-turns.c.
 *
 * What was fitted, all on gfx906, on cu_mask_distributed.tsv and on the rows of the commits
 * 97fd36e and 3d7032f in sharing.tsv; the other two commits' rows were not looked at:
 *   BLOCK_NS      a block's mean time, on the masks;
 *   SPREAD        block times differ by up to 30 % either way, evenly: the uneven rows, where
 *                 less keeps blocks in step and lets small ones hold a lone CU for too long;
 *   INTERFERENCE  17 % longer while another queue has blocks on any CU, its own or not: the
 *                 evenly partitioned rows (measured there: 15 to 19 %);
 *   DISPATCH_NS   between two blocks of a queue: below the 0.68 us that two queues of MM256
 *                 reach together; without it a kernel's first blocks end all at once.
 * What does not fit: MM256 alone on the whole GPU, measured slower than beside another kernel;
 * and much of oversubscription, which no simple rule explains.
 */

#include "kfdsim/timing/timing.h"

#include <errno.h>
#include <stdlib.h>

#include "kfdsim/timing/timing-internal.h"

#define BLOCK_NS 318000U
#define CU_THREADS 2560U

static bool valid(const struct timing_gpu *gpu)
{
	unsigned cus = 0;

	if (gpu->xccs < 1 || gpu->xccs > TIMING_XCCS || gpu->engines < 1 ||
	    gpu->engines > TIMING_ENGINES || gpu->cu_threads > UINT16_MAX)
		return false;
	for (unsigned p = 0; p < gpu->xccs * gpu->engines; p++)
		for (unsigned a = 0; a < TIMING_ARRAYS; a++) {
			unsigned n = gpu->active[p / gpu->engines][p % gpu->engines][a];

			if (n > 16)
				return false;
			cus += n;
		}
	return cus > 0;
}

static uint32_t cus_of(const struct timing_gpu *gpu, unsigned pair)
{
	const uint8_t *active = gpu->active[pair / gpu->engines][pair % gpu->engines];

	return ((UINT32_C(1) << active[0]) - 1) | ((UINT32_C(1) << active[1]) - 1) << 16;
}

int timing_new(const struct timing_gpu *gpu, struct timing **ret)
{
	_cleanup_(timing_freep) struct timing *t = NULL;
	size_t cus = 0;

	if (!valid(gpu))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->xccs = gpu->xccs;
	t->engines = gpu->engines;
	t->queue_slots = gpu->queue_slots;
	t->process_slots = gpu->process_slots;
	t->mes = gpu->mes;
	t->cu_threads = max_u(gpu->cu_threads ? gpu->cu_threads : CU_THREADS, TIMING_WAVE);
	t->block_ns = gpu->block_ns ? gpu->block_ns : BLOCK_NS;
	t->turn_end = TIMING_NEVER;
	for (unsigned p = 0; p < t->xccs * t->engines; p++) {
		t->cus[p] = cus_of(gpu, p);
		cus += (size_t)__builtin_popcount(t->cus[p]);
		for (unsigned cu = 0; cu < 32; cu++)
			t->room[p][cu] = (uint16_t)t->cu_threads;
	}
	if (timing_heap_init(&t->heap, cus * (t->cu_threads / TIMING_WAVE)) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(t);
	return 0;
}

static struct timing_queue *find(const struct timing *t, uint64_t key)
{
	for (struct timing_queue *q = t->queues; q; q = q->next)
		if (q->key == key)
			return q;
	return NULL;
}

/* One call does so much at most: whoever models more than his CPU can do falls behind, but is
 * never stuck. Dispatches start and end by the model's own clock, and take no longer. */
#define EVENTS_MAX 16384U

static void advance(struct timing *t, uint64_t now)
{
	for (unsigned i = 0; i < EVENTS_MAX; i++) {
		uint64_t next = t->heap.n > 0 ? t->heap.blocks[0].end : TIMING_NEVER;
		bool turn = t->turn_end <= next;

		if (turn)
			next = t->turn_end;
		if (next > now) {
			t->now = max_u64(t->now, now);
			return;
		}
		t->now = next;
		if (turn) {
			timing_turn_next(t);
		} else {
			struct timing_block block = timing_heap_pop(&t->heap);

			timing_block_ended(t, &block);
		}
	}
}

uint64_t timing_now(const struct timing *t)
{
	return t->now;
}

struct timing *timing_free(struct timing *t)
{
	while (t && t->queues) {
		struct timing_queue *queue = t->queues;

		t->queues = queue->next;
		free(queue->saved);
		free(queue->ran);
		free(queue);
	}
	if (t)
		free(t->heap.blocks);
	free(t);
	return NULL;
}

/* After the last of its process, else at the end. */
static void insert(struct timing *t, struct timing_queue *queue)
{
	struct timing_queue **p = &t->queues;

	while (*p && !((*p)->process == queue->process &&
		       (!(*p)->next || (*p)->next->process != queue->process)))
		p = &(*p)->next;
	if (*p)
		p = &(*p)->next;
	queue->next = *p;
	*p = queue;
}

static struct timing_queue *make(struct timing *t, uint64_t key, uint64_t process)
{
	struct timing_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->key = key;
	queue->process = process;
	for (unsigned x = 0; x < TIMING_XCCS; x++)
		queue->runs[x].queue = queue;
	insert(t, queue);
	return queue;
}

/* pipe_priority_map in kfd_mqd_manager.c. */
static unsigned pipe_level(unsigned priority)
{
	return priority >= 11 ? 2 : priority >= 7;
}

static bool has_cu(const struct timing *t, const struct timing_queue *queue, unsigned xcc)
{
	for (unsigned e = 0; e < t->engines; e++)
		if (queue->enabled[xcc * t->engines + e])
			return true;
	return false;
}

/* An XCC without a CU in a mask that has others runs unmasked: read from registers of an MI300X,
 * mi300x_occupied.tsv. */
static void enable(const struct timing *t, struct timing_queue *queue,
		   const uint32_t engines[TIMING_XCCS][TIMING_ENGINES])
{
	bool any = false;

	for (unsigned p = 0; p < t->xccs * t->engines; p++) {
		queue->enabled[p] = engines[p / t->engines][p % t->engines] & t->cus[p];
		any |= queue->enabled[p] != 0;
	}
	for (unsigned x = 0; x < t->xccs && any; x++)
		if (!has_cu(t, queue, x))
			for (unsigned e = 0; e < t->engines; e++)
				queue->enabled[x * t->engines + e] = t->cus[x * t->engines + e];
}

int timing_queue_set(struct timing *t, uint64_t key, uint64_t process,
		     const uint32_t engines[TIMING_XCCS][TIMING_ENGINES], unsigned priority,
		     uint64_t now_ns)
{
	struct timing_queue *queue;

	if (key == 0)
		return -EINVAL;
	advance(t, now_ns);
	queue = find(t, key);
	if (!queue)
		queue = make(t, key, process);
	if (!queue)
		return -ENOMEM;
	enable(t, queue, engines);
	queue->level = pipe_level(priority);
	if (t->mes)
		timing_stop(t, queue, TIMING_SWITCH_NS);
	timing_enter(t, queue);
	timing_turns_changed(t);
	return 0;
}

void timing_queue_drop(struct timing *t, uint64_t key, uint64_t now_ns)
{
	struct timing_queue *queue, **p = &t->queues;

	advance(t, now_ns);
	queue = find(t, key);
	if (!queue)
		return;
	timing_forget(t, queue);
	timing_cursor_skip(t, queue);
	while (*p != queue)
		p = &(*p)->next;
	*p = queue->next;
	free(queue->ran);
	free(queue);
	timing_turns_changed(t);
}

void timing_preempt(struct timing *t, uint64_t now_ns)
{
	advance(t, now_ns);
	if (!t->mes)
		timing_stop(t, NULL, TIMING_SWITCH_NS);
}

int timing_dispatch(struct timing *t, uint64_t key, const struct timing_kernel *kernel,
		    uint64_t now_ns)
{
	struct timing_queue *queue;

	if (kernel->blocks == 0 || kernel->threads == 0)
		return -EINVAL;
	advance(t, now_ns);
	queue = find(t, key);
	if (!queue)
		return -ENOENT;
	return queue->busy ? -EBUSY : timing_start(t, queue, kernel);
}

bool timing_ended(struct timing *t, uint64_t now_ns, uint64_t *ret_key, uint64_t *ret_end)
{
	struct timing_queue *first = NULL;

	advance(t, now_ns);
	if (t->n_done == 0)
		return false;
	for (struct timing_queue *q = t->queues; q; q = q->next)
		if (q->done && (!first || q->end < first->end))
			first = q;
	*ret_key = first->key;
	*ret_end = first->end;
	timing_forget(t, first);
	return true;
}

const struct timing_ran *timing_ran(const struct timing *t, uint64_t key, size_t *ret_n)
{
	const struct timing_queue *queue = find(t, key);

	*ret_n = queue ? queue->n_ran : 0;
	return queue ? queue->ran : NULL;
}

uint64_t timing_next(const struct timing *t)
{
	uint64_t least = TIMING_NEVER;

	for (const struct timing_queue *q = t->queues; q; q = q->next) {
		uint64_t end;

		if (!q->busy)
			continue;
		end = q->done ? q->end : q->mapped ? timing_least(t, q) : t->turn_end;
		if (least > end)
			least = end;
	}
	return least;
}
