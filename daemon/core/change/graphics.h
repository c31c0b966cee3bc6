/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which processes use GPUs through the graphics driver (DRM), whose work has no CU mask. */

#include "core/observe/attribution.h"
#include "core/ledger/ledger.h"

/* One process on one device. */
struct observed_client {
	struct observed process;   /* without what KFD counts */
	char device[GPU_NAME_MAX]; /* PCI address: of all partitions of the GPU */
	struct gpu_engines busy;
	uint64_t vram, gtt;
};

/*
 * Takes one observation of all DRM clients. elapsed_usec: the time since the observation before; 0:
 * there was none. complete: no process was left out; else a GPU where no process draws is as one
 * that was not observed, with n 0 every GPU. A waiting lease is tried again on a GPU where the last process has stopped to
 * draw.
 */
void arbiter_observe_clients(struct arbiter *arbiter, const struct observed_client *rows, size_t n,
			     uint64_t elapsed_usec, bool complete);

/* User queues of the graphics driver on a device. */
struct observed_user_queues {
	char device[GPU_NAME_MAX];
	unsigned compute;
};

/* Can some GPU have them? */
bool arbiter_has_user_queues(const struct arbiter *arbiter);

/* Takes one count. On a device that is not in it, it is unknown whether there are some. */
void arbiter_count_user_queues(struct arbiter *arbiter, const struct observed_user_queues *rows,
			       size_t n);
