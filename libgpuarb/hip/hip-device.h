/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The HIP device of a partition, and errors with the sentence for gpuarb_last_error(). */

#include "libgpuarb/hip/gpuarb-hip.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))

struct gpuarb_partition;

/* Stores the sentence for gpuarb_last_error() and returns error. */
__attribute__((format(printf, 3, 4))) int hip_fail(struct gpuarb_lease *lease, int error,
						   const char *format, ...);

/* The same for a failed call of HIP; also clears hipGetLastError(). */
int hip_fail_call(struct gpuarb_lease *lease, const char *call, hipError_t error);

/* The value of an environment variable; NULL if it is not set or empty. */
const char *hip_variable(const char *name);

/* Partition i, after reading the changes that the holder reported. Fails if the lease has ended,
 * has no partition i, or the GPU is simulated. */
int hip_partition_get(struct gpuarb_lease *lease, size_t i, const struct gpuarb_partition **ret);

/* gpuarb_hip_device() for such a partition. */
int hip_device_find(struct gpuarb_lease *lease, const struct gpuarb_partition *partition, int *ret);
