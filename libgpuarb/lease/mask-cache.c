/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/mask-cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The partition on the queue's GPU, or n. */
static size_t find_partition(const struct queue *queue, const struct gpuarb_partition *partitions,
			     size_t n)
{
	size_t i = 0;

	while (i < n && partitions[i].kfd_gpu_id != queue->kfd_gpu_id)
		i++;
	return i;
}

static const struct mask_cache_entry *find_same(const struct mask_cache *mask_cache,
						const struct queue *queue)
{
	for (size_t i = 0; i < mask_cache->n; i++) {
		const struct queue *known = &mask_cache->entries[i].queue;

		if (known->id == queue->id && known->kfd_gpu_id == queue->kfd_gpu_id &&
		    known->inode == queue->inode)
			return &mask_cache->entries[i];
	}
	return NULL;
}

int mask_cache_refresh(struct mask_cache *mask_cache, const struct queue_list *list,
		       const struct gpuarb_partition *partitions, size_t n)
{
	struct mask_cache found = { calloc(list->n + 1, sizeof(*found.entries)), 0 };

	if (!found.entries)
		return -ENOMEM;

	for (size_t i = 0; i < list->n; i++) {
		const struct queue *queue = &list->queues[i];
		size_t partition = find_partition(queue, partitions, n);
		const struct mask_cache_entry *known = find_same(mask_cache, queue);

		if (partition == n)
			continue;
		if (known)
			found.entries[found.n] = *known;
		found.entries[found.n].queue = *queue;
		found.entries[found.n].partition = partition;
		found.entries[found.n].next.words = 0;
		found.n++;
	}
	mask_cache_clear(mask_cache);
	*mask_cache = found;
	return 0;
}

void mask_cache_clear(struct mask_cache *mask_cache)
{
	free(mask_cache->entries);
	*mask_cache = (struct mask_cache){ NULL, 0 };
}

struct mask_cache_entry *mask_cache_find(struct mask_cache *mask_cache, size_t partition,
					 uint32_t id)
{
	for (size_t i = 0; i < mask_cache->n; i++)
		if (mask_cache->entries[i].partition == partition &&
		    mask_cache->entries[i].queue.id == id)
			return &mask_cache->entries[i];
	return NULL;
}
