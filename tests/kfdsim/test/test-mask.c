/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/mask/codec.h"
#include "kfdsim/test/text-rig.h"
#include "seed.h"

/* A queue on a GPU of its own, masked and mapped. */
struct mapped {
	struct sim_gpu gpu;
	struct sim_queue queue;
};

static void set_bit(struct sim_queue *queue, unsigned bit)
{
	queue->mask[bit / 32] |= 1U << bit % 32;
}

/* The daemon's own dealing was written apart from this one. */

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
