/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel's mapping function uses, as Linux 6.1 names it. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define XCCS 1U /* there is one, always */

struct kfd_cu_info {
	uint32_t num_shader_engines, num_shader_arrays_per_engine, cu_active_number;
	uint32_t cu_bitmap[4][4];
};

struct amdgpu_device {
	struct kfd_cu_info cu_info;
};

struct kfd_dev {
	struct amdgpu_device *adev;
	uint32_t version;
};

struct mqd_manager {
	struct kfd_dev *dev;
};

#define KFD_MAX_NUM_SE 8
#define KFD_MAX_NUM_SH_PER_SE 2
#define IP_VERSION(major, minor, revision) ((major) << 16 | (minor) << 8 | (revision))
#define KFD_GC_VERSION(dev) ((dev)->version)
#define hweight32 __builtin_popcount
#define pr_err printf

static inline void amdgpu_amdkfd_get_cu_info(const struct amdgpu_device *adev,
					     struct kfd_cu_info *ret)
{
	*ret = adev->cu_info;
}

/* A GPU for the function, filled from a description of it. */
struct machine {
	struct amdgpu_device adev;
	struct kfd_dev dev;
	struct mqd_manager manager;
};

static inline void machine_fill(struct machine *machine, unsigned engines, unsigned arrays,
				unsigned cus, unsigned xccs, uint32_t version)
{
	(void)xccs;
	machine->adev.cu_info.num_shader_engines = engines;
	machine->adev.cu_info.num_shader_arrays_per_engine = arrays;
	machine->adev.cu_info.cu_active_number = cus;
	machine->dev = (struct kfd_dev){ .adev = &machine->adev, .version = version };
	machine->manager.dev = &machine->dev;
}

static inline uint32_t *machine_bitmap(struct machine *machine, unsigned xcc, unsigned row,
				       unsigned column)
{
	(void)xcc;
	return &machine->adev.cu_info.cu_bitmap[row][column];
}

#define MAP(machine, mask, count, se_mask, xcc) \
	((void)(xcc),                           \
	 mqd_symmetrically_map_cu_mask(&(machine)->manager, (mask), (count), (se_mask)))
