/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by hip-device.c and stream.c. This library uses libgpuarb through its public header
 * only. */

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/hip/gpuarb-hip.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))

/* Stores the sentence for gpuarb_last_error() and returns error. */
int hip_fail(struct gpuarb_lease *lease, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a failed call of HIP; also clears hipGetLastError(). */
int hip_fail_call(struct gpuarb_lease *lease, const char *call, hipError_t error);

/* The value of an environment variable; NULL if it is not set or empty. */
const char *hip_variable(const char *name);

/* Partition i, after reading the changes that the holder reported. Fails if the lease has ended,
 * has no partition i, or the GPU is simulated. */
int hip_partition(struct gpuarb_lease *lease, size_t i, const struct gpuarb_partition **ret);

/* gpuarb_hip_device() for such a partition. */
int hip_find_device(struct gpuarb_lease *lease, const struct gpuarb_partition *partition, int *ret);
