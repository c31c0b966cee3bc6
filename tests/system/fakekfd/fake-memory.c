// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of the GPU that is not there: what the driver needs of it for itself is the machine's. */
#include <linux/slab.h>

#include "amdgpu.h"
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

void amdgpu_amdkfd_get_local_mem_info(struct amdgpu_device *adev, struct kfd_local_mem_info *info)
{
	*info = (struct kfd_local_mem_info){
		.local_mem_size_public = FAKE_VRAM,
		.vram_width = 4096,
		.mem_clk_max = 1600,
	};
}

/* The driver only keeps the pointer, and releases it with the process. */
int amdgpu_amdkfd_gpuvm_acquire_process_vm(struct amdgpu_device *adev, struct file *file,
					   void **info, struct dma_fence **fence)
{
	if (!*info)
		*info = kzalloc(64, GFP_KERNEL);
	return *info ? 0 : -ENOMEM;
}

/* Of a process's own buffers, for its events and traps. */
int amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(struct amdgpu_device *adev, uint64_t address,
					    uint64_t size, void *drm, struct kgd_mem **ret,
					    uint64_t *offset, uint32_t flags, bool criu)
{
	*ret = kzalloc(sizeof(**ret), GFP_KERNEL);
	if (offset)
		*offset = 0;
	return *ret ? 0 : -ENOMEM;
}

int amdgpu_amdkfd_gpuvm_free_memory_of_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					   void *drm, uint64_t *size)
{
	kfree(memory);
	return 0;
}

int amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel(struct kgd_mem *memory, void **address,
					     uint64_t *size)
{
	memory->va = get_zeroed_page(GFP_KERNEL);
	*address = (void *)memory->va;
	if (size)
		*size = PAGE_SIZE;
	return *address ? 0 : -ENOMEM;
}

void amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(struct kgd_mem *memory)
{
	free_page(memory->va);
}

/* ---- page tables: nothing walks them ------------------------------------------------------ */

int amdgpu_amdkfd_gpuvm_set_vm_pasid(struct amdgpu_device *adev, struct file *file, u32 pasid)
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

int amdgpu_amdkfd_gpuvm_map_memory_to_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					  void *drm)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					      void *drm)
{
	return 0;
}

int amdgpu_amdkfd_gpuvm_sync_memory(struct amdgpu_device *adev, struct kgd_mem *memory,
				    bool interruptible)
{
	return 0;
}
