/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The compute queues of a process, as KFD lists them in sysfs, and the masks that they have. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/lease/mask.h"

struct queue {
	uint32_t id, kfd_gpu_id;
	uint64_t inode; /* of its directory: tells a queue from an earlier one with the same id */
};

struct queue_list {
	struct queue *queues;
	size_t n;
};

/* Reads SYS/class/kfd/kfd/proc/PID/queues, sorted by id. A process without KFD has no queues. The
 * caller frees ret->queues. A negative errno. */
int queues_read(const char *sys, pid_t pid, struct queue_list *ret);

bool queue_exists(const char *sys, pid_t pid, uint32_t id);

/* Whether this process is in the first PID namespace: sysfs uses the process ids of that one. */
bool queues_visible(void);

/* ---- mask cache: KFD has no call to read a mask, so the library remembers them ----------- */

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
