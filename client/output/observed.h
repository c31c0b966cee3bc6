/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The queues of the processes of a lease, read from KFD without the daemon: KFD shows every user
 * the queues of every process. A process belongs to a lease if it or an ancestor requested the
 * lease and has one lease on that GPU. Processes that were bound later cannot be attributed.
 */

#include <stdbool.h>
#include <stddef.h>

#include "hw/hw.h"
#include "libgpuarb/gpuarb.h"

struct observed {
	struct hw_use *uses;
	size_t n;
	char proc[256]; /* "/proc" */
};

/* sys: "/sys"; proc: "/proc". Empty without a GPU or without access. -ENOMEM. */
int observed_read(const char *sys, const char *proc, struct observed *ret);
void observed_done(struct observed *observed);

struct observed_use {
	unsigned queues, sdma_queues, sdma_xgmi_queues, processes;
	uint64_t vram; /* bytes */
};

/* The use of partition i of leases[of]. False if it cannot be known: the GPU is simulated, or the
 * owner is unknown, has ended, or has several leases on this GPU. */
bool observed_use(const struct observed *observed, const struct gpuarb_lease_info *leases, size_t n,
		  size_t of, size_t i, struct observed_use *ret);
