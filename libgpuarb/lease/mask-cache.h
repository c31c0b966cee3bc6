/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The masks of this process's queues. KFD has no call to read them, so the library remembers
 * them. */

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/lease/mask.h"
#include "libgpuarb/lease/queues.h"

struct mask_cache_entry {
	struct queue queue;
	size_t partition; /* the partition of the lease on the queue's GPU */

	struct mask own;  /* what the program asked for; no words: nothing */
	uint32_t xccs;    /* of the GPU, if own is set: every XCC needs a bit */
	struct mask now;  /* what the library set last; no words: nothing yet */
	struct mask next; /* what is to be set now; no words: nothing */
};

struct mask_cache {
	struct mask_cache_entry *entries; /* sorted by queue id */
	size_t n;
};

/* Replaces the entries by the listed queues on the GPUs of the partitions. Keeps the masks of
 * queues that were known before. -ENOMEM: nothing has changed. */
int mask_cache_refresh(struct mask_cache *mask_cache, const struct queue_list *list,
		       const struct gpuarb_partition *partitions, size_t n);

struct mask_cache_entry *mask_cache_find(struct mask_cache *mask_cache, size_t partition,
					 uint32_t id);
void mask_cache_clear(struct mask_cache *mask_cache);
