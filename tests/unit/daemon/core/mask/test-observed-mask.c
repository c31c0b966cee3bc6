/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"
#include "core/mask/codec.h"
#include "random-geometry.h"
#include "seed.h"

#define ROUNDS 2000U

static void random_mask(uint32_t mask[CODEC_WORDS])
{
	for (unsigned i = 0; i < CODEC_WORDS; i++)
		mask[i] = (uint32_t)mrand48() & (uint32_t)mrand48();
}

/* What is on where no CU is: CUs that were fused off, engines and XCCs that there are not. */
static void add_noise(const struct geometry *geometry, uint32_t words[CUSET_PAIRS])
{
	struct cuset all;

	geometry_all(geometry, &all);
	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		words[pair] |= (uint32_t)mrand48() & ~all.pair[pair];
}

TEST(registers_become_the_mask_that_made_them)
{
	uint32_t mask[CODEC_WORDS], made[CODEC_WORDS], words[CUSET_PAIRS];
	unsigned wgps = 0, arrays = 0, xccs = 0, uneven = 0, idle = 0;
	struct geometry geometry;
	struct cuset set, seen;
	struct codec codec;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < ROUNDS; i++) {
		geometry = random_geometry();
		codec_init(&codec, &geometry);
		random_mask(mask);
		codec_decode(&codec, mask, CODEC_WORDS, &set);
		memcpy(words, set.pair, sizeof(words));
		add_noise(&geometry, words);

		observed_mask_from_words(&geometry, words, &seen);
		if (!cuset_empty(&set) && !geometry_on_every_xcc(&geometry, &set)) {
			geometry_occupied(&geometry, &set, &set);
			CHECK(cuset_equal(&seen, &set));
			idle++;
			continue; /* no bit stands for some of the CUs */
		}
		CHECK(cuset_equal(&seen, &set));
		codec_encode(&codec, &seen, made);
		codec_decode(&codec, made, codec_words(&codec), &seen);
		CHECK(cuset_equal(&seen, &set));

		wgps += geometry.wgp;
		arrays += geometry.arrays == 2;
		xccs += geometry.xccs > 1;
		uneven += geometry.active[0][0][0] != geometry.active[0][geometry.engines - 1][0];
	}
	CHECK(wgps > 0 && arrays > 0 && xccs > 0 && uneven > 0 && idle > 0);
}

TEST(a_queue_without_a_mask_has_all_cus)
{
	uint32_t words[CUSET_PAIRS];
	struct geometry geometry;
	struct cuset all, seen;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < ROUNDS; i++) {
		geometry = random_geometry();
		geometry_all(&geometry, &all);
		memset(words, 0xff, sizeof(words));
		observed_mask_from_words(&geometry, words, &seen);
		CHECK(cuset_equal(&seen, &all));
	}
}

TEST(registers_of_engines_that_there_are_not_do_not_count)
{
	const struct geometry geometry = {
		.xccs = 1,
		.engines = 2,
		.arrays = 1,
		.array_cus = 4,
		.active = { { { 4 }, { 3 } } },
	};
	uint32_t words[CUSET_PAIRS] = { UINT32_MAX, UINT32_MAX };
	struct cuset seen;

	observed_mask_from_words(&geometry, words, &seen);
	CHECK(seen.pair[0] == 0xf && seen.pair[1] == 0x7 && cuset_count(&seen) == 7);
}

TEST(no_register_set_is_no_cu)
{
	uint32_t words[CUSET_PAIRS] = { 0 };
	struct geometry geometry;
	struct cuset seen;

	seed_rand(SEED_OF_RUN("SEED"));
	geometry = random_geometry();
	observed_mask_from_words(&geometry, words, &seen);
	CHECK(cuset_empty(&seen));
}

/* Bits 0 to 3 on an MI300X: XCCs 4 to 7 run unmasked, and another mask that has none of these bits
 * shares most CUs with it. */
TEST(an_xcc_without_a_bit_is_observed_as_unmasked)
{
	struct geometry geometry = { .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };
	uint32_t words[CUSET_PAIRS] = { 0 };
	struct cuset seen;

	CHECK(geometry_spread(&geometry, 304) == 0);
	for (unsigned xcc = 0; xcc < 4; xcc++)
		words[cuset_pair(xcc, 0)] = 1;
	observed_mask_from_words(&geometry, words, &seen);
	CHECK(cuset_count(&seen) == 156);
	memset(words, 0, sizeof(words));
	observed_mask_from_words(&geometry, words, &seen);
	CHECK(cuset_empty(&seen));
}
