/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The variables with which an unmodified ROCm program in a container masks its queues. */

#include <stddef.h>
#include <stdint.h>

#define OCI_VARIABLES 9
#define OCI_VARIABLE 2048
#define OCI_MASK_WORDS 64U

/* A partition as variables need it. */
struct oci_part {
	uint32_t kfd_gpu_id, queues, processes, streams, effective_cus;
	uint32_t mask[OCI_MASK_WORDS];
	size_t words;
};

/* "NAME=VALUE" to set, "NAME" to remove. */
void oci_variables_write(const struct oci_part *parts, size_t n, uint64_t lease,
			 char variables[static OCI_VARIABLES][OCI_VARIABLE]);
