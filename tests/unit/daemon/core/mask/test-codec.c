/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "check.h"
#include "measured.h"
#include "util/base.h"

static const struct geometry radeon_vii = {
	.xccs = 1,
	.engines = 4,
	.arrays = 1,
	.array_cus = 16,
	.active = { { { 15 }, { 15 }, { 15 }, { 15 } } },
};
static const struct geometry navi21 = {
	.xccs = 1,
	.engines = 4,
	.arrays = 2,
	.array_cus = 10,
	.wgp = true,
	.active = { { { 10, 10 }, { 10, 10 }, { 10, 10 }, { 10, 10 } } },
};
static const struct geometry mi210_uneven = {
	.xccs = 1,
	.engines = 8,
	.arrays = 1,
	.array_cus = 14,
	.active = { { { 14 }, { 14 }, { 13 }, { 13 }, { 12 }, { 13 }, { 13 }, { 12 } } },
};

static struct geometry mi300x(void)
{
	struct geometry geometry = { .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };

	for (unsigned xcc = 0; xcc < 8; xcc++)
		for (unsigned engine = 0; engine < 4; engine++)
			geometry.active[xcc][engine][0] = engine % 2 ? 9 : 10;
	return geometry;
}

/* Decodes a mask given as its lowest 64 bits. */
static struct cuset decode(const struct geometry *geometry, uint64_t mask)
{
	const uint32_t words[2] = { (uint32_t)mask, (uint32_t)(mask >> 32) };
	struct cuset set;
	struct codec codec;

	codec_init(&codec, geometry);
	codec_decode(&codec, words, 2, &set);
	return set;
}

/* The words of the first four engines of an XCC. */
static bool engines_are(const uint32_t *pair, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return pair[0] == a && pair[1] == b && pair[2] == c && pair[3] == d;
}

static bool goes_to(const struct codec *codec, unsigned bit, unsigned xcc, unsigned engine,
		    unsigned cu)
{
	return codec->at[bit].pair == cuset_pair(xcc, engine) && codec->at[bit].cu == cu;
}

TEST(one_array_per_engine_is_dealt_engine_by_engine)
{
	static const struct {
		uint64_t mask;
		uint32_t engine[4];
	} rows[] = {
		{ 0xf, { 1, 1, 1, 1 } },
		{ 0x111111111111111, { 0x7fff, 0, 0, 0 } },
		{ 0x3fffffff, { 0xff, 0xff, 0x7f, 0x7f } },
		{ 0x555555555555555, { 0x7fff, 0, 0x7fff, 0 } },
		{ 0xd55555555555555, { 0x7fff, 0, 0x7fff, 0x4000 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cuset set = decode(&radeon_vii, rows[i].mask);

		CHECK(engines_are(set.pair, rows[i].engine[0], rows[i].engine[1], rows[i].engine[2],
				  rows[i].engine[3]));
	}
}

TEST(engines_that_ran_out_of_cus_take_no_bit)
{
	static const struct {
		unsigned bit, engine, cu;
	} tail[] = {
		{ 95, 7, 11 },  { 96, 0, 12 },  { 97, 1, 12 },  { 98, 2, 12 },  { 99, 3, 12 },
		{ 100, 5, 12 }, { 101, 6, 12 }, { 102, 0, 13 }, { 103, 1, 13 },
	};
	struct cuset set = decode(&mi210_uneven, (UINT64_C(1) << 52) - 1);
	struct codec codec;

	codec_init(&codec, &mi210_uneven);
	CHECK(codec.n_bits == 104 && codec.step == 1 && codec_words(&codec) == 4);
	for (unsigned bit = 0; bit < 96; bit++)
		CHECK(goes_to(&codec, bit, 0, bit % 8, bit / 8));
	for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++)
		CHECK(goes_to(&codec, tail[i].bit, 0, tail[i].engine, tail[i].cu));
	CHECK(codec.at[104].pair == CODEC_NONE);

	for (unsigned engine = 0; engine < 8; engine++)
		CHECK(cuset_count_word(set.pair[engine]) == (engine < 4 ? 7 : 6));
}

TEST(wgps_take_two_bits_and_engines_come_before_arrays)
{
	struct cuset byte = decode(&navi21, 0xff), word = decode(&navi21, 0xffff);
	struct codec codec;

	CHECK(engines_are(byte.pair, 3, 3, 3, 3));
	CHECK(engines_are(word.pair, 0x00030003, 0x00030003, 0x00030003, 0x00030003));

	codec_init(&codec, &navi21);
	CHECK(codec.n_bits == 80 && codec.step == 2);
	CHECK(goes_to(&codec, 0, 0, 0, 0) && goes_to(&codec, 1, 0, 0, 1));
	CHECK(goes_to(&codec, 6, 0, 3, 0) && goes_to(&codec, 7, 0, 3, 1));
	CHECK(goes_to(&codec, 8, 0, 0, 16) && goes_to(&codec, 15, 0, 3, 17));
	CHECK(goes_to(&codec, 16, 0, 0, 2) && goes_to(&codec, 17, 0, 0, 3));
	CHECK(goes_to(&codec, 78, 0, 3, 24) && goes_to(&codec, 79, 0, 3, 25));
}

TEST(one_engine_of_a_wgp_part_is_every_eighth_pair)
{
	uint32_t mask[3] = { 0 }, expected[3] = { 0 };
	struct cuset set = { 0 };
	struct codec codec;

	for (unsigned bit = 0; bit < 80; bit += 8)
		expected[bit / 32] |= UINT32_C(3) << (bit % 32);
	set.pair[0] = 0x03ff03ff;
	codec_init(&codec, &navi21);
	codec_encode(&codec, &set, mask);
	CHECK(memcmp(mask, expected, sizeof(mask)) == 0);

	memset(&set, 0, sizeof(set));
	codec_decode(&codec, expected, 3, &set);
	CHECK(engines_are(set.pair, 0x03ff03ff, 0, 0, 0));
}

TEST(six_engines_are_dealt_in_sixes)
{
	struct geometry navi31 = {
		.xccs = 1,
		.engines = 6,
		.arrays = 2,
		.array_cus = 8,
		.wgp = true,
	};
	struct codec codec;

	CHECK(geometry_spread(&navi31, 96) == 0);
	codec_init(&codec, &navi31);
	for (unsigned i = 0; i < 8; i++) {
		/* Arrays take turns: WGP i / 2 of array i % 2. */
		CHECK(goes_to(&codec, 10 + 12 * i, 0, 5, i % 2 * 16 + i / 2 * 2));
		CHECK(goes_to(&codec, 11 + 12 * i, 0, 5, i % 2 * 16 + i / 2 * 2 + 1));
	}
}

TEST(two_arrays_without_wgps_are_dealt_single_cus)
{
	struct geometry geometry = navi21;
	struct cuset set;

	geometry.wgp = false;
	set = decode(&geometry, 0x1ff);
	CHECK(engines_are(set.pair, 0x00010003, 0x00010001, 0x00010001, 0x00010001));
}

/* mqd_symmetrically_map_cu_mask_v12_1(): XCCs, engines, arrays, then CUs; one bit each. */
TEST(gfx12_1_gives_single_bits_to_xccs_engines_and_arrays_in_turn)
{
	struct geometry g = { .xccs = 8, .engines = 2, .arrays = 2, .array_cus = 8 };
	struct codec codec;

	CHECK(geometry_spread(&g, 256) == 0);
	codec_init(&codec, &g);
	CHECK(codec.n_bits == 256 && codec.step == 1);
	for (unsigned bit = 0; bit < 256; bit++) {
		unsigned xcc = bit % 8, engine = bit / 8 % 2, array = bit / 16 % 2, cu = bit / 32;

		CHECK(codec.at[bit].pair == cuset_pair(xcc, engine));
		CHECK(codec.at[bit].cu == array * CUSET_ARRAY_CUS + cu);
	}
}

TEST(generations_without_a_known_order_are_told_apart)
{
	static const unsigned known[] = { 70001,  80003,  90000,  90012,  90402,  90500, 100100,
					  100303, 110003, 110503, 120001, 120500, 120501 };
	static const unsigned unknown[] = { 90600, 100400, 110600, 120100, 120600, 130000, 999999 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		CHECK(codec_knows(known[i]));
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		CHECK(!codec_knows(unknown[i]));
}

TEST(xccs_take_turns_before_engines)
{
	struct geometry geometry = mi300x();
	struct cuset set = decode(&geometry, 0xff);
	struct codec codec;

	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(set.pair[cuset_pair(xcc, 0)] == 1);
	CHECK(cuset_count(&set) == 8);

	set = decode(&geometry, UINT64_MAX);
	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(engines_are(&set.pair[cuset_pair(xcc, 0)], 3, 3, 3, 3));

	codec_init(&codec, &geometry);
	CHECK(codec.n_bits == 304 && codec_words(&codec) == 10);
	for (unsigned k = 0; k < 10; k++)
		CHECK(goes_to(&codec, 32 * k, 0, 0, k));
	CHECK(goes_to(&codec, 296, 0, 2, 9));
}

TEST(one_engine_on_all_xccs_is_eight_bits_of_every_32)
{
	struct geometry geometry = mi300x();
	uint32_t mask[10];
	struct cuset set = { 0 };
	struct codec codec;

	for (unsigned xcc = 0; xcc < 8; xcc++)
		set.pair[cuset_pair(xcc, 0)] = 0x3ff;
	codec_init(&codec, &geometry);
	codec_encode(&codec, &set, mask);
	for (unsigned bit = 0; bit < 304; bit++)
		CHECK(((mask[bit / 32] >> (bit % 32)) & 1) == (bit / 8 % 4 == 0));
}

TEST(cus_of_an_xcc_with_more_than_its_share_are_out_of_reach)
{
	const struct geometry geometry = {
		.xccs = 2,
		.engines = 1,
		.arrays = 1,
		.array_cus = 4,
		.active = { { { 1 } }, { { 3 } } },
	};
	uint32_t mask = 0;
	struct cuset set;
	struct codec codec;

	/* Four bits, two for each XCC: one of them finds no CU, one CU finds no bit. */
	codec_init(&codec, &geometry);
	CHECK(codec.n_bits == 4);
	CHECK(goes_to(&codec, 0, 0, 0, 0) && goes_to(&codec, 1, 1, 0, 0));
	CHECK(goes_to(&codec, 3, 1, 0, 1));
	CHECK(codec.at[2].pair == CODEC_NONE);

	geometry_all(&geometry, &set);
	codec_encode(&codec, &set, &mask);
	CHECK(mask == 0xb);
	codec_decode(&codec, (const uint32_t[]){ 0xf }, 1, &set);
	CHECK(set.pair[cuset_pair(0, 0)] == 1 && set.pair[cuset_pair(1, 0)] == 3);
}

TEST(either_bit_of_a_wgp_turns_both_cus_on)
{
	struct cuset low = decode(&navi21, 0x1), high = decode(&navi21, 0x2);

	CHECK(engines_are(low.pair, 3, 0, 0, 0) && engines_are(high.pair, 3, 0, 0, 0));
}

TEST(a_short_mask_turns_off_what_it_does_not_name)
{
	static const uint32_t mask[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
	struct cuset set;
	struct codec codec;

	codec_init(&codec, &radeon_vii);
	codec_decode(&codec, mask, 1, &set);
	CHECK(engines_are(set.pair, 0xff, 0xff, 0xff, 0xff));
	codec_decode(&codec, mask, 3, &set);
	CHECK(engines_are(set.pair, 0x7fff, 0x7fff, 0x7fff, 0x7fff));
	codec_decode(&codec, mask, 0, &set);
	CHECK(cuset_empty(&set));
}

/* Whether the mask is refused with a sentence that has these words. */
static bool refused(const struct geometry *geometry, const uint32_t *mask, size_t n_words,
		    const char *words)
{
	char why[200] = "";
	struct codec codec;

	codec_init(&codec, geometry);
	if (codec_check(&codec, geometry, mask, n_words, why, sizeof(why)) != -EINVAL)
		return false;
	if (strstr(why, words))
		return true;
	fprintf(stderr, "it says: %s\n", why);
	return false;
}

static bool taken(const struct geometry *geometry, const uint32_t *mask, size_t n_words)
{
	struct codec codec;

	codec_init(&codec, geometry);
	return codec_check(&codec, geometry, mask, n_words, NULL, 0) == 0;
}

TEST(a_mask_without_a_bit_is_refused)
{
	static const uint32_t mask[CODEC_WORDS + 1];

	CHECK(refused(&radeon_vii, mask, 2, "bit"));
	CHECK(refused(&radeon_vii, mask, 0, "bit"));
	CHECK(refused(&navi21, mask, CODEC_WORDS + 1, "bit"));
}

TEST(bits_past_the_last_cu_are_refused)
{
	static const uint32_t just_fits[2] = { 0, UINT32_C(1) << 27 };
	static const uint32_t past[2] = { 1, UINT32_C(1) << 28 };
	static const uint32_t far[CODEC_WORDS + 1] = { 1, [CODEC_WORDS] = 1 };

	CHECK(taken(&radeon_vii, just_fits, 2));
	CHECK(refused(&radeon_vii, past, 2, "bit 60"));
	CHECK(refused(&radeon_vii, far, CODEC_WORDS + 1, "bit 1024"));
}

TEST(masks_shorter_or_longer_than_the_gpu_are_taken)
{
	static const uint32_t mask[CODEC_WORDS] = { 0xf };

	CHECK(taken(&radeon_vii, mask, 1));
	CHECK(taken(&radeon_vii, mask, 3));
	CHECK(taken(&radeon_vii, mask, CODEC_WORDS));
}

TEST(half_a_wgp_is_refused_where_there_are_wgps)
{
	static const uint32_t low[3] = { 0x7 }, high[3] = { 0, 0, 0xa000 };

	CHECK(refused(&navi21, low, 3, "WGP: bits 2 and 3"));
	CHECK(refused(&navi21, high, 3, "WGP: bits 76 and 77"));
	CHECK(taken(&radeon_vii, low, 1));
}

TEST(a_mask_that_leaves_an_xcc_out_is_refused)
{
	static const uint32_t half[10] = { 0x0f }, one_each[10] = { 0xff };
	struct geometry geometry = mi300x();

	CHECK(refused(&geometry, half, 10, "no CU on XCC 4"));
	CHECK(refused(&geometry, half, 10, "i % 8 = 4"));
	CHECK(taken(&geometry, one_each, 10));
	CHECK(taken(&geometry, one_each, 1));
}

TEST(a_bit_that_reaches_nothing_does_not_count_for_its_xcc)
{
	static const uint32_t mask[1] = { 0xe }, nothing[1] = { 0x4 };
	const struct geometry geometry = {
		.xccs = 2,
		.engines = 1,
		.arrays = 1,
		.array_cus = 4,
		.active = { { { 1 } }, { { 3 } } },
	};

	CHECK(refused(&geometry, mask, 1, "no CU on XCC 0"));
	CHECK(refused(&geometry, nothing, 1, "is a CU"));
}

/* One measured mask: which engines it reached, and how long a kernel of 1024 blocks took. */
struct measured {
	uint64_t mask;
	unsigned cus[4];
	double blocks, msec;
};

static bool parse_measured(const char *line, struct measured *ret)
{
	return sscanf(line, "%*s %*u %*u %" SCNx64 " %u %u %u %u %lf %*u %*u %*f %lf", &ret->mask,
		      &ret->cus[0], &ret->cus[1], &ret->cus[2], &ret->cus[3], &ret->blocks,
		      &ret->msec) == 7;
}

/* Checks one row's mapping; returns how far the law is off its time, as a part of it. */
static double check_measured(const struct measured *row)
{
	struct cuset set = decode(&radeon_vii, row->mask);
	double law;

	for (unsigned engine = 0; engine < 4; engine++)
		CHECK(cuset_count_word(set.pair[engine]) == row->cus[engine]);
	law = 0.1719 * row->blocks / geometry_effective(&radeon_vii, &set);
	return fabs(law - row->msec) / row->msec;
}

TEST(masks_measured_on_a_radeon_vii_map_as_measured_and_follow_the_law)
{
	char line[1024];
	double off, sum = 0, most = 0;
	struct measured row;
	unsigned rows = 0;
	FILE *file = measured_open("cu_mask_distributed.tsv");

	while (fgets(line, sizeof(line), file)) {
		if (!parse_measured(line, &row))
			continue;
		off = check_measured(&row);
		sum += off;
		most = off > most ? off : most;
		rows++;
	}
	fclose(file);
	printf("%u masks, %.1f %% off on average, %.1f %% at most\n", rows, 100 * sum / rows,
	       100 * most);
	CHECK(rows == 60);
	CHECK(sum / rows < 0.03 && most < 0.09);
}
