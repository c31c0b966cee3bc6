/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/mask/codec.h"
#include "kfdsim/test/text-rig.h"
#include "seed.h"

/* A queue on a GPU of its own, masked and mapped. */
struct mapped {
	struct sim_gpu gpu;
	struct sim_queue queue;
};

/* The mask as one hexadecimal number, as wide as the GPU or as bits says. */
static void map(struct mapped *mapped, const struct gpu_info *info, unsigned bits, const char *hex)
{
	size_t length = strlen(hex);

	memset(mapped, 0, sizeof(*mapped));
	mapped->gpu.info = *info;
	mapped->queue.gpu = &mapped->gpu;
	mapped->queue.mask_bits = bits;
	for (size_t i = 0; i < length; i++) {
		char digit[2] = { hex[length - 1 - i] };

		mapped->queue.mask[i / 8] |= (uint32_t)strtoul(digit, NULL, 16) << i % 8 * 4;
	}
	sim_mask_map(&mapped->queue);
}

static bool engines_are(const struct mapped *mapped, unsigned xcc, uint32_t a, uint32_t b,
			uint32_t c, uint32_t d)
{
	const uint32_t *words = mapped->queue.engines[xcc];

	if (words[0] == a && words[1] == b && words[2] == c && words[3] == d)
		return true;
	fprintf(stderr, "XCC %u: 0x%x 0x%x 0x%x 0x%x\n", xcc, words[0], words[1], words[2],
		words[3]);
	return false;
}

static void set_bit(struct sim_queue *queue, unsigned bit)
{
	queue->mask[bit / 32] |= 1U << bit % 32;
}

TEST(unmasked_queue_may_use_every_cu)
{
	struct gpu_info info = rig_mi300x();
	struct mapped mapped;

	map(&mapped, &info, 0, "");
	for (unsigned xcc = 0; xcc < SIM_XCCS; xcc++)
		for (unsigned engine = 0; engine < SIM_ENGINES; engine++)
			CHECK(mapped.queue.engines[xcc][engine] == UINT32_MAX);
}

TEST(mask_bits_alternate_over_the_engines)
{
	struct gpu_info info = rig_radeon_vii();
	struct mapped mapped;

	map(&mapped, &info, 64, "f");
	CHECK(engines_are(&mapped, 0, 1, 1, 1, 1));
	map(&mapped, &info, 64, "111111111111111");
	CHECK(engines_are(&mapped, 0, 0x7fff, 0, 0, 0));
	map(&mapped, &info, 64, "3fffffff");
	CHECK(engines_are(&mapped, 0, 0xff, 0xff, 0x7f, 0x7f));
	map(&mapped, &info, 64, "555555555555555");
	CHECK(engines_are(&mapped, 0, 0x7fff, 0, 0x7fff, 0));
	map(&mapped, &info, 64, "d55555555555555");
	CHECK(engines_are(&mapped, 0, 0x7fff, 0, 0x7fff, 0x4000));
}

TEST(bits_beyond_a_short_mask_are_zero)
{
	struct gpu_info info = rig_radeon_vii();
	struct mapped mapped;

	map(&mapped, &info, 32, "ffffffff");
	CHECK(engines_are(&mapped, 0, 0xff, 0xff, 0xff, 0xff));
	map(&mapped, &info, 1024, "0");
	CHECK(engines_are(&mapped, 0, 0, 0, 0, 0));
}

TEST(bits_past_the_last_cu_mean_nothing)
{
	struct gpu_info info = rig_radeon_vii();
	struct mapped mapped;

	map(&mapped, &info, 64, "f000000000000000");
	CHECK(engines_are(&mapped, 0, 0, 0, 0, 0));
	map(&mapped, &info, 128, "ffffffffffffffffffffffffffffffff");
	CHECK(engines_are(&mapped, 0, 0x7fff, 0x7fff, 0x7fff, 0x7fff));
}

TEST(an_engine_without_cus_left_is_skipped)
{
	static const uint8_t cus[] = { 14, 14, 13, 13, 12, 13, 13, 12 };
	static const struct {
		unsigned bit, engine, cu;
	} tail[] = { { 0, 0, 0 },    { 95, 7, 11 },  { 96, 0, 12 },  { 99, 3, 12 },
		     { 100, 5, 12 }, { 101, 6, 12 }, { 102, 0, 13 }, { 103, 1, 13 } };
	struct gpu_info info = rig_gpu("0000:03:00.0", 90010, 1, 8, 1, 14, 104);
	struct mapped mapped;

	map(&mapped, &info, 128, "fffffffffffff");
	CHECK(engines_are(&mapped, 0, 0x7f, 0x7f, 0x7f, 0x7f));
	CHECK(mapped.queue.engines[0][4] == 0x3f && mapped.queue.engines[0][7] == 0x3f);

	for (unsigned engine = 0; engine < 8; engine++)
		info.geometry.active[0][engine][0] = cus[engine];
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++) {
		map(&mapped, &info, 128, "0");
		set_bit(&mapped.queue, tail[i].bit);
		sim_mask_map(&mapped.queue);
		for (unsigned engine = 0; engine < 8; engine++)
			CHECK(mapped.queue.engines[0][engine] ==
			      (engine == tail[i].engine ? 1U << tail[i].cu : 0));
	}
}

TEST(pairs_of_bits_switch_pairs_of_cus_from_gfx10_on)
{
	struct gpu_info info = rig_rx6900(), navi31 = rig_gpu("x", 110000, 1, 6, 2, 8, 96);
	struct mapped mapped;

	map(&mapped, &info, 96, "ff");
	CHECK(engines_are(&mapped, 0, 3, 3, 3, 3));
	map(&mapped, &info, 96, "ffff");
	CHECK(engines_are(&mapped, 0, 0x30003, 0x30003, 0x30003, 0x30003));
	map(&mapped, &info, 96, "03030303030303030303");
	CHECK(engines_are(&mapped, 0, 0x03ff03ff, 0, 0, 0));
	map(&mapped, &info, 96, "1"); /* the ioctl refuses it; the mapper turns both on */
	CHECK(engines_are(&mapped, 0, 3, 0, 0, 0));

	map(&mapped, &navi31, 96, "0");
	for (unsigned bit = 10; bit < 96; bit += 12) {
		set_bit(&mapped.queue, bit);
		set_bit(&mapped.queue, bit + 1);
	}
	sim_mask_map(&mapped.queue);
	CHECK(engines_are(&mapped, 0, 0, 0, 0, 0) && mapped.queue.engines[0][5] == 0xff00ff);
}

TEST(bits_go_to_the_xccs_before_the_engines)
{
	struct gpu_info info = rig_mi300x();
	struct mapped mapped;

	for (unsigned xcc = 0; xcc < 8; xcc++)
		for (unsigned engine = 0; engine < 4; engine++)
			info.geometry.active[xcc][engine][0] = engine % 2 ? 9 : 10;

	map(&mapped, &info, 320, "ff");
	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(engines_are(&mapped, xcc, 1, 0, 0, 0));
	map(&mapped, &info, 320, "f");
	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(engines_are(&mapped, xcc, xcc < 4, 0, 0, 0));
	map(&mapped, &info, 320, "ffffffffffffffff");
	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(engines_are(&mapped, xcc, 3, 3, 3, 3));

	map(&mapped, &info, 320, "0");
	for (unsigned bit = 0; bit < 304; bit++)
		if (bit / 8 % 4 == 0)
			set_bit(&mapped.queue, bit);
	sim_mask_map(&mapped.queue);
	for (unsigned xcc = 0; xcc < 8; xcc++)
		CHECK(engines_are(&mapped, xcc, 0x3ff, 0, 0, 0));
}

/* ---- the daemon's own dealing, which was written apart from this one ---- */

static unsigned below(unsigned n)
{
	return (unsigned)rand() % n;
}

static void random_geometry(struct gpu_info *info)
{
	struct geometry *geometry = &info->geometry;
	char problem[160];

	do {
		bool wgp = below(3) == 0;
		unsigned step = wgp ? 2 : 1;

		*geometry = (struct geometry){
			.xccs = wgp ? 1 : 1 + below(8),
			.engines = 1 + below(8),
			.arrays = 1 + below(2),
			.array_cus = step + below(17 - step),
			.wgp = wgp,
		};
		for (unsigned i = 0; i < geometry->xccs * geometry->engines; i++) {
			unsigned xcc = i / geometry->engines, engine = i % geometry->engines;

			for (unsigned array = 0; array < geometry->arrays; array++)
				geometry->active[xcc][engine][array] =
					(uint8_t)(below(geometry->array_cus / step + 1) * step);
		}
		info->gfx_target = wgp ? 100300 + 10000 * below(3) : 80003 + 10000 * below(2);
	} while (geometry_check(geometry, problem, sizeof(problem)) < 0);
}

static void check_same(const struct mapped *mapped, const struct codec *codec)
{
	const struct geometry *geometry = &mapped->gpu.info.geometry;
	struct cuset set;

	codec_decode(codec, mapped->queue.mask, mapped->queue.mask_bits / 32, &set);
	for (unsigned xcc = 0; xcc < SIM_XCCS; xcc++)
		for (unsigned engine = 0; engine < SIM_ENGINES; engine++)
			CHECK(mapped->queue.engines[xcc][engine] ==
			      (xcc < geometry->xccs ? set.pair[cuset_pair(xcc, engine)] : 0));
}

TEST(daemon_codec_agrees_on_random_gpus_and_masks)
{
	static struct mapped mapped;
	static struct codec codec;
	unsigned lit = 0;

	seed_rand(SEED_OF_RUN("MASK_SEED"));
	for (unsigned run = 0; run < 2000; run++) {
		mapped.queue.gpu = &mapped.gpu;
		random_geometry(&mapped.gpu.info);
		codec_init(&codec, &mapped.gpu.info.geometry);
		for (unsigned k = 0; k < 10; k++) {
			unsigned density = 1 + below(8);

			memset(mapped.queue.mask, 0, sizeof(mapped.queue.mask));
			mapped.queue.mask_bits = 32 * (1 + below(SIM_MASK_WORDS));
			for (unsigned bit = 0; bit < mapped.queue.mask_bits; bit++)
				if (below(8) < density)
					set_bit(&mapped.queue, bit);
			sim_mask_map(&mapped.queue);
			check_same(&mapped, &codec);
			lit += mapped.queue.engines[0][0] != 0;
		}
	}
	CHECK(lit > 1000);
}

TEST(a_word_of_a_gpu_with_wgps_has_both_bits_of_each_pair)
{
	struct gpu_info info = rig_rx6900();
	struct mapped mapped;

	seed_rand(SEED_OF_RUN("MASK_SEED"));
	for (unsigned run = 0; run < 1000; run++) {
		map(&mapped, &info, 96, "0");
		for (unsigned i = 0; i < 3; i++)
			mapped.queue.mask[i] = (uint32_t)rand();
		sim_mask_map(&mapped.queue);
		for (unsigned engine = 0; engine < 4; engine++) {
			uint32_t word = mapped.queue.engines[0][engine];

			CHECK((word & 0x55555555) == (word >> 1 & 0x55555555));
		}
	}
}
