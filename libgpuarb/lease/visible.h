/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPUs that a ROCm program sees: ROCr shows those of ROCR_VISIBLE_DEVICES, and HIP those of its own variables,
 * whose numbers count inside what ROCr shows. */

#include "libgpuarb/connection/handle.h"
#include "libgpuarb/lease/kfd-sysfs.h"

#define ROCR_VISIBLE "ROCR_VISIBLE_DEVICES"

struct visible {
	struct gpuarb *gpuarb; /* failures are noted here */
	const struct topology *topology;

	/* As visible_variable(). */
	const char *(*get)(void *userdata, const char *name);
	void *userdata;
};

const char *visible_variable(void *userdata, const char *name); /* getenv() */

/*
 * The numbers of the GPUs that a value of ROCR_VISIBLE_DEVICES shows, in its order, in order[topology->n].
 * Returns how many. Follows ROCr (amd_filter_device.cpp): items are indices, or "GPU-" with the beginning of a
 * unique id; the first item that is invalid or repeats a GPU ends the list.
 */
size_t visible_parse(const char *value, const struct topology *topology, size_t *order);

/* 0: no variable is set. 1: shown[topology->n] tells which GPUs a program sees. -ENODEV: none, with an error. */
int visible_find(const struct visible *visible, bool *shown);
