/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* CU masks and places as text, and the order of the bits. */

#include <errno.h>
#include <string.h>

#include "client/output/mask-text.h"
#include "client/output/mask-variable.h"
#include "fuzz.h"
#include "made-gpus.h"
#include "util/base.h"

/* What is written is read back as the same mask. */
static void check_again(char *text, const uint32_t *mask, size_t words)
{
	uint32_t *again = NULL;
	size_t n;

	CHECK(text);
	CHECK(mask_parse(text, &again, &n) == 0);
	CHECK(n == words && memcmp(again, mask, n * sizeof(*mask)) == 0);
	free(again);
	free(text);
}

static void read_mask(const char *text)
{
	uint32_t *mask = NULL;
	size_t words;
	int r = mask_parse(text, &mask, &words);

	CHECK(r == 0 || r == -EINVAL || r == -ERANGE);
	if (r < 0)
		return;
	CHECK(words > 0);
	check_again(mask_hex(mask, words), mask, words);
	if (words > 1 || mask[0] != 0) /* the list of an empty mask is "" */
		check_again(mask_list(mask, words), mask, words);
	free(mask);
}

static void read_places(const struct model *model, const char *text)
{
	struct cuset set, again;
	char why[200] = "", *written;
	int r = places_parse(model, text, &set, why, sizeof(why));

	CHECK(r == 0 || (r == -EINVAL && why[0]));
	if (r < 0)
		return;
	CHECK(!cuset_empty(&set) && cuset_within(&set, &model->all));
	written = places_format(model, &set);
	CHECK(written && places_parse(model, written, &again, why, sizeof(why)) == 0);
	CHECK(cuset_equal(&set, &again));
	free(written);
}

static void read_variables(const char *text)
{
	struct variable_masks masks;

	CHECK(variable_parse_hsa(text, 4, 304, &masks) == 0);
	CHECK(strlen(masks.problem) < sizeof(masks.problem));
	for (unsigned step = 1; step <= 2; step++) {
		variable_parse_global(text, 304, step, &masks);
		CHECK(masks.set[0] == !*masks.problem);
	}
}

/* The first byte selects the GPU of a place. */
FUZZ(mask)
{
	char *text = fuzz_text(data, size);

	read_mask(text);
	read_variables(text);
	for (unsigned i = 0; i < PLAY_SHAPES && size > 0; i++) {
		struct gpu_info info = play_gpu("0000:03:00.0", i);
		struct model model;

		model_init(&model, &info.geometry);
		read_places(&model, text);
	}
	free(text);
}

/* ---- the codec ----------------------------------------------------------------------------- */

static struct geometry any_geometry(struct fuzz_input *input)
{
	struct geometry geometry = {
		.xccs = fuzz_below(input, CUSET_XCCS + 2),
		.engines = fuzz_below(input, CUSET_ENGINES + 2),
		.arrays = fuzz_below(input, CUSET_ARRAYS + 2),
		.array_cus = fuzz_below(input, CUSET_ARRAY_CUS + 2),
		.wgp = fuzz_below(input, 2),
	};
	unsigned evenly = fuzz_below(input, 4), cus = fuzz_below(input, 1025);

	if (evenly > 0) {
		(void)geometry_spread(&geometry, cus);
		return geometry;
	}
	for (unsigned xcc = 0; xcc < CUSET_XCCS; xcc++)
		for (unsigned engine = 0; engine < CUSET_ENGINES; engine++)
			for (unsigned array = 0; array < CUSET_ARRAYS; array++)
				geometry.active[xcc][engine][array] = (uint8_t)fuzz_number(input,
											   1);
	return geometry;
}

/* A mask that the kernel takes, and one of the whole GPU. */
static void check_mask(const struct codec *codec, const struct geometry *geometry,
		       const uint32_t *mask, size_t n_words)
{
	uint32_t again[CODEC_WORDS] = { 0 };
	struct cuset set, whole, same, occupied;
	char why[200] = "";
	int r = codec_check(codec, geometry, mask, n_words, why, sizeof(why));

	CHECK(r == 0 || (r == -EINVAL && why[0]));
	codec_decode(codec, mask, n_words, &set);
	geometry_all(geometry, &whole);
	CHECK(cuset_within(&set, &whole));
	if (r == 0)
		CHECK(geometry_on_every_xcc(geometry, &set));
	codec_encode(codec, &set, again);
	codec_decode(codec, again, codec_words(codec), &same);
	CHECK(cuset_equal(&set, &same));
	geometry_occupied(geometry, &set, &occupied); /* an XCC without a bit has no mask */
	CHECK(geometry_effective(geometry, &set) <= cuset_count(&occupied));
}

FUZZ(codec)
{
	struct fuzz_input input = { data, data + size };
	struct geometry geometry = any_geometry(&input);
	uint32_t mask[CODEC_WORDS + 2], registers[CUSET_PAIRS];
	struct codec codec;
	struct cuset set;
	char why[200] = "";
	size_t n = 0;

	if (geometry_check(&geometry, why, sizeof(why)) < 0) {
		CHECK(why[0]);
		return;
	}
	codec_init(&codec, &geometry);
	CHECK(codec.n_bits == min_u(geometry_cus(&geometry), CODEC_BITS));
	CHECK(codec_words(&codec) <= CODEC_WORDS);
	for (size_t i = 0; i < CUSET_PAIRS; i++)
		registers[i] = (uint32_t)fuzz_number(&input, 4);
	observed_mask_from_words(&geometry, registers, &set);
	while (input.at < input.end && n < ARRAY_SIZE(mask))
		mask[n++] = (uint32_t)fuzz_number(&input, 4);
	check_mask(&codec, &geometry, mask, n);
}
