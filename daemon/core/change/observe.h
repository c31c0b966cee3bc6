/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What processes are observed to use of the GPUs, and to which lease each process belongs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arbiter;
struct lease;

#define OBSERVED_ANCESTORS 32U

/* One process on one GPU, as the kernel's tables and /proc show it. */
struct observed {
	pid_t pid;
	uint64_t start_time; /* distinguishes a reused pid; 0: the process is dead */
	uid_t uid;           /* (uid_t) -1: unknown */
	char command[16];
	pid_t ancestors[OBSERVED_ANCESTORS]; /* parent first */
	size_t n_ancestors;
	char unit[128]; /* "": unknown */

	uint32_t kfd_gpu_id;
	unsigned queues, sdma_queues, sdma_xgmi_queues;
	uint64_t vram;     /* bytes, as KFD counts them */
	uint64_t drm_vram; /* as DRM does, which includes what KFD has; 0: unknown or none */
	bool drm_only;     /* KFD does not know the process: of use to compare its VRAM */
};

/* The lease that the process belongs to; 0: none. */
uint64_t observed_lease(const struct arbiter *arbiter, const struct observed *row);

/* Is the process, or one of its ancestors, bound to the lease? */
bool observed_is_bound(const struct observed *row, const struct lease *lease);

/* Takes one scan: all processes that use GPUs now, ordered by pid. Attributes them to leases,
 * counts unmanaged use, finds oversubscription, and removes ending leases that no process uses
 * any more. -ENOMEM, and nothing has changed. */
int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n);
