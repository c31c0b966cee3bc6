/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the processes of a lease were seen to have, without the daemon's word: KFD shows anybody
 * the queues of every process. Whose a process is, is known of the one that asked for the lease
 * and of what descends from it, where that has one lease on the GPU; of processes that were bound
 * to it later, nothing is.
 */

#include <stdbool.h>
#include <stddef.h>

#include "hw/hw.h"
#include "libgpuarb/gpuarb.h"

struct seen {
	struct hw_use *uses;
	size_t n;
	char proc[256]; /* where processes are */
};

/* sys: as hw_kfd.open(); proc: "/proc". Without a GPU, or where nothing can be read, there is
 * nothing in it. -ENOMEM. */
int seen_read(const char *sys, const char *proc, struct seen *ret);
void seen_done(struct seen *seen);

struct seen_use {
	unsigned queues, sdma_queues, processes;
};

/* What partition i of leases[of] has. False where it cannot be known: a simulated GPU, an owner
 * that is not known, gone, or has several leases on this GPU. */
bool seen_use(const struct seen *seen, const struct gpuarb_lease_info *leases, size_t n, size_t of,
	      size_t i, struct seen_use *ret);
