/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What leases were granted beside what is seen of them: by the daemon, which tells it in their
 * properties, and by this program itself where it may look.
 *
 * A program that runs out of memory here ends with a failure: drift must not be lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/output/observed.h"

/* ok: compared, and so. note: cannot be compared, or is no lease's doing. */
enum verify_result { VERIFY_OK, VERIFY_NOTE, VERIFY_DRIFT };

struct verify_finding {
	uint64_t lease;    /* 0: about the GPU as a whole */
	const char *gpu;   /* "": about all of the lease; the view's */
	const char *check; /* state mask priority queues processes sdma-queues; slots unmanaged */
	enum verify_result result;
	char *found;
};

struct verify {
	const struct gpuarb_gpu *gpus;
	const struct gpuarb_lease_info *leases;
	size_t n_gpus, n_leases;
	const struct seen *seen;
	uint64_t now_usec; /* CLOCK_BOOTTIME */

	struct verify_finding *findings;
	size_t n_findings;
};

/* Judges leases[i], and a GPU. What waits has nothing that could be compared. */
void verify_lease(struct verify *verify, size_t i);
void verify_gpu(struct verify *verify, const struct gpuarb_gpu *gpu);

bool verify_drifts(const struct verify *verify);
void verify_done(struct verify *verify);
