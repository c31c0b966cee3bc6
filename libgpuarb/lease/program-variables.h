/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The environment variables that mask the queues of an unmodified ROCm program, here and in a container. */

#include <stdio.h>

#include "libgpuarb/gpuarb.h"

#define VARIABLES_NAME 24U /* bytes of an item of ROCR_VISIBLE_DEVICES, which is at most a UUID */

/* Writes "NAME=VALUE" for each variable to set and "NAME" for each to unset, with a NUL behind each. Returns their
 * number. items: of ROCR_VISIBLE_DEVICES, one for each partition. */
size_t variables_write(const struct gpuarb_partition *partitions, size_t n,
		       char (*items)[VARIABLES_NAME], uint64_t lease, uint32_t hip_queues,
		       FILE *file);
