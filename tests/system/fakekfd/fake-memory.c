// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of the GPU that is not there: what the driver needs of it for itself is the machine's. */
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"

int amdgpu_amdkfd_alloc_gtt_mem(struct amdgpu_device *adev, size_t size, void **object,
				uint64_t *gpu_address, void **cpu_address, bool mqd_gfx9)
{
	void *memory = kvzalloc(size, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	*object = memory;
	*cpu_address = memory;
	*gpu_address = (uint64_t)memory;
	return 0;
}

void amdgpu_amdkfd_free_gtt_mem(struct amdgpu_device *adev, void **object)
{
	kvfree(*object);
	*object = NULL;
}

void amdgpu_amdkfd_get_local_mem_info(struct amdgpu_device *adev,
				      struct kfd_local_mem_info *info OF_PARTITION)
{
	*info = (struct kfd_local_mem_info){
		.local_mem_size_public = FAKE_VRAM,
		.vram_width = 4096,
		.mem_clk_max = 1600,
	};
}

/* The driver only keeps the pointer, and releases it with the process. */
int amdgpu_amdkfd_gpuvm_acquire_process_vm(struct amdgpu_device *adev, ADDRESS_SPACE *space,
					   void **info, struct dma_fence **fence)
{
	if (!*info)
		*info = kzalloc(64, GFP_KERNEL);
	return *info ? 0 : -ENOMEM;
}

/* Buffers of a process. Only those that the driver itself maps have contents. */
int amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(struct amdgpu_device *adev, uint64_t address,
					    uint64_t size, void *drm, struct kgd_mem **ret,
					    uint64_t *offset, uint32_t flags, bool criu)
{
	struct kgd_mem *memory = kzalloc(sizeof(*memory), GFP_KERNEL);

	if (memory)
		memory->bo = kzalloc(sizeof(*memory->bo), GFP_KERNEL);
	if (!memory || !memory->bo) {
		kfree(memory);
		return -ENOMEM;
	}
	memory->va = address;
	memory->bo->tbo.base.size = PAGE_ALIGN(size);
	if (offset)
		*offset = 0;
	*ret = memory;
	return 0;
}

int amdgpu_amdkfd_gpuvm_free_memory_of_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					   void *drm, uint64_t *size)
{
	if (drm)
		amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(adev, memory, drm);
	if (size)
		*size = amdgpu_bo_size(memory->bo);
	kfree(memory->bo);
	kfree(memory);
	return 0;
}

int amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel(struct kgd_mem *memory, void **address,
					     uint64_t *size)
{
	memory->bo->kmap.virtual = kvzalloc(amdgpu_bo_size(memory->bo), GFP_KERNEL);
	*address = memory->bo->kmap.virtual;
	if (size)
		*size = amdgpu_bo_size(memory->bo);
	return *address ? 0 : -ENOMEM;
}

void amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(struct kgd_mem *memory)
{
	kvfree(memory->bo->kmap.virtual);
}

/* ---- page tables: nothing walks them ------------------------------------------------------ */

int amdgpu_amdkfd_gpuvm_set_vm_pasid(struct amdgpu_device *adev, ADDRESS_SPACE *space, u32 pasid)
{
	return 0;
}

uint64_t amdgpu_amdkfd_gpuvm_get_process_page_dir(void *drm)
{
	return 0;
}

void amdgpu_amdkfd_gpuvm_release_process_vm(struct amdgpu_device *adev, void *drm)
{
}

int amdgpu_amdkfd_gpuvm_sync_memory(struct amdgpu_device *adev, struct kgd_mem *memory,
				    bool interruptible)
{
	return 0;
}
