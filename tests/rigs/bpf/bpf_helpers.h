/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What programs for the kernel call, for a test that includes their source: maps that are full when the kernel's would
 * be, and a process and thread that the test chooses.
 */

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SEC(name)
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name

#define FAKE_MAPS 8U

struct fake_entry {
	__u64 key;
	bool used;
	_Alignas(8) char value[64];
};

struct fake_map {
	const void *id;
	size_t n, max;
	struct fake_entry *entries; /* of keys that fall on taken ones, the next one that is free */
};

static struct fake_map fake_maps[FAKE_MAPS];
static struct {
	__u64 thread, cgroup;
	struct mm_struct *mm;
} fake_now;

static inline struct fake_map *fake_map(const void *id, size_t max)
{
	struct fake_map *map = fake_maps;

	while (map->id && map->id != id)
		map++;
	if (!map->id)
		*map = (struct fake_map){ id, 0, max, calloc(2 * max, sizeof(*map->entries)) };
	return map;
}

/* The entry of the key, or the first that it could have. */
static inline struct fake_entry *fake_find(struct fake_map *map, __u64 key)
{
	struct fake_entry *free = NULL;

	for (size_t i = 0, at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20; i < 2 * map->max;
	     i++, at++) {
		struct fake_entry *entry = &map->entries[at % (2 * map->max)];

		if (entry->used && entry->key == key)
			return entry;
		free = free ?: entry->used ? NULL : entry;
		if (!entry->used && entry->key == 0)
			break;
	}
	return free;
}

static inline void *fake_lookup(struct fake_map *map, __u64 key)
{
	struct fake_entry *entry = fake_find(map, key);

	return entry && entry->used ? entry->value : NULL;
}

static inline int fake_update(struct fake_map *map, __u64 key, const void *value, size_t size,
			      __u64 flags)
{
	struct fake_entry *entry = fake_find(map, key);

	if (entry->used && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!entry->used && map->n == map->max)
		return -E2BIG;
	map->n += !entry->used;
	entry->used = true;
	entry->key = key;
	memcpy(entry->value, value, size);
	return 0;
}

static inline int fake_delete(struct fake_map *map, __u64 key)
{
	struct fake_entry *entry = fake_find(map, key);

	if (!entry || !entry->used)
		return -ENOENT;
	entry->used = false;
	if (entry + 1 < map->entries + 2 * map->max && !entry[1].used && entry[1].key == 0)
		entry->key = 0; /* otherwise it stays: others may lie behind */
	map->n--;
	return 0;
}

#define FAKE_MAP(map) fake_map((map), sizeof(*(map)->max_entries) / sizeof(int))
#define bpf_map_lookup_elem(map, key) ((__typeof__((map)->value))fake_lookup(FAKE_MAP(map), *(key)))
#define bpf_map_update_elem(map, key, new, flags) \
	fake_update(FAKE_MAP(map), *(key), (new), sizeof(*(map)->value), (flags))
#define bpf_map_delete_elem(map, key) fake_delete(FAKE_MAP(map), *(key))

#define bpf_get_current_pid_tgid() fake_now.thread
#define bpf_get_current_ancestor_cgroup_id(level) ((level) == 0 ? fake_now.cgroup : 0)
#define bpf_get_current_task_btf() (&fake_now)
