/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPU of a plan. */

#include "client/options/options.h"
#include "core/mask/gpu-info.h"

struct rt_gpu {
	struct gpu_info info; /* its name is that of the GPU, or of the profile */
	char target[16];      /* gfx906 */
	bool here;            /* one of this machine */
};

/* Loads the GPU that --gpu or --profile names; call model_names_gpu() first. Prints what failed and
 * returns the exit code. */
int rt_gpu_load(const struct command *command, struct rt_gpu *ret);
