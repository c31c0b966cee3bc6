// SPDX-License-Identifier: LGPL-2.1-or-later
/* The GPUs that the module can be. The figures are of the GPUs named in daemon/hw and its tests. */
#include <linux/bitops.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "fake.h"

static char *gpus[FAKE_CARDS] = { "gfx90a" };
static int n_gpus = 1;
module_param_array(gpus, charp, &n_gpus, 0444);
MODULE_PARM_DESC(gpus, "the kind of each GPU, with the number of XCCs behind an x: gfx90a,gfx942x8");

static uint fused[FAKE_CARDS];
module_param_array(fused, uint, NULL, 0444);
MODULE_PARM_DESC(fused, "of each GPU, a seed by which more CUs are fused off, anywhere; 0: none");

#define GRAPHICS_VMIDS	0xff00
#define COMPUTE_VMIDS	0xfff8

static const struct fake_geometry geometries[] = {
	{
		.name = "gfx906", .gc = IP_VERSION(9, 4, 0), .sdma = IP_VERSION(4, 2, 0),
		.asic = CHIP_VEGA20, .xccs = 1, .engines = 4, .arrays = 1, .cus_on_die = 16,
		.cus = { 15, 15 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 2, .vmids = GRAPHICS_VMIDS,
	},
	{
		.name = "gfx908", .gc = IP_VERSION(9, 4, 1), .sdma = IP_VERSION(4, 2, 2),
		.asic = CHIP_ARCTURUS, .xccs = 1, .engines = 8, .arrays = 1, .cus_on_die = 16,
		.cus = { 15, 15 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 8, .vmids = COMPUTE_VMIDS, .xgmi = true,
	},
	{
		.name = "gfx90a", .gc = IP_VERSION(9, 4, 2), .sdma = IP_VERSION(4, 4, 0),
		.asic = CHIP_ALDEBARAN, .xccs = 1, .engines = 8, .arrays = 1, .cus_on_die = 14,
		.cus = { 13, 13 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 5, .vmids = COMPUTE_VMIDS, .xgmi = true,
	},
	{
		.name = "gfx942", .gc = IP_VERSION(9, 4, 3), .sdma = IP_VERSION(4, 4, 2),
		.asic = CHIP_IP_DISCOVERY, .xccs = 1, .engines = 4, .arrays = 1, .cus_on_die = 10,
		.cus = { 10, 9 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 2, .vmids = COMPUTE_VMIDS, .xgmi = true,
	},
	{
		.name = "gfx942x6", .gc = IP_VERSION(9, 4, 3), .sdma = IP_VERSION(4, 4, 2),
		.asic = CHIP_IP_DISCOVERY, .xccs = 6, .engines = 4, .arrays = 1, .cus_on_die = 10,
		.cus = { 10, 9 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 12, .vmids = COMPUTE_VMIDS, .xgmi = true,
	},
	{
		.name = "gfx942x8", .gc = IP_VERSION(9, 4, 3), .sdma = IP_VERSION(4, 4, 2),
		.asic = CHIP_IP_DISCOVERY, .xccs = 8, .engines = 4, .arrays = 1, .cus_on_die = 10,
		.cus = { 10, 9 }, .pipes = 4, .queues = 8, .kernel_queues = 2,
		.sdma_engines = 16, .vmids = COMPUTE_VMIDS, .xgmi = true,
	},
	{
		.name = "gfx1030", .gc = IP_VERSION(10, 3, 0), .sdma = IP_VERSION(5, 2, 0),
		.asic = CHIP_SIENNA_CICHLID, .xccs = 1, .engines = 4, .arrays = 2,
		.cus_on_die = 10, .cus = { 10, 10 }, .pipes = 4, .queues = 4, .kernel_queues = 2,
		.sdma_engines = 2, .vmids = GRAPHICS_VMIDS, .wgp = true,
	},
	{
		.name = "gfx1100", .gc = IP_VERSION(11, 0, 0), .sdma = IP_VERSION(6, 0, 0),
		.asic = CHIP_IP_DISCOVERY, .xccs = 1, .engines = 6, .arrays = 2, .cus_on_die = 8,
		.cus = { 8, 8 }, .pipes = 4, .queues = 4, .kernel_queues = 2,
		.sdma_engines = 2, .vmids = GRAPHICS_VMIDS, .wgp = true,
	},
	{
		.name = "gfx1151", .gc = IP_VERSION(11, 5, 1), .sdma = IP_VERSION(6, 1, 1),
		.asic = CHIP_IP_DISCOVERY, .xccs = 1, .engines = 2, .arrays = 2, .cus_on_die = 10,
		.cus = { 10, 10 }, .pipes = 4, .queues = 4, .kernel_queues = 2,
		.sdma_engines = 1, .vmids = GRAPHICS_VMIDS, .wgp = true,
	},
	{
		.name = "gfx1201", .gc = IP_VERSION(12, 0, 1), .sdma = IP_VERSION(7, 0, 1),
		.asic = CHIP_IP_DISCOVERY, .xccs = 1, .engines = 4, .arrays = 2, .cus_on_die = 8,
		.cus = { 8, 8 }, .pipes = 2, .queues = 4, .kernel_queues = 2,
		.sdma_engines = 2, .vmids = GRAPHICS_VMIDS, .wgp = true,
	},
};

unsigned int fake_cards(void)
{
	return n_gpus;
}

const struct fake_geometry *fake_geometry_find(unsigned int card)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(geometries); i++)
		if (strcmp(geometries[i].name, gpus[card]) == 0)
			return &geometries[i];
	pr_err("fake GPU: it cannot be a '%s'\n", gpus[card]);
	return NULL;
}

/* Columns of engines: those from the fifth on are further columns, where there is one XCC. */
static uint32_t *array_of(struct fake_cus *cus, const struct fake_geometry *geometry,
			  int xcc, int engine, int array)
{
	int columns = geometry->gc >= IP_VERSION(11, 0, 0) ? 2 : 1;

	return &cus->bitmap[xcc][engine % 4][array + engine / 4 * columns];
}

/* Fuses off up to two CUs, or one WGP, at any place. */
static uint32_t fuse(uint32_t cus, const struct fake_geometry *geometry, struct rnd_state *random)
{
	int i, step = geometry->wgp ? 2 : 1;

	for (i = prandom_u32_state(random) % (4 - step); i > 0; i--)
		cus &= ~((geometry->wgp ? 3U : 1U)
			 << prandom_u32_state(random) % (geometry->cus_on_die / step) * step);
	return cus;
}

void fake_geometry_fuse(const struct fake_geometry *geometry, unsigned int card,
			struct fake_cus *ret)
{
	int i, all = geometry->xccs * geometry->engines * geometry->arrays;
	struct rnd_state random;

	ret->simd_per_cu = geometry->wgp ? 2 : 4;
	ret->max_waves_per_simd = geometry->wgp ? 16 : geometry->gc > IP_VERSION(9, 4, 1) ? 8 : 10;
	ret->wave_front_size = geometry->wgp ? 32 : 64;
	prandom_seed_state(&random, fused[card]);
	for (i = 0; i < all; i++) {
		int engine = i / geometry->arrays % geometry->engines;
		uint32_t *array = array_of(ret, geometry, i / geometry->arrays / geometry->engines,
					   engine, i % geometry->arrays);

		*array = (1U << geometry->cus[engine % 2]) - 1;
		if (fused[card])
			*array = fuse(*array, geometry, &random);
		ret->number += hweight32(*array);
	}
}
