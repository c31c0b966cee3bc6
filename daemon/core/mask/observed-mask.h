/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The CUs and the priority that a compute queue has, read from its hardware queue descriptor. A plain
 * value.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

/* One compute queue. A process has a row for each of its queues. */
struct observed_mask {
	pid_t pid; /* in the namespace that the kernel reports: the initial one */
	uint32_t kfd_gpu_id;
	bool unrestricted; /* never masked; cus are then all of the GPU's */
	struct cuset cus;  /* CUs that work: those fused off are left out */
	unsigned priority; /* 0 to 15 */
};

/*
 * The registers COMPUTE_STATIC_THREAD_MGMT_SEn of one queue, at cuset_pair(xcc, engine), as CUs
 * of the GPU. Bits of CUs, arrays, engines and XCCs that the GPU does not have are ignored;
 * codec_encode() makes a mask of the set. Returns whether the queue is unrestricted: every register
 * of the GPU has all 32 bits. The kernel creates a queue so, and only a mask of all CUs does the same.
 */
bool observed_mask_from_words(const struct geometry *geometry, const uint32_t words[CUSET_PAIRS],
			      struct cuset *ret);
