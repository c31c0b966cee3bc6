/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPUs that this process sees in sysfs, and the compute queues of a process with the masks that
 * they have. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/lease/kfd-ioctl.h"

/* KFD's id identifies a GPU: in a container that sees one partition of a card the name differs. */
struct topology_gpu {
	uint32_t kfd_gpu_id;
	uint64_t unique_id;  /* 0: none */
	uint32_t gfx_target; /* 90006: gfx906 */
	uint32_t xccs;       /* at least 1 */
};

/* An index in ROCR_VISIBLE_DEVICES is a position in this list. */
struct topology {
	struct topology_gpu *gpus;
	size_t n;
};

/*
 * Reads SYS/class/kfd/kfd/topology/nodes in the order of the node numbers. Skips nodes that this
 * process may not read (device cgroup) and nodes without a render node in DEV/dri: ROCm skips them
 * too (topology_sysfs_check_node_supported() in libhsakmt). The caller frees ret->gpus.
 * -ENODEV: no KFD. -ENOMEM.
 */
int topology_read(const char *sys, const char *dev, struct topology *ret);

/* The GPU with this id; NULL: none, or more than one. */
const struct topology_gpu *topology_find(const struct topology *topology, uint32_t kfd_gpu_id);

/* ---- queues ------------------------------------------------------------------------------ */

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

	struct mask own;         /* what the program asked for; no words: nothing */
	uint32_t xccs;           /* of the GPU, if own is set: every XCC needs a bit */
	struct queue_state now;  /* what the library set last */
	struct queue_state next; /* what is to be set now; a mask without words: nothing */
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

/* With kfd_lock(): lets paused queues run, before nothing follows the lease any more. */
void mask_cache_resume(struct mask_cache *mask_cache, const struct driver *driver);
