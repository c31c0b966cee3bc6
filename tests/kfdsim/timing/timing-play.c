/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/timing/timing-play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENGINES 4U
#define GAP_NS 50000 /* between kernels on the CPU: what 1 / iter_per_s - mean leaves */

static struct timing_gpu radeon_vii(void)
{
	struct timing_gpu gpu = {
		.xccs = 1, .engines = ENGINES, .queue_slots = 24, .process_slots = 8
	};

	for (unsigned e = 0; e < ENGINES; e++)
		gpu.active[0][e][0] = 15;
	return gpu;
}

static void codec_mask(uint64_t mask, uint32_t engines[TIMING_XCCS][TIMING_ENGINES])
{
	memset(engines, 0, sizeof(uint32_t) * TIMING_XCCS * TIMING_ENGINES);
	for (unsigned bit = 0; bit < 64; bit++)
		if (mask >> bit & 1)
			engines[0][bit % ENGINES] |= UINT32_C(1) << bit / ENGINES;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* start[i]: when the player launches next; TIMING_NEVER: it runs. */
static int play(struct timing *timing, const struct player *players, unsigned n, unsigned times,
		uint64_t *samples)
{
	uint64_t start[PLAY_PLAYERS], since[PLAY_PLAYERS] = { 0 }, now = 0;
	unsigned done = 0;

	for (unsigned i = 0; i < n; i++)
		start[i] = i * GAP_NS;
	while (done < times) {
		uint64_t key, end, next = timing_next(timing);

		for (unsigned i = 0; i < n; i++)
			if (next > start[i])
				next = start[i];
		now = next > now ? next : now;
		while (timing_ended(timing, now, &key, &end)) {
			start[key - 1] = end + GAP_NS;
			if (key == 1 && done < times)
				samples[done++] = end - since[0];
		}
		for (unsigned i = 0; i < n; i++) {
			int r;

			if (start[i] > now)
				continue;
			r = timing_dispatch(timing, i + 1, &players[i].kernel, now);
			if (r < 0)
				return r;
			since[i] = start[i];
			start[i] = UINT64_MAX;
		}
	}
	return 0;
}

int play_loops(const struct player *players, unsigned n, unsigned times, uint64_t *ret)
{
	_cleanup_(freep) uint64_t *samples = calloc(times, sizeof(samples[0]));
	_cleanup_(timing_freep) struct timing *timing = NULL;
	struct timing_gpu gpu = radeon_vii();
	int r = samples && n <= PLAY_PLAYERS ? timing_new(&gpu, &timing) : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		uint32_t engines[TIMING_XCCS][TIMING_ENGINES];

		codec_mask(players[i].mask, engines);
		r = timing_queue_set(timing, i + 1, 1, engines, 7, 0);
	}
	if (r == 0)
		r = play(timing, players, n, times, samples);
	if (r < 0)
		return r;
	qsort(samples, times, sizeof(samples[0]), by_size);
	*ret = samples[times / 2];
	return 0;
}

static int make_ranks(struct timing *timing, const struct ranks *ranks)
{
	uint32_t all[TIMING_XCCS][TIMING_ENGINES];
	int r = 0;

	memset(all, 0xff, sizeof(all));
	for (unsigned i = 0; r == 0 && i < ranks->ranks * ranks->queues; i++)
		r = timing_queue_set(timing, i + 1, 1 + i / ranks->queues, all, 7, 0);
	return r;
}

/* A step: every rank's first queue gets its kernel, and the last to end ends the step. */
static int play_step(struct timing *timing, const struct ranks *ranks, uint64_t *now)
{
	const struct timing_kernel kernel = { .blocks = 1,
					      .threads = 1024,
					      .block_ns = ranks->step_ns };
	unsigned left = ranks->ranks;
	uint64_t key, end;

	for (unsigned i = 0; i < ranks->ranks; i++) {
		int r = timing_dispatch(timing, 1 + i * ranks->queues, &kernel, *now);

		if (r < 0)
			return r;
	}
	while (left > 0) {
		uint64_t next = timing_next(timing);

		*now = next > *now ? next : *now;
		while (timing_ended(timing, *now, &key, &end))
			left--;
	}
	return 0;
}

int play_ranks(const struct ranks *ranks, uint64_t *ret)
{
	_cleanup_(timing_freep) struct timing *timing = NULL;
	struct timing_gpu gpu = radeon_vii();
	int r;

	gpu.queue_slots = ranks->queue_slots;
	gpu.process_slots = ranks->process_slots;
	*ret = 0;
	r = timing_new(&gpu, &timing);
	if (r == 0)
		r = make_ranks(timing, ranks);
	for (unsigned i = 0; r == 0 && i < ranks->steps; i++)
		r = play_step(timing, ranks, ret);
	return r;
}
