/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/codec.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "util/base.h"
#include "util/text.h"

bool codec_knows(unsigned gfx_target)
{
	/* Targets from which on one is unknown, and the next that is known. */
	static const struct {
		unsigned first, end;
	} unknown[] = { { 90600, 100000 },
			{ 100400, 110000 },
			{ 110600, 120000 },
			{ 120100, 120500 },
			{ 120600, UINT_MAX } };

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		if (gfx_target >= unknown[i].first && gfx_target < unknown[i].end)
			return false;
	return true;
}

bool codec_knows_descriptor(unsigned gfx_target)
{
	return gfx_target >= 80000 && gfx_target < 120100 && codec_knows(gfx_target);
}

static bool mask_has(const uint32_t *mask, unsigned bit)
{
	return (mask[bit / 32] >> (bit % 32)) & 1;
}

/* Maps the bits from `bit` on to the CUs from `cu` on: one CU, or the two of a WGP. */
static void place(struct codec *codec, unsigned bit, unsigned pair, unsigned cu)
{
	for (unsigned i = 0; i < codec->step && bit + i < codec->n_bits; i++) {
		codec->at[bit + i].pair = (uint8_t)pair;
		codec->at[bit + i].cu = (uint8_t)(cu + i);
	}
}

/* The loop of the kernel for one XCC. It stops at the last bit. Where another XCC has fewer CUs, some
 * CUs of this XCC have no bit then. */
static void codec_xcc(struct codec *codec, const struct geometry *geometry, unsigned xcc)
{
	unsigned bit = xcc;

	for (unsigned cu = 0; cu < CUSET_ARRAY_CUS; cu += codec->step)
		for (unsigned array = 0; array < geometry->arrays; array++)
			for (unsigned engine = 0; engine < geometry->engines; engine++) {
				if (geometry->active[xcc][engine][array] <= cu)
					continue;
				if (bit >= codec->n_bits)
					return;
				place(codec, bit, cuset_pair(xcc, engine),
				      array * CUSET_ARRAY_CUS + cu);
				bit += codec->step * geometry->xccs;
			}
}

void codec_init(struct codec *codec, const struct geometry *geometry)
{
	codec->n_bits = min_u(geometry_cus(geometry), CODEC_BITS);
	codec->step = geometry_step(geometry);
	memset(codec->at, CODEC_NONE, sizeof(codec->at));
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		codec_xcc(codec, geometry, xcc);
}

size_t codec_words(const struct codec *codec)
{
	return (codec->n_bits + 31) / 32;
}

void codec_decode(const struct codec *codec, const uint32_t *mask, size_t n_words,
		  struct cuset *ret)
{
	uint32_t whole = (UINT32_C(1) << codec->step) - 1;
	struct cuset set = { 0 };
	unsigned n_bits = (unsigned)(n_words < codec_words(codec) ? n_words * 32 : codec->n_bits);

	for (unsigned bit = 0; bit < n_bits; bit++) {
		/* The first bit of a WGP says where the WGP begins. */
		unsigned first = bit - bit % codec->step;

		if (mask_has(mask, bit) && codec->at[first].pair != CODEC_NONE)
			set.pair[codec->at[first].pair] |= whole << codec->at[first].cu;
	}
	*ret = set;
}

void codec_encode(const struct codec *codec, const struct cuset *set, uint32_t *ret_mask)
{
	for (unsigned base = 0; base < codec->n_bits; base += 32) {
		unsigned n = min_u(32, codec->n_bits - base);
		uint32_t word = 0;

		for (unsigned i = 0; i < n; i++) {
			unsigned pair = codec->at[base + i].pair;

			if (pair != CODEC_NONE)
				word |= ((set->pair[pair] >> codec->at[base + i].cu) & 1) << i;
		}
		ret_mask[base / 32] = word;
	}
}

static int check_bits(const struct codec *codec, const uint32_t *mask, size_t n_words, char *buf,
		      size_t size)
{
	bool any = false;

	for (unsigned bit = 0; bit < n_words * 32; bit++) {
		bool on = mask_has(mask, bit);

		if (on && bit >= codec->n_bits)
			return refuse(buf, size, -EINVAL, "bit %u is set: the last CU is bit %u",
				      bit, codec->n_bits - 1);
		any |= on;
	}
	if (!any)
		return refuse(buf, size, -EINVAL, "no bit is set: a queue without a CU hangs");
	return 0;
}

static int check_wgps(const uint32_t *mask, size_t n_words, char *buf, size_t size)
{
	for (unsigned bit = 0; bit < n_words * 32; bit += 2)
		if (mask_has(mask, bit) != mask_has(mask, bit + 1))
			return refuse(buf, size, -EINVAL,
				      "half a WGP: bits %u and %u go together on this GPU", bit,
				      bit + 1);
	return 0;
}

static int check_xccs(const struct codec *codec, const struct geometry *geometry,
		      const uint32_t *mask, size_t n_words, char *buf, size_t size)
{
	struct cuset set, occupied;
	unsigned xcc = 0;

	codec_decode(codec, mask, n_words, &set);
	if (geometry_on_every_xcc(geometry, &set))
		return 0;
	/* Where XCCs differ in CUs, some bits are no CU. */
	if (cuset_empty(&set))
		return refuse(buf, size, -EINVAL,
			      "no bit that is set is a CU: a queue without a CU hangs");
	geometry_occupied(geometry, &set, &occupied);
	while (geometry_xcc_used(geometry, &set, xcc))
		xcc++;
	return refuse(
		buf, size, -EINVAL,
		"no CU on XCC %u, which would run unmasked: the mask would occupy %u of %u CUs; "
		"XCC %u has the bits i with i %% %u = %u",
		xcc, cuset_count(&occupied), geometry_cus(geometry), xcc, geometry->xccs, xcc);
}

int codec_check(const struct codec *codec, const struct geometry *geometry, const uint32_t *mask,
		size_t n_words, char *buf, size_t size)
{
	if (check_bits(codec, mask, n_words, buf, size) < 0 ||
	    (codec->step == 2 && check_wgps(mask, n_words, buf, size) < 0))
		return -EINVAL;
	return check_xccs(codec, geometry, mask, n_words, buf, size);
}

void observed_mask_from_words(const struct geometry *geometry, const uint32_t words[CUSET_PAIRS],
			      struct cuset *ret)
{
	struct cuset set, all;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		set.pair[pair] = words[pair];
	geometry_all(geometry, &all);
	cuset_keep(&set, &all);
	geometry_occupied(geometry, &set, ret);
}
