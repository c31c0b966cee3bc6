/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * GPU profiles: conf/gpus/NAME.conf, one file per GPU model, for the simulated backend and for
 * `gpuarbctl mask --profile`. The comment at the top of conf/gpus/radeon-vii.conf describes format
 * and keys.
 */

#include "core/mask/gpu-info.h"
#include "util/diagnostics.h"

struct profile {
	struct gpu_info info; /* name is empty: a profile has no PCI address */
	unsigned partitions;  /* GPUs of one card: 8 for an MI300X in CPX mode, else 1 */
};

/* Reads DIR/NAME.conf. name consists of letters, digits, '-', '.' and '_'. Returns -ENOENT with a
 * diagnostic that lists the available profiles, -EINVAL with a diagnostic "FILE:LINE: …" for each
 * error. */
int profile_load(const char *dir, const char *name, struct profile *ret,
		 struct diagnostics *diagnostics);
