/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static unsigned value(const struct kfd_node *node, enum kfd_key key)
{
	return (unsigned)node->value[key];
}

static int left_out(const struct kfd_node *node, const char *why, struct diagnostics *diagnostics)
{
	diagnostics_add(diagnostics, true, "%s/properties: %s; this GPU is left out", node->path,
			why);
	return -EBADMSG;
}

/* array_count is that of all XCCs together, simd_arrays_per_engine the arrays of one
 * engine, simd_count the SIMDs of the CUs that work (node_show() in kfd_topology.c). */
static int read_shape(const struct kfd_node *node, struct geometry *ret, unsigned *ret_cus,
		      struct diagnostics *diagnostics)
{
	struct geometry shape = {
		.xccs = node->has[KFD_XCCS] ? value(node, KFD_XCCS) : 1,
		.arrays = value(node, KFD_ARRAYS_PER_ENGINE),
		.array_cus = value(node, KFD_CU_PER_ARRAY),
		.wgp = kfd_target_wgp(value(node, KFD_TARGET)),
	};
	unsigned per_engine = shape.xccs * shape.arrays, per_cu = value(node, KFD_SIMD_PER_CU);
	char why[160];

	if (per_engine == 0 || value(node, KFD_ARRAY_COUNT) % per_engine != 0)
		return left_out(node,
				"array_count is no multiple of num_xcc x "
				"simd_arrays_per_engine",
				diagnostics);
	if (per_cu == 0 || value(node, KFD_SIMD_COUNT) % per_cu != 0)
		return left_out(node, "simd_count is no multiple of simd_per_cu", diagnostics);

	shape.engines = value(node, KFD_ARRAY_COUNT) / per_engine;
	*ret_cus = value(node, KFD_SIMD_COUNT) / per_cu;
	if (geometry_spread(&shape, *ret_cus) < 0) {
		snprintf(why, sizeof(why),
			 "%u CUs do not fit %u XCCs of %u shader engines of %u "
			 "arrays of %u CUs%s",
			 *ret_cus, shape.xccs, shape.engines, shape.arrays, shape.array_cus,
			 shape.wgp ? " in pairs" : "");
		return left_out(node, why, diagnostics);
	}
	if (geometry_check(&shape, why, sizeof(why)) < 0)
		return left_out(node, why, diagnostics);
	*ret = shape;
	return 0;
}

/* Why the caches say nothing of the harvest, or NULL. With more than four engines per XCC
 * gfx11 and gfx12 keep theirs in other columns of cu_info->bitmap than the code that makes
 * the entries looks at (kfd_fill_cache_non_crat_info(), gfx_v11_0_get_cu_info()). */
static const char *caches_useless(const struct kfd_node *node, const struct geometry *geometry)
{
	if (kfd_target_mes(value(node, KFD_TARGET)) && geometry->engines > 4)
		return "the driver writes wrong entries for shader engines 4 and up here";
	if (!node->has[KFD_SIMD_ID_BASE])
		return "of no use without simd_id_base in properties";
	return NULL;
}

/* A GPU with all of its CUs has nothing to find out. */
static bool read_harvest(const struct kfd_dir *dir, const struct kfd_node *node, unsigned cus,
			 struct geometry *geometry, struct diagnostics *diagnostics)
{
	char why[800];
	const char *useless = caches_useless(node, geometry);

	if (cus == geometry->xccs * geometry->engines * geometry->arrays * geometry->array_cus)
		return true;
	if (useless)
		snprintf(why, sizeof(why), "%s/caches: %s", dir->path, useless);
	else if (kfd_caches_read(dir, node->value[KFD_SIMD_ID_BASE], cus, geometry, why,
				 sizeof(why)) == 0)
		return true;

	diagnostics_add(diagnostics, false, "%s; its %u CUs are taken to be spread evenly", why,
			cus);
	return false;
}

/* heap_type 1 and 2 are VRAM that the CPU sees, and that it does not. */
static void read_bank(const struct kfd_dir *banks, unsigned number, uint64_t *bytes,
		      struct diagnostics *diagnostics)
{
	char name[32], text[KFD_TEXT];
	uint64_t heap, size;
	int r;

	snprintf(name, sizeof(name), "%u/properties", number);
	r = kfd_read(banks, name, text, sizeof(text));
	if (r == 0)
		r = kfd_property_number(text, "heap_type", UINT32_MAX, &heap);
	if (r == 0)
		r = kfd_property_number(text, "size_in_bytes", UINT64_MAX >> 8, &size);
	if (r < 0) {
		diagnostics_add(diagnostics, false, "%s/%s: %s; this VRAM is not counted",
				banks->path, name, kfd_trouble(r));
		return;
	}
	if (heap == 1 || heap == 2)
		*bytes += size;
}

static uint64_t read_vram(const struct kfd_dir *dir, struct diagnostics *diagnostics)
{
	_cleanup_dir_ struct kfd_dir banks = KFD_DIR_NONE;
	unsigned numbers[64];
	uint64_t bytes = 0;
	int n;

	n = kfd_dir_open(dir, "mem_banks", &banks);
	if (n == 0)
		n = kfd_dir_numbers(&banks, numbers, ARRAY_SIZE(numbers));
	if (n < 0) {
		diagnostics_add(diagnostics, false, "%s/mem_banks: %s; its VRAM is unknown",
				dir->path, kfd_trouble(n));
		return 0;
	}
	for (int i = 0; i < n; i++)
		read_bank(&banks, numbers[i], &bytes, diagnostics);
	return bytes;
}

static unsigned queue_slots(const struct kfd_node *node, struct diagnostics *diagnostics)
{
	unsigned slots = value(node, KFD_CP_QUEUES);

	if (slots > 0)
		return slots;
	slots = kfd_target_queue_slots(value(node, KFD_TARGET));
	diagnostics_add(diagnostics, false,
			"%s/properties: num_cp_queues: missing; %u is usual for this "
			"generation",
			node->path, slots);
	return slots;
}

/* Two queues an engine are what the first parts had (kfd_device_info_set_sdma_info()). */
static unsigned sdma_queues(const struct kfd_node *node, struct diagnostics *diagnostics)
{
	unsigned engines = value(node, KFD_SDMA_ENGINES) + value(node, KFD_SDMA_XGMI_ENGINES);

	if (node->has[KFD_SDMA_QUEUES])
		return engines * value(node, KFD_SDMA_QUEUES);
	diagnostics_add(diagnostics, false,
			"%s/properties: num_sdma_queues_per_engine: missing; taken as 2",
			node->path);
	return engines * 2;
}

static void write_device(const struct kfd_node *node, char *buf, size_t size)
{
	char target[16];

	gpu_info_target_name(value(node, KFD_TARGET), target, sizeof(target));
	if (node->has[KFD_VENDOR] && node->has[KFD_DEVICE])
		snprintf(buf, size, "%s (%04x:%04x)", node->name[0] ? node->name : target,
			 value(node, KFD_VENDOR), value(node, KFD_DEVICE));
	else
		snprintf(buf, size, "%s", node->name[0] ? node->name : target);
}

int kfd_gpu_read(const struct kfd_dir *dir, const struct kfd_node *node, struct gpu_info *ret,
		 struct diagnostics *diagnostics)
{
	struct gpu_info info = {
		.gfx_target = value(node, KFD_TARGET),
		.kfd_gpu_id = node->gpu_id,
	};
	unsigned cus;
	int r;

	r = read_shape(node, &info.geometry, &cus, diagnostics);
	if (r < 0)
		return r;

	write_device(node, info.device, sizeof(info.device));
	info.harvest_known = read_harvest(dir, node, cus, &info.geometry, diagnostics);
	info.law_measured = info.gfx_target == 90006;
	info.queue_slots = queue_slots(node, diagnostics);
	info.pipes = kfd_target_pipes(info.gfx_target);
	info.queues_per_pipe = kfd_target_queues_per_pipe(info.gfx_target);
	info.sdma_queues = sdma_queues(node, diagnostics);
	info.vram_bytes = read_vram(dir, diagnostics);
	*ret = info;
	return 0;
}

/* MES keeps house by itself: who schedules, and how many at once, does not reach it. */
void kfd_gpu_finish(const struct kfd_node *node, const struct kfd_parameters *parameters,
		    struct gpu_info *info)
{
	bool cpx = node->partitioned && info->geometry.xccs == 1;

	kfd_node_name(node, info->name, sizeof(info->name));
	info->process_slots = kfd_target_process_slots(info->gfx_target, cpx);
	info->preemption_msec = parameters->preemption_msec;
	info->scheduler = SCHEDULER_MES;
	if (kfd_target_mes(info->gfx_target))
		return;
	info->scheduler = parameters->scheduler;
	info->process_slots = min_u(info->process_slots, parameters->max_processes);
}
