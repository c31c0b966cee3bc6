/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-sysfs.h"

#include <stdio.h>
#include <string.h>

#include "util/base.h"

/* What follows from the target alone. Capabilities are HSA_CAP_* in kfd_topology.h: watch
 * points, the doorbells' kind, ECC and SVM, as dumps of such nodes have them. */
#define CAP_WATCH 0x00000280U
#define CAP_DOORBELL1 0x00001000U /* 4-byte doorbells of packets: before Vega */
#define CAP_DOORBELL2 0x00002000U
#define CAP_ECC 0x04100000U
#define CAP_SVM 0x08000000U
#define CAP_VEGA (CAP_WATCH | CAP_DOORBELL2 | CAP_SVM)
#define CAP_INSTINCT (CAP_VEGA | CAP_ECC)

static const struct model {
	unsigned target;
	const char *name;
	unsigned device, capability, waves, lds, firmware, sdma_firmware;
} models[] = {
	{ 80003, "polaris10", 0x67df, CAP_WATCH | CAP_DOORBELL1, 10, 64, 730, 58 },
	{ 90000, "vega10", 0x6860, CAP_VEGA, 10, 64, 472, 434 },
	{ 90006, "vega20", 0x66af, CAP_INSTINCT, 10, 64, 472, 145 },
	{ 90008, "arcturus", 0x738c, CAP_INSTINCT, 10, 64, 67, 18 },
	{ 90010, "aldebaran", 0x740f, CAP_INSTINCT, 8, 64, 92, 8 },
	{ 90402, "ip discovery", 0x74a1, CAP_INSTINCT, 8, 64, 177, 22 },
	{ 90500, "ip discovery", 0x75a0, CAP_INSTINCT, 8, 160, 45, 15 },
	{ 100300, "sienna_cichlid", 0x73af, CAP_VEGA, 16, 64, 115, 83 },
	{ 110000, "ip discovery", 0x744c, CAP_VEGA, 16, 64, 2140, 24 },
	{ 110501, "ip discovery", 0x1586, CAP_VEGA, 16, 64, 32, 14 },
	{ 120001, "ip discovery", 0x7550, CAP_VEGA, 16, 64, 2780, 844 },
};

static const struct model *model_of(unsigned target)
{
	static const struct model other = { 0, "ip discovery", 0x7fff, CAP_VEGA, 10, 64, 1, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].target == target)
			return &models[i];
	return &other;
}

struct node {
	const char *dir;
	const struct gpu_info *info;
	const struct model *model;
	unsigned number, first_cu, n_caches;
	unsigned domain, location;
	unsigned card; /* what partitions of one card share */
};

static uint32_t working_cus(const struct geometry *geometry, unsigned xcc, unsigned engine,
			    unsigned array)
{
	unsigned n = geometry->active[xcc][engine][array], off = geometry->array_cus - n;
	unsigned at = (geometry->array_cus - off) / 2;

	if (geometry->wgp)
		at &= ~1U;
	return ((1U << geometry->array_cus) - 1) & ~(((1U << off) - 1) << at);
}

/* cu_info->bitmap[xcc][engine % 4][array + engine / 4], as the driver looks at it. gfx11
 * and later put engines from 4 on two columns further, not one. */
static uint32_t seen_cus(const struct node *node, unsigned xcc, unsigned engine, unsigned array)
{
	const struct geometry *geometry = &node->info->geometry;
	unsigned column = array + engine / 4;

	if (node->info->gfx_target < 110000)
		return working_cus(geometry, xcc, engine, array);
	return working_cus(geometry, xcc, engine % 4 + column / 2 * 4, column % 2);
}

static int write_cache(struct node *node, unsigned level, unsigned id, unsigned type,
		       const char *siblings)
{
	char file[128];

	snprintf(file, sizeof(file), FAKE_NODES "/%u/caches/%u/properties", node->number,
		 node->n_caches++);
	return fake_sysfs_print(node->dir, file,
				"processor_id_low %u\nlevel %u\nsize 16\ncache_line_size 64\n"
				"cache_lines_per_tag 0\nassociation 0\nlatency 0\ntype %u\n"
				"sibling_map %s\n",
				id, level, type, siblings);
}

static size_t print_bits(char *buf, size_t n, uint32_t bits)
{
	for (unsigned i = 0; i < 32; i++) {
		if (n > 0)
			buf[n++] = ',';
		buf[n++] = bits >> i & 1 ? '1' : '0';
	}
	buf[n] = '\0';
	return n;
}

/* fill_in_l1_pcache(): a block of CUs that share, told from the first that works. */
static int write_block(struct node *node, uint32_t cus, unsigned share, unsigned id, unsigned block,
		       unsigned type)
{
	uint32_t here = cus >> block & ((1U << share) - 1);
	unsigned first;
	char siblings[80];

	if (here == 0)
		return 0;
	first = (unsigned)__builtin_ctz(here);
	print_bits(siblings, 0, here >> first);
	return write_cache(node, 1, id + block + first, type, siblings);
}

static int write_level1(struct node *node, unsigned share, unsigned type)
{
	const struct geometry *geometry = &node->info->geometry;
	unsigned id = node->first_cu;
	int r = 0;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays && r == 0; array++) {
				uint32_t cus = seen_cus(node, xcc, engine, array);

				for (unsigned k = 0; k < geometry->array_cus && r == 0; k += share)
					r = write_block(node, cus, share, id, k, type);
				id += geometry->array_cus;
			}
	return r;
}

static int write_level2(struct node *node)
{
	const struct geometry *geometry = &node->info->geometry;
	char siblings[CUSET_PAIRS * CUSET_ARRAYS * 64];
	size_t n = 0;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				n = print_bits(siblings, n, seen_cus(node, xcc, engine, array));
	return write_cache(node, 2, node->first_cu, 9, siblings);
}

/* A vector cache for each CU, instructions and scalars shared by some, from gfx10 on one
 * for each array (kfd_crat.c and kfd_fill_gpu_cache_info_from_gfx_config()). */
static int write_caches(struct node *node)
{
	unsigned target = node->info->gfx_target;
	unsigned share = target < 90000 ? 4 : target < 90008 ? 3 : 2;
	int r;

	r = write_level1(node, 1, 9);
	r = r < 0 ? r : write_level1(node, share, 10);
	r = r < 0 ? r : write_level1(node, share, 9);
	if (target >= 100000)
		r = r < 0 ? r : write_level1(node, node->info->geometry.array_cus, 9);
	return r < 0 ? r : write_level2(node);
}

static unsigned sdma_per_engine(unsigned queues)
{
	static const unsigned usual[] = { 8, 6, 2 };

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (queues % usual[i] == 0)
			return usual[i];
	return 1;
}

static int write_properties(const struct node *node)
{
	const struct gpu_info *info = node->info;
	const struct geometry *geometry = &info->geometry;
	unsigned simds = geometry->wgp ? 2 : 4, per_engine = sdma_per_engine(info->sdma_queues);
	char file[128];

	snprintf(file, sizeof(file), FAKE_NODES "/%u/properties", node->number);
	return fake_sysfs_print(
		node->dir, file,
		"cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\ncaches_count %u\n"
		"io_links_count 1\np2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base %u\n"
		"max_waves_per_simd %u\nlds_size_in_kb %u\ngds_size_in_kb 0\nnum_gws 64\n"
		"wave_front_size %u\narray_count %u\nsimd_arrays_per_engine %u\n"
		"cu_per_simd_array %u\nsimd_per_cu %u\nmax_slots_scratch_cu 32\n"
		"gfx_target_version %u\nvendor_id %u\ndevice_id %u\nlocation_id %u\ndomain %u\n"
		"drm_render_minor %u\nhive_id 0\nnum_sdma_engines %u\nnum_sdma_xgmi_engines %u\n"
		"num_sdma_queues_per_engine %u\nnum_cp_queues %u\ncwsr_size 0\n"
		"ctl_stack_size 0\nmax_engine_clk_fcompute 1700\nlocal_mem_size 0\n"
		"fw_version %u\ncapability %u\ndebug_prop 1495\nsdma_fw_version %u\n"
		"unique_id %llu\nnum_xcc %u\nmax_engine_clk_ccompute 3800\n",
		geometry_cus(geometry) * simds, node->n_caches, node->first_cu, node->model->waves,
		node->model->lds, geometry->wgp ? 32U : 64U,
		geometry->xccs * geometry->engines * geometry->arrays, geometry->arrays,
		geometry->array_cus, simds, info->gfx_target, 0x1002U, node->model->device,
		node->location, node->domain, 127 + node->number, info->sdma_queues / per_engine,
		info->sdma_xgmi_queues / per_engine, per_engine, info->queue_slots,
		node->model->firmware, node->model->capability, node->model->sdma_firmware,
		0x1122334400000000ULL | node->card, geometry->xccs);
}

/* The driver ORs the partition into the bits of the function. */
static void find_place(struct node *node, size_t i)
{
	unsigned domain = 0, bus = 3 + (unsigned)i, device = 0, function = 0, partition = 0;

	(void)sscanf(node->info->name, "%x:%x:%x.%x/%u", &domain, &bus, &device, &function,
		     &partition);
	node->domain = domain;
	node->location = bus << 8 | device << 3 | function | partition;
	node->card = domain << 16 | bus << 8 | device << 3;
}

int fake_sysfs_node(const char *dir, const struct gpu_info *info, size_t i, unsigned first_cu)
{
	struct node node = {
		.dir = dir,
		.info = info,
		.model = model_of(info->gfx_target),
		.number = (unsigned)i + 1,
		.first_cu = first_cu,
	};
	char file[128];
	int r;

	find_place(&node, i);
	snprintf(file, sizeof(file), FAKE_NODES "/%u/gpu_id", node.number);
	r = fake_sysfs_print(dir, file, "%u\n", fake_sysfs_gpu_id(info, i));
	snprintf(file, sizeof(file), FAKE_NODES "/%u/name", node.number);
	r = r < 0 ? r : fake_sysfs_print(dir, file, "%s\n", node.model->name);
	snprintf(file, sizeof(file), FAKE_NODES "/%u/mem_banks/0/properties", node.number);
	r = r < 0 ? r
		  : fake_sysfs_print(dir, file,
				     "heap_type 1\nsize_in_bytes %llu\n"
				     "flags 0\nwidth 4096\nmem_clk_max 1000\n",
				     (unsigned long long)info->vram_bytes);
	r = r < 0 ? r : fake_sysfs_link(dir, node.number, 0, 0);
	snprintf(file, sizeof(file), FAKE_NODES "/%u/p2p_links", node.number);
	r = r < 0 ? r : fake_sysfs_mkdir(dir, file);
	r = r < 0 ? r : write_caches(&node);
	return r < 0 ? r : write_properties(&node);
}
