/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* GPUs, masks and waiting, for tests of the timing model. */

#include "check.h"
#include "kfdsim/timing/timing.h"

#define MSEC UINT64_C(1000000)

struct words {
	uint32_t of[TIMING_XCCS][TIMING_ENGINES];
};

static inline struct timing_gpu rig_gpu(unsigned xccs, unsigned engines, unsigned cus)
{
	struct timing_gpu gpu = { .xccs = xccs, .engines = engines };

	for (unsigned p = 0; p < xccs * engines; p++)
		gpu.active[p / engines][p % engines][0] = (uint8_t)cus;
	return gpu;
}

static inline struct timing *rig_new(const struct timing_gpu *gpu)
{
	struct timing *timing;

	CHECK(timing_new(gpu, &timing) == 0);
	return timing;
}

static inline struct words rig_all(void)
{
	struct words words;

	memset(&words, 0xff, sizeof(words));
	return words;
}

/* So many CUs in each of the first XCC's four engines. */
static inline struct words rig_mask(unsigned a, unsigned b, unsigned c, unsigned d)
{
	const unsigned cus[] = { a, b, c, d };
	struct words words = { 0 };

	for (unsigned e = 0; e < 4; e++)
		words.of[0][e] = (UINT32_C(1) << cus[e]) - 1;
	return words;
}

static inline void rig_queue(struct timing *timing, uint64_t key, uint64_t process,
			     struct words words, uint64_t now)
{
	CHECK(timing_queue_set(timing, key, process, words.of, 7, now) == 0);
}

static inline void rig_start(struct timing *timing, uint64_t key, uint32_t blocks, uint32_t threads,
			     uint64_t now)
{
	const struct timing_kernel kernel = { .blocks = blocks, .threads = threads };

	CHECK(timing_dispatch(timing, key, &kernel, now) == 0);
}

/* Until the next dispatch ends: which, and when. */
static inline uint64_t rig_wait(struct timing *timing, uint64_t *now)
{
	uint64_t key, end;

	for (unsigned tries = 0; !timing_ended(timing, *now, &key, &end); tries++) {
		uint64_t next = timing_next(timing);

		CHECK(next != UINT64_MAX && tries < 100000);
		*now = next > *now ? next : *now + 1;
	}
	CHECK(end <= timing_now(timing)); /* it may be ahead: *now goes back to each end */
	*now = end;
	return key;
}

static inline uint64_t rig_alone(const struct timing_gpu *gpu, struct words words, uint32_t blocks,
				 uint32_t threads)
{
	_cleanup_(timing_freep) struct timing *timing = rig_new(gpu);
	uint64_t now = 0;

	rig_queue(timing, 1, 1, words, 0);
	rig_start(timing, 1, blocks, threads, 0);
	CHECK(rig_wait(timing, &now) == 1);
	CHECK(timing_next(timing) == UINT64_MAX);
	return now;
}
