/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/gpu-info.h"

#include <errno.h>

#include "check.h"
#include "core/mask/codec.h"
#include "random-geometry.h"
#include "seed.h"
#include "util/base.h"

TEST(gfx_targets_are_named_as_compilers_name_them)
{
	static const struct {
		unsigned target;
		const char *name;
	} rows[] = {
		{ 80003, "gfx803" },   { 90006, "gfx906" },   { 90010, "gfx90a" },
		{ 90402, "gfx942" },   { 100300, "gfx1030" }, { 110501, "gfx1151" },
		{ 120001, "gfx1201" },
	};
	char name[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gpu_info_target_name(rows[i].target, name, sizeof(name));
		CHECK(strcmp(name, rows[i].name) == 0);
	}
}

TEST(a_target_name_is_cut_to_the_room_there_is)
{
	char name[4] = "xxx";

	gpu_info_target_name(90006, name, sizeof(name));
	CHECK(strcmp(name, "gfx") == 0);
}

TEST(each_scheduler_is_found_by_its_word)
{
	static const char *const words[] = { "unknown", "hws", "hws-strict", "none", "mes" };

	for (enum scheduler s = SCHEDULER_UNKNOWN; s <= SCHEDULER_MES; s++) {
		CHECK(strcmp(scheduler_names[s], words[s]) == 0);
		CHECK(scheduler_from_name(words[s]) == (int)s);
	}
	CHECK(scheduler_from_name("HWS") == -EINVAL && scheduler_from_name("") == -EINVAL);
}

TEST(names_of_targets_are_read_back)
{
	static const unsigned targets[] = { 80003, 90006,  90010,  90402,
					    90500, 100300, 110501, 120001 };
	static const char *const bad[] = { "",    "gfx",    "gfx9",   "gfx90",  "gfx90600",
					   "906", "gfxa06", "gfx90g", "gfx 906" };
	char name[16];

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		gpu_info_target_name(targets[i], name, sizeof(name));
		CHECK(gpu_info_target_from_name(name) == targets[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(gpu_info_target_from_name(bad[i]) == 0);
}

static struct gpu_info guessed(const struct geometry *real)
{
	struct gpu_info info = { .geometry = *real, .guessed = true };

	CHECK(geometry_spread(&info.geometry, geometry_cus(real)) == 0);
	return info;
}

/* What a random mask has on the GPU as it is assumed, and as it is. Returns its CUs. */
static unsigned draw_mask(const struct geometry *assumed, const struct geometry *real,
			  unsigned ret_effective[static 2])
{
	uint32_t mask[CODEC_WORDS];
	struct codec codec;
	struct cuset set;
	unsigned density = below(4), engine = below(8);

	for (unsigned i = 0; i < CODEC_WORDS; i++)
		mask[i] = density < 2 ? (uint32_t)(mrand48() & mrand48()) : (uint32_t)mrand48();
	codec_init(&codec, assumed);
	codec_decode(&codec, mask, CODEC_WORDS, &set);
	if (density == 3) { /* whole engines */
		geometry_all(assumed, &set);
		for (unsigned i = 0; i < ARRAY_SIZE(set.pair); i++)
			set.pair[i] = i % 8 > engine ? 0 : set.pair[i];
	}
	ret_effective[0] = geometry_effective(assumed, &set);
	codec_encode(&codec, &set, mask);
	codec_init(&codec, real);
	codec_decode(&codec, mask, codec_words(&codec), &set);
	ret_effective[1] = geometry_effective(real, &set);
	return cuset_count(&set);
}

TEST(promised_effective_cus_hold_on_every_harvest)
{
	seed_rand(SEED_OF_RUN("SEED"));
	for (unsigned i = 0; i < 20000; i++) {
		struct geometry real = random_geometry();
		unsigned cus = geometry_cus(&real), effective[2], n;
		struct gpu_info info;

		if (cus > CODEC_BITS)
			continue;
		info = guessed(&real);
		n = draw_mask(&info.geometry, &real, effective);
		if (n == cus || n == 0) /* with several XCCs, bits can stand for no CU */
			continue;
		CHECK(gpu_info_promised(&info, n, effective[0]) <= effective[1]);
		CHECK(gpu_info_promised(&info, n, effective[0]) > 0);
	}
}

/* An RX 7900 GRE: 42 CUs can be two engines of 16, one of 8 and one of 2. */
TEST(no_less_is_promised_than_holds)
{
	struct geometry real = {
		.xccs = 1, .engines = 6, .arrays = 2, .array_cus = 8, .wgp = true
	};
	struct gpu_info info;

	memset(real.active[0], 0, sizeof(real.active[0]));
	for (unsigned e = 0; e < 5; e++)
		real.active[0][e][0] = real.active[0][e][1] = 8;
	info = guessed(&real);
	CHECK(gpu_info_promised(&info, 42, 42) == 8 && gpu_info_promised(&info, 16, 16) == 4);
	CHECK(gpu_info_promised(&info, 2, 2) == 2 && gpu_info_promised(&info, 80, 80) == 80);
	CHECK(gpu_info_promised(&info, 78, 78) == 12);
	info.guessed = false;
	CHECK(gpu_info_promised(&info, 42, 42) == 42);
}
