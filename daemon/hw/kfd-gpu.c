/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/mask/codec.h"

/* ---- properties that follow from the gfx target, as KFD writes it: 90006 for gfx906 -- */

/* Pipes and queues of one MEC: gfx_v*_sw_init() in amdgpu. KFD gets the queues of the first MEC
 * except those of the kernel's own rings, two of each pipe. */
struct generation {
	unsigned from; /* the first target */
	unsigned pipes, queues_per_pipe;
};

static const struct generation generations[] = {
	{ 0, 4, 8 },
	{ 100300, 4, 4 },
	{ 120000, 2, 4 },
};

static const struct generation *generation(unsigned target)
{
	const struct generation *last = &generations[0];

	for (size_t i = 1; i < ARRAY_SIZE(generations); i++)
		if (target >= generations[i].from)
			last = &generations[i];
	return last;
}

/* Whether the GPU can be partitioned: gfx 9.4.x as LLVM counts them, and 9.5 (the MI300 family). */
static bool target_splits(unsigned target)
{
	return target >= 90400 && target < 100000;
}

/* Whether two bits of a mask stand for a WGP. On gfx12.1 one does. */
static bool target_wgp(unsigned target)
{
	return target >= 100000 && (target < 120100 || target >= 120600);
}

static bool target_mes(unsigned target)
{
	return target >= 110000;
}

/* VMIDs of KFD: 8..15 beside graphics, 3..15 without graphics (gmc_v9_0.c, gmc_v9_0_sw_init()). In
 * CPX mode two nodes share them (kfd_device.c, kgd2kfd_device_init()). */
static unsigned target_process_slots(unsigned target, bool cpx)
{
	if (target_splits(target))
		return cpx ? 6 : 13;
	return target == 90008 || target == 90010 ? 13 : 8;
}

/* ---- nodes --------------------------------------------------------------------------- */

/* Other properties are ignored: each release of the driver adds some. */
static const struct {
	const char *name;
	uint64_t max;
	bool required;
} properties[KFD_KEYS] = {
	[KFD_CPU_CORES] = { "cpu_cores_count", 65536, false },
	[KFD_SIMD_COUNT] = { "simd_count", 65536, true },
	[KFD_SIMD_PER_CU] = { "simd_per_cu", 64, true },
	[KFD_SIMD_ID_BASE] = { "simd_id_base", UINT32_MAX, false },
	[KFD_ARRAY_COUNT] = { "array_count", 65536, true },
	[KFD_ARRAYS_PER_ENGINE] = { "simd_arrays_per_engine", 65536, true },
	[KFD_CU_PER_ARRAY] = { "cu_per_simd_array", 65536, true },
	[KFD_XCCS] = { "num_xcc", 64, false },
	[KFD_TARGET] = { "gfx_target_version", 999999, false },
	[KFD_VENDOR] = { "vendor_id", UINT16_MAX, false },
	[KFD_DEVICE] = { "device_id", UINT16_MAX, false },
	[KFD_LOCATION] = { "location_id", UINT32_MAX, true },
	[KFD_DOMAIN] = { "domain", UINT32_MAX, false },
	[KFD_SDMA_ENGINES] = { "num_sdma_engines", 256, false },
	[KFD_SDMA_XGMI_ENGINES] = { "num_sdma_xgmi_engines", 256, false },
	[KFD_SDMA_QUEUES] = { "num_sdma_queues_per_engine", 256, false },
	[KFD_CP_QUEUES] = { "num_cp_queues", 1024, false },
	[KFD_RENDER_MINOR] = { "drm_render_minor", UINT32_MAX, false },
};

static int bad_property(const struct kfd_node *node, const char *key, int error,
			struct diagnostics *diagnostics)
{
	diagnostics_add(diagnostics, true, "%s/properties: %s: %s; this GPU is left out",
			node->path, key, kfd_trouble(error));
	return error;
}

static int read_values(struct kfd_node *node, const char *text, struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < KFD_KEYS; i++) {
		int r = kfd_property_number(text, properties[i].name, properties[i].max,
					    &node->value[i]);

		if (r == -ENODATA && !properties[i].required)
			continue;
		if (r < 0)
			return bad_property(node, properties[i].name, r, diagnostics);
		node->has[i] = true;
	}
	return 0;
}

/* amdgpu writes "ip discovery" for every GPU that it found by the discovery table: not a name. */
static void read_name(const struct kfd_dir *dir, struct kfd_node *node)
{
	char text[sizeof(node->name)];

	if (kfd_read(dir, "name", text, sizeof(text)) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, "ip discovery") == 0)
		return;
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return;
	memcpy(node->name, text, sizeof(text));
}

/* Where the driver splits one PCI device into several nodes, it ORs the node's number into
 * location_id: into the bits of the function (kfd_topology_add_device() in kfd_topology.c,
 * Linux 6.5 and later), or into bits 31:28 (its commit 925c7bd1d1cf, since reverted). A card with
 * so many partitions of this size would have too many XCCs: then it is a function, as of a VF in
 * SPX mode. Functions with fewer XCCs count as partitions. */
static void find_partition(struct kfd_node *node)
{
	uint64_t location = node->value[KFD_LOCATION];
	unsigned number = (unsigned)(location >> 28 ? location >> 28 : location & 7);

	if (!target_splits((unsigned)node->value[KFD_TARGET]))
		return;
	node->function = (number + 1) * max_u64(node->value[KFD_XCCS], 1) > CUSET_XCCS;
	node->partition = node->function ? 0 : number;
	node->partitioned = node->partition != 0;
}

static int read_properties(const struct kfd_dir *dir, struct kfd_node *node,
			   struct diagnostics *diagnostics)
{
	static const enum kfd_key of_gpus[] = { KFD_TARGET, KFD_CP_QUEUES, KFD_SDMA_QUEUES };
	char text[KFD_TEXT];
	int r;

	r = kfd_read(dir, "properties", text, sizeof(text));
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s/properties: %s; this GPU is left out",
				dir->path, kfd_trouble(r));
		return r;
	}
	r = read_values(node, text, diagnostics);
	if (r < 0)
		return r;
	if (node->value[KFD_SIMD_COUNT] == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(of_gpus); i++)
		if (node->value[of_gpus[i]] == 0)
			return bad_property(node, properties[of_gpus[i]].name, -ENODATA,
					    diagnostics);

	read_name(dir, node);
	find_partition(node);
	return 1;
}

int kfd_node_read(const struct kfd_dir *dir, struct kfd_node *ret, struct diagnostics *diagnostics)
{
	struct kfd_node node = { 0 };
	uint64_t gpu_id;
	int r;

	memcpy(node.path, dir->path, sizeof(node.path));
	r = kfd_read_number(dir, "gpu_id", UINT32_MAX, &gpu_id);
	if (r == -ENOENT || (r == 0 && gpu_id == 0))
		return 0; /* a node of CPUs and memory */
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s/gpu_id: %s; this node is left out",
				dir->path, kfd_trouble(r));
		return r;
	}
	node.gpu_id = (uint32_t)gpu_id;

	r = read_properties(dir, &node, diagnostics);
	if (r > 0)
		*ret = node;
	return r;
}

static uint64_t slot(const struct kfd_node *node)
{
	return node->value[KFD_DOMAIN] << 16 | (node->value[KFD_LOCATION] & 0xfff8);
}

bool kfd_node_same_device(const struct kfd_node *a, const struct kfd_node *b)
{
	return slot(a) == slot(b) && !a->function && !b->function &&
	       target_splits((unsigned)a->value[KFD_TARGET]) &&
	       target_splits((unsigned)b->value[KFD_TARGET]);
}

/* Writes the name for gpu_info: "0000:03:00.0", with "/2" for a partition. */
static void write_name(const struct kfd_node *node, char *buf, size_t size)
{
	unsigned location = (unsigned)node->value[KFD_LOCATION];
	unsigned function = location & 7;
	int n;

	/* Then these bits hold the partition, not the function. */
	if (node->partition == function)
		function = 0;
	n = snprintf(buf, size, "%04x:%02x:%02x.%x", (unsigned)node->value[KFD_DOMAIN],
		     location >> 8 & 0xff, location >> 3 & 0x1f, function);
	if (node->partitioned && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "/%u", node->partition);
}

/* ---- the harvest map ----------------------------------------------------------------- */

/*
 * sysfs does not tell directly which CUs were fused off. But the driver writes an entry for each
 * level 1 cache with a working CU: processor_id_low is the number of that CU, counted over XCCs,
 * engines, arrays and places, and bit b of sibling_map means that CU number + b works and shares
 * the cache (kfd_fill_cache_non_crat_info() in kfd_topology.c). Together they are the harvest map.
 */

#define CACHES 4096U

struct map {
	const struct geometry *geometry;
	uint64_t first_id;
	uint16_t array[CUSET_XCCS * CUSET_ENGINES * CUSET_ARRAYS]; /* bit: a place */
};

/* "1,0,1": bit 0 first. A level 1 cache has 32 bits. */
static int read_siblings(const char *text, uint32_t *ret)
{
	uint32_t siblings = 0;
	const char *value;
	size_t length;
	int r;

	r = kfd_property(text, "sibling_map", &value, &length);
	if (r < 0)
		return r;

	for (size_t i = 0; i < length; i++) {
		if (i % 2 == 1 ? value[i] != ',' : value[i] != '0' && value[i] != '1')
			return -EBADMSG;
		if (i % 2 == 0 && i / 2 >= 32)
			return -EBADMSG;
		if (value[i] == '1')
			siblings |= UINT32_C(1) << (i / 2);
	}
	*ret = siblings;
	return 0;
}

static int add_siblings(struct map *map, uint64_t id, uint32_t siblings)
{
	const struct geometry *geometry = map->geometry;
	unsigned n_arrays = geometry->xccs * geometry->engines * geometry->arrays;
	uint64_t places;
	unsigned array;

	if (id < map->first_id || id - map->first_id >= n_arrays * geometry->array_cus)
		return -EBADMSG;

	array = (unsigned)(id - map->first_id) / geometry->array_cus;
	places = (uint64_t)siblings << (id - map->first_id) % geometry->array_cus;
	if (places >> geometry->array_cus != 0)
		return -EBADMSG;
	map->array[array] |= (uint16_t)places;
	return 0;
}

static int add_cache(struct map *map, const char *text)
{
	uint64_t level, id;
	uint32_t siblings;
	int r;

	r = kfd_property_number(text, "level", UINT32_MAX, &level);
	if (r < 0 || level != 1)
		return r;
	r = kfd_property_number(text, "processor_id_low", UINT32_MAX, &id);
	if (r < 0)
		return r;
	r = read_siblings(text, &siblings);
	return r < 0 ? r : add_siblings(map, id, siblings);
}

static int map_caches(const struct kfd_dir *node, struct map *map, char *why, size_t size)
{
	_cleanup_dir_ struct kfd_dir caches = KFD_DIR_NONE;
	unsigned numbers[CACHES];
	char name[32], text[KFD_TEXT];
	int n, r;

	n = kfd_dir_open_numbers(node, "caches", numbers, CACHES, &caches);
	if (n < 0) {
		snprintf(why, size, "%s/caches: %s", node->path, kfd_trouble(n));
		return n;
	}
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u/properties", numbers[i]);
		r = kfd_read(&caches, name, text, sizeof(text));
		if (r == 0)
			r = add_cache(map, text);
		if (r < 0) {
			snprintf(why, size, "%s/%s: %s", caches.path, name, kfd_trouble(r));
			return r;
		}
	}
	return 0;
}

static void fill_active(const struct map *map, struct geometry *geometry)
{
	unsigned i = 0;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				geometry->active[xcc][engine][array] =
					(uint8_t)__builtin_popcount(map->array[i++]);
}

/* Fills active[] of a geometry from the caches. A negative errno with a reason in why if they are
 * missing, contradictory or have another number of CUs than cus. */
static int read_caches(const struct kfd_dir *node, uint64_t first_id, unsigned cus,
		       struct geometry *geometry, char *why, size_t size)
{
	struct map map = { .geometry = geometry, .first_id = first_id };
	struct geometry found = *geometry;
	char problem[160];
	int r;

	r = map_caches(node, &map, why, size);
	if (r < 0)
		return r;

	fill_active(&map, &found);
	if (geometry_cus(&found) != cus) {
		snprintf(why, size, "%s/caches: has %u CUs, simd_count has %u", node->path,
			 geometry_cus(&found), cus);
		return -EBADMSG;
	}
	r = geometry_check(&found, problem, sizeof(problem));
	if (r < 0) {
		snprintf(why, size, "%s/caches: %s", node->path, problem);
		return r;
	}
	*geometry = found;
	return 0;
}

/* ---- GPUs ---------------------------------------------------------------------------- */

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

/* array_count counts the arrays of all XCCs, simd_arrays_per_engine those of one engine, simd_count
 * the SIMDs of the working CUs (node_show() in kfd_topology.c). */
static int read_shape(const struct kfd_node *node, struct geometry *ret, unsigned *ret_cus,
		      struct diagnostics *diagnostics)
{
	struct geometry shape = {
		.xccs = node->has[KFD_XCCS] ? value(node, KFD_XCCS) : 1,
		.arrays = value(node, KFD_ARRAYS_PER_ENGINE),
		.array_cus = value(node, KFD_CU_PER_ARRAY),
		.wgp = target_wgp(value(node, KFD_TARGET)),
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

/* Why the caches do not show the harvest, or NULL. On gfx11 and gfx12 with more than four engines
 * per XCC the driver fills other columns of cu_info->bitmap than it reads for the entries
 * (gfx_v11_0_get_cu_info(), kfd_fill_cache_non_crat_info()). */
static const char *caches_useless(const struct kfd_node *node, const struct geometry *geometry)
{
	if (target_mes(value(node, KFD_TARGET)) && geometry->engines > 4)
		return "the driver writes wrong entries for shader engines 4 and up here";
	if (!node->has[KFD_SIMD_ID_BASE])
		return "not usable without simd_id_base in properties";
	return NULL;
}

/* Before Linux 6.6 the node of an APU, which has CPU cores, is what the BIOS wrote into its CRAT table: it can name 11
 * CUs where 2 are. A mask without a working CU hangs a queue. */
static bool is_from_bios(const struct kfd_node *node)
{
	return node->has[KFD_CPU_CORES] && node->value[KFD_CPU_CORES] > 0;
}

static bool is_whole(const struct geometry *geometry, unsigned cus)
{
	return cus == geometry->xccs * geometry->engines * geometry->arrays * geometry->array_cus;
}

/* gpuarb-harvest knows the order of cu_bitmap from gfx11 on. */
static bool may_have_map(const struct kfd_node *node, const struct geometry *geometry)
{
	return target_mes(value(node, KFD_TARGET)) && geometry->xccs == 1 &&
	       caches_useless(node, geometry);
}

bool kfd_gpu_hides_harvest(const struct kfd_node *node, struct geometry *ret)
{
	_cleanup_(diagnostics_done) struct diagnostics unused = { 0 };
	unsigned cus;

	return read_shape(node, ret, &cus, &unused) >= 0 && !is_whole(ret, cus) &&
	       may_have_map(node, ret);
}

/* One number after another: the arrays of the first engine, then of the next. */
static int fill_from_text(char *text, struct geometry *geometry)
{
	char *rest = NULL, *word = strtok_r(text, " \n", &rest);
	uint64_t cus;
	int r;

	for (unsigned engine = 0; engine < geometry->engines; engine++)
		for (unsigned array = 0; array < geometry->arrays; array++) {
			r = word ? kfd_number(word, strlen(word), CUSET_ARRAY_CUS, &cus) : -EBADMSG;
			if (r < 0)
				return r;
			geometry->active[0][engine][array] = (uint8_t)cus;
			word = strtok_r(NULL, " \n", &rest);
		}
	return word ? -EBADMSG : 0;
}

/* -ENOENT: gpuarb-harvest has not run. */
static int read_map(const char *maps, uint32_t gpu_id, unsigned cus, struct geometry *geometry)
{
	struct kfd_dir dir = { .fd = AT_FDCWD };
	struct geometry found = *geometry;
	char path[576], text[256], problem[160];
	int r;

	if (!*maps)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%u", maps, gpu_id);
	r = kfd_read(&dir, path, text, sizeof(text));
	if (r == 0)
		r = fill_from_text(text, &found);
	if (r == 0 &&
	    (geometry_cus(&found) != cus || geometry_check(&found, problem, sizeof(problem)) < 0))
		r = -EBADMSG;
	if (r == 0)
		*geometry = found;
	return r;
}

/* A GPU with all CUs of its geometry has no harvest to read. 0: it is unknown; 1: known. */
static int read_harvest(const struct kfd_dir *dir, const struct kfd_node *node, const char *maps,
			unsigned cus, struct geometry *geometry, struct diagnostics *diagnostics)
{
	char why[800];
	const char *useless = caches_useless(node, geometry);
	bool mapped = may_have_map(node, geometry);
	int r = mapped ? read_map(maps, node->gpu_id, cus, geometry) : -ENOENT;

	if (r == 0 || (!is_from_bios(node) && is_whole(geometry, cus)))
		return 1;
	if (r != -ENOENT)
		snprintf(why, sizeof(why), "%.500s/%u: %s", maps, node->gpu_id, kfd_trouble(r));
	else if (useless)
		snprintf(why, sizeof(why), "%s/caches: %s%s", dir->path, useless,
			 mapped ? ", and gpuarb-harvest has not run" : "");
	else if ((r = read_caches(dir, node->value[KFD_SIMD_ID_BASE], cus, geometry, why,
				  sizeof(why))) == 0)
		return 1;
	if (kfd_is_lacking(r))
		return r;

	if (is_from_bios(node))
		diagnostics_add(
			diagnostics, false,
			"%s, and simd_count is of the BIOS: leases can only have all CUs of "
			"this GPU",
			why);
	else
		diagnostics_add(diagnostics, false,
				"%s; assuming that its %u CUs are spread evenly", why, cus);
	return 0;
}

/* heap_type 1 and 2: VRAM that the CPU can and cannot access. */
static int read_bank(const struct kfd_dir *banks, unsigned number, uint64_t *bytes,
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
		return r;
	}
	if (heap == 1 || heap == 2)
		*bytes += size;
	return 0;
}

static int read_vram(const struct kfd_dir *dir, uint64_t *bytes, struct diagnostics *diagnostics)
{
	_cleanup_dir_ struct kfd_dir banks = KFD_DIR_NONE;
	unsigned numbers[64];
	int n, r = 0;

	n = kfd_dir_open_numbers(dir, "mem_banks", numbers, ARRAY_SIZE(numbers), &banks);
	if (n < 0) {
		diagnostics_add(diagnostics, false, "%s/mem_banks: %s; its VRAM is unknown",
				dir->path, kfd_trouble(n));
		return n;
	}
	for (int i = 0; i < n && !kfd_is_lacking(r); i++)
		r = read_bank(&banks, numbers[i], bytes, diagnostics);
	return r;
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

int kfd_gpu_read(const struct kfd_dir *dir, const struct kfd_node *node, const char *maps,
		 struct gpu_info *ret, struct diagnostics *diagnostics)
{
	struct gpu_info info = {
		.gfx_target = value(node, KFD_TARGET),
		.kfd_gpu_id = node->gpu_id,
	};
	unsigned cus, per_engine = value(node, KFD_SDMA_QUEUES);
	int r;

	r = read_shape(node, &info.geometry, &cus, diagnostics);
	if (r < 0)
		return r;
	if (!codec_knows(info.gfx_target))
		diagnostics_add(diagnostics, false,
				"%s/properties: gfx_target_version: %u is newer than this gpuarb: "
				"leases can only have all CUs of this GPU",
				node->path, info.gfx_target);

	write_device(node, info.device, sizeof(info.device));
	r = read_harvest(dir, node, maps, cus, &info.geometry, diagnostics);
	if (r < 0)
		return r;
	info.harvest_known = r > 0;
	info.guessed = !info.harvest_known;
	info.whole_only = is_from_bios(node) && !info.harvest_known;
	info.law = law_of_target(info.gfx_target);
	info.queue_slots = value(node, KFD_CP_QUEUES);
	info.pipes = generation(info.gfx_target)->pipes;
	info.queues_per_pipe = generation(info.gfx_target)->queues_per_pipe;
	/* Two pools: allocate_sdma_queue() in kfd_device_queue_manager.c. */
	info.sdma_queues = value(node, KFD_SDMA_ENGINES) * per_engine;
	info.sdma_xgmi_queues = value(node, KFD_SDMA_XGMI_ENGINES) * per_engine;
	r = read_vram(dir, &info.vram_bytes, diagnostics);
	if (kfd_is_lacking(r))
		return r;
	*ret = info;
	return 0;
}

/* MES schedules by itself: the parameters sched_policy and hws_max_conc_proc have no effect. */
void kfd_gpu_finish(const struct kfd_node *node, const struct kfd_parameters *parameters,
		    struct gpu_info *info)
{
	bool cpx = node->partitioned && info->geometry.xccs == 1;

	write_name(node, info->name, sizeof(info->name));
	info->process_slots = target_process_slots(info->gfx_target, cpx);
	info->preemption_msec = parameters->preemption_msec;
	/* gfx11.5 has none. */
	info->drm_queues = parameters->drm_queues && target_mes(info->gfx_target) &&
			   info->gfx_target / 100 != 1105;
	info->scheduler = SCHEDULER_MES;
	if (target_mes(info->gfx_target))
		return;
	info->scheduler = parameters->scheduler;
	info->process_slots = min_u(info->process_slots, parameters->max_processes);
}
