/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/mask/gpu-info.h"

#define SHIPPED_GPUS_MAX 32U

/* Loads the GPU profiles in conf/gpus of $GPUARB_SOURCE_ROOT, by name. Returns how many. */
size_t load_shipped_gpus(struct gpu_info infos[static SHIPPED_GPUS_MAX],
			 char names[static SHIPPED_GPUS_MAX][64]);
