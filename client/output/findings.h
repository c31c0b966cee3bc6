/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Compares grants with the usage that the daemon observed, and with the usage that this program
 * observes itself.
 *
 * Out of memory ends the program with a failure: drift must not be lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/output/observed.h"

/* ok: grant and use agree. note: they cannot be compared, or no lease is the cause. */
enum verify_result { VERIFY_OK, VERIFY_NOTE, VERIFY_DRIFT };

struct verify_finding {
	uint64_t lease;  /* 0: the finding is about the GPU */
	const char *gpu; /* "": the finding is about the lease; owned by the view */
	/* state mask priority queues processes sdma-queues sdma-xgmi-queues; slots unmanaged */
	const char *check;
	enum verify_result result;
	char *found;
};

struct verify {
	const struct gpuarb_view
		*view; /* of leases[]; NULL: drift that gpuarbd observed is not known */
	const struct gpuarb_gpu *gpus;
	const struct gpuarb_lease_info *leases;
	size_t n_gpus, n_leases;
	const struct observed *observed;
	uint64_t now_usec; /* CLOCK_BOOTTIME */

	struct verify_finding *findings;
	size_t n_findings;
};

/* Add findings about leases[i], and about a GPU. A waiting lease has nothing to compare. */
void verify_lease(struct verify *verify, size_t i);
void verify_gpu(struct verify *verify, const struct gpuarb_gpu *gpu);

bool verify_drifts(const struct verify *verify);
void verify_done(struct verify *verify);
