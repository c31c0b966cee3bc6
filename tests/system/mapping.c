/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * mapping MASKS SEED: the kernel's mapping function, which tests/system/mapping takes out of the
 * kernel's source, beside core's codec. Prints how many masks differ, and the first that does.
 */

#include <stdlib.h>
#include <string.h>

#include "core/mask/codec.h"
#include "mapping-kernel.h"
#include "random-geometry.h"

#define MASKS_OF_A_GPU 100

/* A driver puts engines from 4 on into further columns; gfx9 and gfx10 have none for a second
 * array of such an engine. */
static bool fits(const struct geometry *geometry, uint32_t version)
{
	bool twice = version >= IP_VERSION(11, 0, 0);

	return geometry->xccs <= XCCS && (twice || geometry->engines <= 4 || geometry->arrays == 1);
}

static uint32_t random_version(bool wgp)
{
	static const uint32_t with[] = { IP_VERSION(10, 3, 0), IP_VERSION(11, 0, 0),
					 IP_VERSION(11, 5, 1) };
	static const uint32_t without[] = { IP_VERSION(9, 0, 1), IP_VERSION(9, 4, 2),
					    IP_VERSION(9, 4, 3) };

	return wgp ? with[below(3)] : without[below(3)];
}

static void random_machine(struct machine *machine, struct geometry *geometry)
{
	uint32_t version;
	unsigned step;

	do {
		*geometry = random_geometry();
		version = random_version(geometry->wgp);
	} while (!fits(geometry, version));
	memset(machine, 0, sizeof(*machine));
	step = version >= IP_VERSION(11, 0, 0) ? 2 : 1;
	machine_fill(machine, geometry->engines, geometry->arrays, geometry_cus(geometry),
		     geometry->xccs, version);
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				*machine_bitmap(machine, xcc, engine % 4,
						array + engine / 4 * step) =
					(1U << geometry->active[xcc][engine][array]) - 1;
}

/* Of any density and length, in whole words; with WGPs in whole pairs, as the ioctl wants them. */
static unsigned random_mask(uint32_t mask[CODEC_WORDS], bool wgp)
{
	unsigned words = 1 + below(CODEC_WORDS), density = 1 + below(16);

	memset(mask, 0, CODEC_WORDS * sizeof(mask[0]));
	for (unsigned bit = 0; bit < words * 32; bit += wgp ? 2 : 1)
		if (below(16) < density)
			mask[bit / 32] |= (wgp ? 3U : 1U) << bit % 32;
	return words;
}

static bool same(struct machine *machine, const struct geometry *geometry,
		 const struct codec *codec, const uint32_t *mask, unsigned words)
{
	struct cuset set;

	codec_decode(codec, mask, words, &set);
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++) {
		uint32_t kernel[KFD_MAX_NUM_SE] = { 0 };

		MAP(machine, mask, words * 32, kernel, xcc);
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			if (kernel[engine] != set.pair[cuset_pair(xcc, engine)]) {
				printf("XCC %u engine %u: the kernel has 0x%08x, the codec 0x%08x\n",
				       xcc, engine, kernel[engine],
				       set.pair[cuset_pair(xcc, engine)]);
				return false;
			}
	}
	return true;
}

int main(int argc, char *argv[])
{
	unsigned long n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, differ = 0;
	struct geometry geometry;
	struct machine machine;
	struct codec codec;

	if (n == 0) {
		fprintf(stderr, "mapping MASKS SEED\n");
		return 2;
	}
	srand48(strtol(argv[2], NULL, 10));
	for (unsigned long i = 0; i < n; i++) {
		uint32_t mask[CODEC_WORDS];
		unsigned words;

		if (i % MASKS_OF_A_GPU == 0) {
			random_machine(&machine, &geometry);
			codec_init(&codec, &geometry);
		}
		words = random_mask(mask, geometry.wgp);
		if (same(&machine, &geometry, &codec, mask, words))
			continue;
		if (differ++ == 0)
			printf("mask %lu is the first that differs: %u XCCs, %u engines, %u arrays\n",
			       i, geometry.xccs, geometry.engines, geometry.arrays);
	}
	printf("%lu masks with seed %s: %lu differ\n", n, argv[2], differ);
	return differ > 0;
}
