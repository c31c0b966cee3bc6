/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel's mapping function uses, as Linux 6.12 names it. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <strings.h>

#define XCCS 8U /* at most */

struct amdgpu_cu_info {
	uint32_t number;
	uint32_t bitmap[XCCS][4][4];
};

struct amdgpu_gfx_config {
	unsigned max_shader_engines, max_sh_per_se;
};

struct amdgpu_device {
	const char *dev;
	struct {
		struct amdgpu_cu_info cu_info;
		struct amdgpu_gfx_config config;
	} gfx;
};

struct kfd_dev {
	unsigned num_nodes;
};

struct kfd_node {
	struct amdgpu_device *adev;
	struct kfd_dev *kfd;
	uint32_t xcc_mask, version;
};

struct mqd_manager {
	struct kfd_node *dev;
};

#define KFD_MAX_NUM_SE 8
#define KFD_MAX_NUM_SH_PER_SE 2
#define IP_VERSION(major, minor, revision) ((major) << 16 | (minor) << 8 | (revision))
#define KFD_GC_VERSION(node) ((node)->version)
#define NUM_XCC(mask) __builtin_popcount(mask)
#define hweight32 __builtin_popcount
#define dev_err(dev, ...) ((void)(dev), printf(__VA_ARGS__))

/* A GPU for the function, filled from a description of it. */
struct machine {
	struct amdgpu_device adev;
	struct kfd_dev kfd;
	struct kfd_node node;
	struct mqd_manager manager;
};

static inline void machine_fill(struct machine *machine, unsigned engines, unsigned arrays,
				unsigned cus, unsigned xccs, uint32_t version)
{
	machine->adev.gfx.cu_info.number = cus;
	machine->adev.gfx.config = (struct amdgpu_gfx_config){ engines, arrays };
	machine->kfd.num_nodes = 1;
	machine->node = (struct kfd_node){
		.adev = &machine->adev,
		.kfd = &machine->kfd,
		.xcc_mask = (1U << xccs) - 1,
		.version = version,
	};
	machine->manager.dev = &machine->node;
}

static inline uint32_t *machine_bitmap(struct machine *machine, unsigned xcc, unsigned row,
				       unsigned column)
{
	return &machine->adev.gfx.cu_info.bitmap[xcc][row][column];
}

#define MAP(machine, mask, count, se_mask, xcc) \
	mqd_symmetrically_map_cu_mask(&(machine)->manager, (mask), (count), (se_mask), (xcc))
