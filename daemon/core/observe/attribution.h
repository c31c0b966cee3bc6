/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * To which lease a process belongs: one rule for queues, descriptors, DRM clients, memory, caps and
 * enforcement. SECURITY.md has it as a table. The kernel vouches for everything that it compares: the
 * user of a process, its ancestors, a pidfd. The name of a unit alone proves nothing.
 */

#include "core/ledger/known.h"

#define OBSERVED_ANCESTORS 32U

/* One process on one GPU, as the kernel's tables and /proc show it. */
struct observed {
	NAMED_PROCESS;       /* by its effective uid */
	uint64_t start_time; /* distinguishes a reused pid; 0: the process is dead */
	bool mixed;          /* its real, effective and saved uids differ: it acts for two users */
	pid_t ancestors[OBSERVED_ANCESTORS];     /* parent first */
	uid_t ancestor_uids[OBSERVED_ANCESTORS]; /* 0 also for one whose uid /proc hides */
	size_t n_ancestors;
	char unit[128]; /* "": unknown */

	uint32_t kfd_gpu_id;
	unsigned queues, sdma_queues, sdma_xgmi_queues;
	uint64_t vram;     /* bytes, as KFD counts them */
	uint64_t drm_vram; /* as DRM does, which includes what KFD has; 0: unknown or none */
	bool drm_only;     /* KFD does not know the process: of use to compare its VRAM */
	bool idle;         /* it has the device open, and neither queues nor memory on it */
	bool leaked; /* it has been dead for a while and has no queue, but the driver keeps its memory */
};

/* The lease of the process, 0 if there is none, and why: known.h. */
struct known_process attribution_of(const struct arbiter *arbiter, const struct observed *row);

/* The same for a pid of which no more is known, by the last scan; a bound process that no scan has shown
 * yet counts for its lease, so that no queue of it is overlooked. false: unknown. */
bool attribution_of_pid(const struct arbiter *arbiter, pid_t pid, struct known_process *ret);

/* Is the process, or one of its ancestors, bound to the lease, so that it counts for it? */
bool attribution_is_bound(const struct arbiter *arbiter, const struct lease *lease,
			  const struct observed *row);

/* May a process with a lease use this other one, too, because it asked for it or is bound to it? */
bool attribution_may_use(const struct arbiter *arbiter, const struct lease *lease,
			 const struct known_process *process);
