/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What an unmodified ROCm program needs in its environment. Everything here is decided
 * from arguments; gpuarb_lease_environment() brings this process's own.
 */

#include "libgpuarb/connection/internal.h"

/* ---- topology.c: the GPUs as a process sees them -------------------------------------- */

/* Indices of ROCR_VISIBLE_DEVICES are positions in this list. A GPU is known by KFD's id
 * for it: its name may differ in a container that sees one partition of a card alone. */
struct topology_gpu {
	uint32_t kfd_gpu_id;
	uint64_t unique_id;  /* 0: none */
	uint32_t gfx_target; /* 90006: gfx906 */
	uint32_t xccs;       /* at least 1 */
};

struct topology {
	struct topology_gpu *gpus;
	size_t n;
};

/*
 * Reads SYS/class/kfd/kfd/topology/nodes in the order of their numbers. Nodes that this
 * process may not read (device cgroup), or without a render node in DEV/dri, are not there
 * for ROCm either (topology_sysfs_check_node_supported() in libhsakmt). -ENODEV: no KFD.
 * ret->gpus is the caller's to free.
 */
int topology_read(const char *sys, const char *dev, struct topology *ret);

/* The GPU of that id; NULL: there is none, or more than one. */
const struct topology_gpu *topology_find(const struct topology *topology, uint32_t kfd_gpu_id);

#define ATTRIBUTE_MAX 4096U /* as long as a sysfs attribute can be, and its NUL */

/* Reads an attribute below dir; buf ends with a NUL. */
int attribute_read(int dir, const char *name, char buf[ATTRIBUTE_MAX]);

/* ---- visible.c ------------------------------------------------------------------------ */

/*
 * Which GPUs a value of ROCR_VISIBLE_DEVICES leaves, in visible[topology->n]. As ROCr has
 * it (amd_filter_device.cpp): indices, or "GPU-" and the start of a unique id; the first
 * item that is wrong, or names a GPU again, ends the list.
 */
void visible_parse(const char *value, const struct topology *topology, bool *visible);

/* ---- environment.c -------------------------------------------------------------------- */

struct environment {
	uint64_t lease;
	const struct gpuarb_partition *partitions;
	size_t n;
	const struct topology *topology;

	/* getenv() of the program that is to be started. */
	const char *(*get)(void *userdata, const char *name);
	void *userdata;
};

/* gpuarb_lease_environment(); the failure is noted in gpuarb. */
int environment_make(struct gpuarb *gpuarb, const struct environment *environment, char ***ret);
