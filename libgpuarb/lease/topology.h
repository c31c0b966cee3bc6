/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPUs that this process sees in the topology of KFD. */

#include <stddef.h>
#include <stdint.h>

/* KFD's id identifies a GPU: in a container that sees one partition of a card the name differs. */
struct topology_gpu {
	uint32_t kfd_gpu_id;
	uint64_t unique_id;  /* 0: none */
	uint32_t gfx_target; /* 90006: gfx906 */
	uint32_t xccs;       /* at least 1 */
};

/* An index in ROCR_VISIBLE_DEVICES is a position in this list. */
struct topology {
	struct topology_gpu *gpus;
	size_t n;
};

/*
 * Reads SYS/class/kfd/kfd/topology/nodes in the order of the node numbers. Skips nodes that this
 * process may not read (device cgroup) and nodes without a render node in DEV/dri: ROCm skips them
 * too (topology_sysfs_check_node_supported() in libhsakmt). The caller frees ret->gpus.
 * -ENODEV: no KFD. -ENOMEM.
 */
int topology_read(const char *sys, const char *dev, struct topology *ret);

/* The GPU with this id; NULL: none, or more than one. */
const struct topology_gpu *topology_find(const struct topology *topology, uint32_t kfd_gpu_id);

#define ATTRIBUTE_MAX 4096U /* the longest sysfs attribute, with a NUL */

/* Reads an attribute below the directory; buf ends with a NUL. */
int attribute_read(int dir, const char *name, char buf[ATTRIBUTE_MAX]);
