/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * GPU profiles: conf/gpus/NAME.conf, one GPU model a file, for the simulated backend and
 * for `gpuarbctl mask --profile`. Format and keys: the comment at the top of
 * conf/gpus/radeon-vii.conf.
 */

#include <stddef.h>

#include "core/mask/gpu-info.h"
#include "util/diagnostics.h"

struct profile {
	struct gpu_info info; /* name is empty: a profile has no place in a machine */
	unsigned partitions;  /* GPUs that one card shows: 8 for an MI300X in CPX mode, else 1 */
};

/* Reads DIR/NAME.conf. name must be a plain file name: letters, digits, '-', '.', '_'.
 * Returns -ENOENT with a note that lists the profiles there are, -EINVAL with a note
 * FILE:LINE: … for each thing that is wrong (unknown key: with the nearest known one). */
int profile_load(const char *dir, const char *name, struct profile *ret,
		 struct diagnostics *diagnostics);
