/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPU that is planned for. */

#include "client/options/options.h"
#include "core/mask/gpu-info.h"

struct rt_gpu {
	struct gpu_info info; /* its name is that of the GPU, or of the profile */
	char target[16];      /* gfx906 */
	bool here;            /* one of this machine */
};

/* The one that --gpu or --profile names, as model_names_gpu() has checked. Says what is wrong and
 * returns the exit code. */
int rt_gpu_load(const struct command *command, struct rt_gpu *ret);
