/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The variables with which an unmodified ROCm program in a container masks its queues. */

#include "libgpuarb/gpuarb.h"

/* A list of "NAME=VALUE" to set and "NAME" to remove, each with a NUL behind it, and one more at the end. NULL: no
 * memory. The caller frees it. */
char *oci_variables(const struct gpuarb_partition *parts, size_t n, uint64_t lease);

/* The render node of a GPU, /dev/dri/renderDN; 0: it is simulated, or the kernel does not tell. */
uint32_t oci_render_minor(uint32_t kfd_gpu_id);
