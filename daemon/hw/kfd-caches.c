/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <stdio.h>

/*
 * Which CUs were fused off cannot be read anywhere in sysfs, but the driver writes an entry
 * for each level 1 cache that has a CU that works: processor_id_low is that CU's number,
 * counted over XCCs, engines, arrays and places, and bit b of sibling_map says that CU
 * number + b works and shares the cache (kfd_fill_cache_non_crat_info() in
 * kfd_topology.c). The union over all of them is the map.
 */

#define CACHES 4096U

struct map {
	const struct geometry *geometry;
	uint64_t first_id;
	uint16_t array[CUSET_XCCS * CUSET_ENGINES * CUSET_ARRAYS]; /* bit: a place */
};

/* "1,0,1": bit 0 first. Level 1 caches have 32. */
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

static int read_caches(const struct kfd_dir *caches, struct map *map, char *why, size_t size)
{
	unsigned numbers[CACHES];
	char name[32], text[KFD_TEXT];
	int n, r;

	n = kfd_dir_numbers(caches, numbers, CACHES);
	if (n < 0) {
		snprintf(why, size, "%s: %s", caches->path, kfd_trouble(n));
		return n;
	}
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u/properties", numbers[i]);
		r = kfd_read(caches, name, text, sizeof(text));
		if (r == 0)
			r = add_cache(map, text);
		if (r < 0) {
			snprintf(why, size, "%s/%s: %s", caches->path, name, kfd_trouble(r));
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

int kfd_caches_read(const struct kfd_dir *node, uint64_t first_id, unsigned cus,
		    struct geometry *geometry, char *why, size_t size)
{
	_cleanup_dir_ struct kfd_dir caches = KFD_DIR_NONE;
	struct map map = { .geometry = geometry, .first_id = first_id };
	struct geometry found = *geometry;
	char problem[160];
	int r;

	r = kfd_dir_open(node, "caches", &caches);
	if (r < 0) {
		snprintf(why, size, "%s/caches: %s", node->path, kfd_trouble(r));
		return r;
	}
	r = read_caches(&caches, &map, why, size);
	if (r < 0)
		return r;

	fill_active(&map, &found);
	if (geometry_cus(&found) != cus) {
		snprintf(why, size, "%s: names %u CUs, simd_count %u", caches.path,
			 geometry_cus(&found), cus);
		return -EBADMSG;
	}
	r = geometry_check(&found, problem, sizeof(problem));
	if (r < 0) {
		snprintf(why, size, "%s: %s", caches.path, problem);
		return r;
	}
	*geometry = found;
	return 0;
}
