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

TEST(small_blocks_fit_more_to_a_cu_and_huge_ones_fit_once)
{
	struct timing_gpu gpu = rig_gpu(1, 1, 1);
	uint64_t big = rig_alone(&gpu, rig_all(), 1000, 1024);

	CHECK(about(ratio(big, rig_alone(&gpu, rig_all(), 1000, 256)), 5, 0.05));
	CHECK(about(ratio(big, rig_alone(&gpu, rig_all(), 1000, 1)), 20, 0.1));
	CHECK(about(ratio(rig_alone(&gpu, rig_all(), 1000, UINT32_MAX), big), 2, 0.05));
	gpu.cu_threads = 1024;
	CHECK(about(ratio(rig_alone(&gpu, rig_all(), 1000, 1024), big), 2, 0.05));
	gpu.block_ns = 3180000;
	CHECK(about(ratio(rig_alone(&gpu, rig_all(), 1000, 1024), big), 20, 0.05));
}

TEST(a_kernel_may_say_what_its_blocks_take)
{
	const struct timing_gpu gpu = rig_gpu(1, 4, 15);
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	const struct timing_kernel nop = { .blocks = 1, .threads = 64, .block_ns = 5000 };
	uint64_t now = 0;

	rig_queue(timing, 1, 1, rig_all(), 0);
	CHECK(timing_dispatch(timing, 1, &nop, 0) == 0);
	CHECK(rig_wait(timing, &now) == 1);
	CHECK(now >= 3500 && now <= 6500);
}

TEST(least_recently_served_queue_is_next)
{
	const struct timing_gpu gpu = rig_gpu(1, 1, 3);
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	uint64_t now = 0, first;

	for (uint64_t key = 1; key <= 5; key++)
		rig_queue(timing, key, key, rig_all(), 0);
	for (uint64_t key = 1; key <= 5; key++)
		rig_start(timing, key, BLOCKS, 1024, 0);
	rig_wait(timing, &now);
	first = now;
	for (unsigned i = 0; i < 4; i++)
		rig_wait(timing, &now);
	CHECK(about(ratio(now, first), 1, 0.02));
}

TEST(a_dispatcher_sends_one_block_after_the_other)
{
	const struct timing_gpu gpu = rig_gpu(1, 1, 15);
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	const struct timing_kernel kernel = { .blocks = 10000, .threads = 64, .block_ns = 100 };
	uint64_t now = 0;

	rig_queue(timing, 1, 1, rig_all(), 0);
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == 0);
	CHECK(rig_wait(timing, &now) == 1);
	CHECK(about((double)now, 10000 * 600, 0.01));
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

TEST(a_queue_without_a_cu_never_ends_until_it_gets_one)
{
	const struct timing_gpu gpu = rig_gpu(2, 4, 15);
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	uint64_t key, end, now = 1000 * MSEC;

	rig_queue(timing, 1, 1, (struct words){ 0 }, 0);
	rig_start(timing, 1, 4, 1024, 0);
	CHECK(timing_next(timing) == UINT64_MAX);
	CHECK(!timing_ended(timing, now, &key, &end));
	rig_queue(timing, 1, 1, rig_all(), now);
	CHECK(rig_wait(timing, &now) == 1 && now < 1001 * MSEC);
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

TEST(invalid_parameters_are_refused)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 15), bad[8];
	_cleanup_(timing_freep) struct timing *timing = rig_new(&gpu);
	const struct timing_kernel kernel = { .blocks = 1, .threads = 64 };
	struct words all = rig_all();
	struct timing *none = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = gpu;
	bad[0].xccs = 0;
	bad[1].xccs = TIMING_XCCS + 1;
	bad[2].engines = 0;
	bad[3].engines = TIMING_ENGINES + 1;
	bad[4].active[0][3][1] = 17;
	bad[5].cu_threads = 65536;
	memset(bad[6].active, 0, sizeof(bad[6].active));
	bad[7] = (struct timing_gpu){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(timing_new(&bad[i], &none) == -EINVAL && !none);
	CHECK(timing_queue_set(timing, 0, 1, all.of, 7, 0) == -EINVAL);
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == -ENOENT);
	rig_queue(timing, 1, 1, all, 0);
	CHECK(timing_dispatch(timing, 1, &(struct timing_kernel){ .threads = 1 }, 0) == -EINVAL);
	CHECK(timing_dispatch(timing, 1, &(struct timing_kernel){ .blocks = 1 }, 0) == -EINVAL);
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == 0);
	CHECK(timing_dispatch(timing, 1, &kernel, 0) == -EBUSY);
	CHECK(timing_dispatch(timing, 1, &kernel, 1000 * MSEC) == -EBUSY);
	timing_queue_drop(timing, 7, 1000 * MSEC);
	CHECK(!timing_free(NULL));
}
