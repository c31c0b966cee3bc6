/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The environment variables that mask the queues of an unmodified ROCm program. */

#include "libgpuarb/connection/handle.h"
#include "libgpuarb/lease/mask.h"
#include "libgpuarb/lease/kfd-sysfs.h"

struct environment {
	struct gpuarb *gpuarb; /* failures are noted here */
	const struct gpuarb_lease_info *lease;
	const struct topology *topology;
	bool capped; /* gpuarb_lease_cap() */

	/* As visible_variable(). */
	const char *(*get)(void *userdata, const char *name);
	void *userdata;
};

/* gpuarb_lease_environment(). */
int environment_make(const struct environment *environment, char ***ret);

/* Reads the mask of GPU i from a value of HSA_CU_MASK in the form that environment_make() writes.
 * False for other forms. */
bool environment_mask(const char *value, size_t i, struct mask *ret);
