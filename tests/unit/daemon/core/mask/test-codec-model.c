/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The order of bits against a second reading of the kernel, which has no loop over bits: plain_bit().
 * Over random geometries: uneven harvests, engines without a CU, WGPs, several XCCs, more CUs than a mask
 * has bits.
 */

#include "core/mask/codec.h"

#include "check.h"
#include "plain-mask.h"
#include "random-geometry.h"
#include "seed.h"

static bool model_on(const struct geometry *geometry, const uint32_t *mask, unsigned n_bits,
		     unsigned bit)
{
	bool on = false;

	for (unsigned i = 0; i < geometry_step(geometry); i++)
		on |= bit < n_bits && ((mask[(bit + i) / 32] >> ((bit + i) % 32)) & 1);
	return on;
}

static struct cuset model_decode(const struct geometry *geometry, const uint32_t *mask,
				 size_t n_words)
{
	unsigned step = geometry_step(geometry), n_bits = geometry_cus(geometry);
	struct cuset set = { 0 };

	if (n_bits > 1024)
		n_bits = 1024;
	if (n_bits > n_words * 32)
		n_bits = (unsigned)n_words * 32;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned e = 0; e < geometry->engines; e++)
			for (unsigned a = 0; a < geometry->arrays; a++)
				for (unsigned cu = 0; cu < geometry->active[xcc][e][a]; cu++) {
					unsigned bit = plain_bit(geometry, xcc, e, a,
								 cu / step * step);
					uint32_t on = model_on(geometry, mask, n_bits, bit);

					set.pair[xcc * 8 + e] |= on << (16 * a + cu);
				}
	return set;
}

static void random_mask(uint32_t mask[CODEC_WORDS])
{
	unsigned kind = below(4);

	for (unsigned i = 0; i < CODEC_WORDS; i++) {
		mask[i] = kind == 3 ? UINT32_MAX : (uint32_t)mrand48();
		if (kind == 1)
			mask[i] &= (uint32_t)mrand48();
		if (kind == 2)
			mask[i] |= (uint32_t)mrand48();
	}
}

TEST(decoding_agrees_with_a_second_reading_of_the_kernel)
{
	struct geometry geometry;
	uint32_t mask[CODEC_WORDS];
	struct cuset set, expected;
	struct codec codec;
	size_t n_words;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 8000; i++) {
		geometry = random_geometry();
		codec_init(&codec, &geometry);
		for (unsigned j = 0; j < 4; j++) {
			random_mask(mask);
			n_words = j == 0 ? CODEC_WORDS : below(codec.n_bits / 32 + 3);
			if (n_words > CODEC_WORDS)
				n_words = CODEC_WORDS;
			expected = model_decode(&geometry, mask, n_words);
			codec_decode(&codec, mask, n_words, &set);
			CHECK(cuset_equal(&set, &expected));
		}
	}
}

TEST(encoded_set_decodes_to_all_cus_that_a_mask_reaches)
{
	uint32_t mask[CODEC_WORDS], again[CODEC_WORDS], every[CODEC_WORDS];
	struct cuset all, reach, set, back;
	struct geometry geometry;
	unsigned short_of = 0;
	struct codec codec;

	memset(every, 0xff, sizeof(every));
	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 4000; i++) {
		geometry = random_geometry();
		geometry_all(&geometry, &all);
		codec_init(&codec, &geometry);
		reach = model_decode(&geometry, every, CODEC_WORDS);
		short_of += !cuset_equal(&reach, &all);

		/* Any set of whole units. */
		random_mask(mask);
		set = model_decode(&geometry, mask, CODEC_WORDS);
		if (i % 2)
			set = all;
		codec_encode(&codec, &set, again);
		codec_decode(&codec, again, codec_words(&codec), &back);
		cuset_keep(&set, &reach);
		CHECK(cuset_equal(&back, &set));
	}
	CHECK(short_of > 0); /* some did have CUs out of reach */
}

TEST(each_bit_has_a_place_of_its_own)
{
	struct geometry geometry;
	struct codec codec;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 2000; i++) {
		struct cuset seen = { 0 }, all;

		geometry = random_geometry();
		geometry_all(&geometry, &all);
		codec_init(&codec, &geometry);
		for (unsigned bit = 0; bit < CODEC_BITS; bit++) {
			uint32_t cu;

			if (codec.at[bit].pair == CODEC_NONE)
				continue;
			cu = UINT32_C(1) << codec.at[bit].cu;
			CHECK(bit < codec.n_bits);
			CHECK(!(seen.pair[codec.at[bit].pair] & cu));
			seen.pair[codec.at[bit].pair] |= cu;
			if (codec.step == 2)
				CHECK(codec.at[bit].cu % 2 == bit % 2 &&
				      codec.at[bit].pair == codec.at[bit ^ 1].pair);
		}
		CHECK(cuset_within(&seen, &all));
		CHECK(geometry.xccs > 1 || geometry_cus(&geometry) > CODEC_BITS ||
		      cuset_equal(&seen, &all));
	}
}

TEST(masks_in_use_are_taken_whatever_the_geometry)
{
	uint32_t mask[CODEC_WORDS];
	struct geometry geometry;
	struct cuset all;
	struct codec codec;

	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 2000; i++) {
		geometry = random_geometry();
		geometry_all(&geometry, &all);
		codec_init(&codec, &geometry);
		codec_encode(&codec, &all, mask);
		CHECK(codec_check(&codec, &geometry, mask, codec_words(&codec), NULL, 0) == 0);
	}
}
