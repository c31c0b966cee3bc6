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
