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

	/* As environment_variable(). */
	const char *(*get)(void *userdata, const char *name);
	void *userdata;
};

const char *environment_variable(void *userdata, const char *name); /* getenv() */

/* gpuarb_lease_environment(). */
int environment_make(const struct environment *environment, char ***ret);

/*
 * Which GPUs a value of ROCR_VISIBLE_DEVICES leaves visible, in visible[topology->n]. Follows ROCr
 * (amd_filter_device.cpp): items are indices, or "GPU-" with the beginning of a unique id; the
 * first item that is invalid or repeats a GPU ends the list.
 */
void visible_parse(const char *value, const struct topology *topology, bool *visible);

/* Reads the mask of GPU i from a value of HSA_CU_MASK in the form that environment_make() writes.
 * False for other forms. */
bool environment_mask(const char *value, size_t i, struct mask *ret);
