/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How long dispatches take on the timing model: masks, and who shares what. */

#include "kfdsim/timing/timing.h"

#include <errno.h>
#include <math.h>

#include "util/base.h"
#include "kfdsim/test/timing-rig.h"

#define BLOCKS 1024U
#define MANY 8192U /* blocks: far more than there are slots */

static double ratio(uint64_t a, uint64_t b)
{
	return (double)a / (double)b;
}

static bool about(double value, double wanted, double tolerance)
{
	return fabs(value / wanted - 1) <= tolerance;
}

TEST(time_goes_as_blocks_over_engines_times_the_thinnest)
{
	const struct timing_gpu gpu = rig_gpu(1, 4, 15);
	uint64_t one = rig_alone(&gpu, rig_mask(1, 0, 0, 0), MANY, 1024);

	for (unsigned engines = 1; engines <= 4; engines++)
		for (unsigned cus = 1; cus <= 15; cus++) {
			struct words words = rig_mask(cus, engines > 1 ? cus : 0,
						      engines > 2 ? 15 : 0, engines > 3 ? cus : 0);

			CHECK(about(ratio(one, rig_alone(&gpu, words, MANY, 1024)), engines * cus,
				    0.1));
		}
	CHECK(about(ratio(rig_alone(&gpu, rig_mask(1, 0, 0, 0), 2 * MANY, 1024), one), 2, 0.02));
}

TEST(each_xcc_gets_as_many_blocks_and_the_thinnest_sets_the_time)
{
	const struct timing_gpu gpu = rig_gpu(4, 4, 10);
	struct words words = rig_all();
	uint64_t all = rig_alone(&gpu, words, 4 * BLOCKS, 1024), half;

	CHECK(about(ratio(rig_alone(&gpu, words, 8 * BLOCKS, 1024), all), 2, 0.1));
	for (unsigned e = 0; e < 4; e++)
		words.of[3][e] = 0x1f;
	half = rig_alone(&gpu, words, 4 * BLOCKS, 1024);
	CHECK(about(ratio(half, all), 2, 0.1));
}

/* Many small blocks go in bundles, which must not leave one out: its XCC follows from its number. */
TEST(each_xcc_tells_all_of_its_blocks)
{
	const struct timing_gpu gpu = rig_gpu(8, 4, 10);
	const struct timing_kernel kernel = { .blocks = 4096, .threads = 256, .places = true };
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	unsigned blocks[TIMING_XCCS] = { 0 };
	const struct timing_ran *ran;
	uint64_t now = 0;
	size_t n;

	rig_queue(timing, 1, 1, rig_all(), 0);
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == 0);
	CHECK(rig_wait(timing, &now) == 1);
	ran = timing_ran(timing, 1, &n);
	for (size_t i = 0; i < n; i++)
		blocks[ran[i].xcc] += ran[i].blocks;
	for (unsigned x = 0; x < 8; x++)
		CHECK(blocks[x] >= 4096 / 8);
}

TEST(an_xcc_without_a_cu_in_the_mask_runs_unmasked)
{
	const struct timing_gpu gpu = rig_gpu(4, 4, 10);
	struct words words = rig_all(), one = { 0 }, two = { 0 };
	uint64_t all = rig_alone(&gpu, words, 4 * BLOCKS, 1024);

	memset(words.of[3], 0, sizeof(words.of[3]));
	CHECK(about(ratio(rig_alone(&gpu, words, 4 * BLOCKS, 1024), all), 1, 0.02));

	/* One CU on each XCC, and one on the first alone: as slow, because the first sets the time. */
	one.of[0][0] = 1;
	for (unsigned x = 0; x < 4; x++)
		two.of[x][0] = 1;
	CHECK(about(ratio(rig_alone(&gpu, one, 4 * BLOCKS, 1024),
			  rig_alone(&gpu, two, 4 * BLOCKS, 1024)),
		    1, 0.02));
}

TEST(both_arrays_of_an_engine_count_and_masks_beyond_its_cus_do_not)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 4), same = rig_gpu(1, 4, 8);
	struct words words = { 0 };

	for (unsigned e = 0; e < 4; e++) {
		gpu.active[0][e][1] = 4;
		words.of[0][e] = 0xfff0000f;
	}
	CHECK(rig_alone(&gpu, rig_all(), BLOCKS, 1024) ==
	      rig_alone(&same, rig_all(), BLOCKS, 1024));
	words.of[0][0] = 0xffffffff;
	for (unsigned e = 1; e < 4; e++)
		words.of[0][e] = 0x000f000f;
	CHECK(rig_alone(&gpu, words, BLOCKS, 1024) == rig_alone(&gpu, rig_all(), BLOCKS, 1024));
}

TEST(a_high_pipe_is_served_before_others_and_levels_are_the_drivers)
{
	static const unsigned levels[][2] = { { 6, 7 }, { 10, 11 }, { 0, 15 } };
	const struct timing_gpu gpu = rig_gpu(1, 1, 1);

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
		struct words all = rig_all();
		uint64_t now = 0, first;

		CHECK(timing_queue_set(timing, 1, 1, all.of, levels[i][0], 0) == 0);
		CHECK(timing_queue_set(timing, 2, 2, all.of, levels[i][1], 0) == 0);
		rig_start(timing, 1, 100, 1024, 0);
		rig_start(timing, 2, 100, 1024, 0);
		CHECK(rig_wait(timing, &now) == 2);
		first = now;
		CHECK(rig_wait(timing, &now) == 1);
		CHECK(about(ratio(now, first), 2, 0.1));
	}
}

TEST(a_new_mask_counts_for_the_blocks_that_are_left)
{
	const struct timing_gpu gpu = rig_gpu(1, 4, 15);
	uint64_t wide = rig_alone(&gpu, rig_all(), BLOCKS, 1024), now = 0;
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);

	rig_queue(timing, 1, 1, rig_all(), 0);
	rig_start(timing, 1, BLOCKS, 1024, 0);
	rig_queue(timing, 1, 1, rig_mask(0, 5, 5, 5), wide / 2);
	CHECK(rig_wait(timing, &now) == 1);
	CHECK(about(ratio(now - wide / 2, wide / 2), 4, 0.2));
}
