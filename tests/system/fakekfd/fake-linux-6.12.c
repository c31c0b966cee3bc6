// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the amdkfd of Linux 6.12 asks otherwise than that of 6.1. */
#include <linux/idr.h>
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"

/* Of a CU, of two CUs, and of the GPU: the topology tells by them which CUs there are. KiB. */
static void describe_caches(struct amdgpu_device *adev)
{
	struct amdgpu_gfx_config *config = &adev->gfx.config;

	config->gc_tcp_l1_size = 32;
	config->gc_tcp_size_per_cu = 32;
	config->gc_num_tcp_per_wpg = 2;
	config->gc_l1_instruction_cache_size_per_sqc = 64;
	config->gc_l1_data_cache_size_per_sqc = 16;
	config->gc_num_sqc_per_wgp = 1;
	config->gc_num_cu_per_sqc = 2;
	config->gc_gl2c_per_gpu = 4096;
	config->gc_tcc_size = 4096;
}

static enum amdgpu_pkg_type package_of_a_card(struct amdgpu_device *adev)
{
	return AMDGPU_PKG_TYPE_CEM;
}

static enum amdgpu_memory_partition one_partition(struct amdgpu_device *adev)
{
	return AMDGPU_NPS1_PARTITION_MODE;
}

static const struct amdgpu_gmc_funcs memory = { .query_mem_partition_mode = one_partition };
static const struct amdgpu_smuio_funcs smuio = { .get_pkg_type = package_of_a_card };

void fake_linux_describe(struct fake_card *card)
{
	struct amdgpu_device *adev = card->adev;

	adev->gfx.cu_info = (struct amdgpu_cu_info){
		.number = card->cus.number,
		.simd_per_cu = card->cus.simd_per_cu,
		.max_waves_per_simd = card->cus.max_waves_per_simd,
		.wave_front_size = card->cus.wave_front_size,
		.max_scratch_slots_per_cu = 32,
		.lds_size = 64,
	};
	memcpy(adev->gfx.cu_info.bitmap, card->cus.bitmap, sizeof(card->cus.bitmap));
	adev->gfx.xcc_mask = (1U << card->geometry->xccs) - 1;
	adev->gfx.num_xcc_per_xcp = card->geometry->xccs;
	adev->smuio.funcs = &smuio;
	adev->gmc.gmc_funcs = &memory;
	describe_caches(adev);
	adev->doorbell.base = pci_resource_start(adev->pdev, 2);
}

bool fake_linux_start(struct fake_card *card, const struct kgd2kfd_shared_resources *resources)
{
	return kgd2kfd_device_init(card->adev->kfd.dev, resources);
}

int amdgpu_file_to_fpriv(struct file *file, struct amdgpu_fpriv **ret)
{
	struct drm_file *drm = file->private_data;

	if (!fake_render_is(file))
		return -EINVAL;
	*ret = drm->driver_priv;
	return 0;
}

void amdgpu_queue_mask_bit_to_mec_queue(struct amdgpu_device *adev, int bit, int *mec, int *pipe,
					int *queue)
{
	const struct fake_geometry *geometry = fake_card_of(adev)->geometry;

	*queue = bit % geometry->queues;
	*pipe = bit / geometry->queues % geometry->pipes;
	*mec = bit / geometry->queues / geometry->pipes;
}

int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *adev, int queue)
{
	return queue;
}

void amdgpu_reset_get_desc(struct amdgpu_reset_context *context, char *buffer, size_t size)
{
	strscpy(buffer, "unknown", size);
}

/* ---- debugging, and the time that a queue may still run when it is taken off --------------- */

uint32_t fake_debug_trap(struct amdgpu_device *adev, bool keep, uint32_t vmid)
{
	return 0;
}

void fake_wait_times(struct amdgpu_device *adev, uint32_t *ret, uint32_t xcc)
{
	*ret = 0;
}

void fake_grace_period(struct amdgpu_device *adev, uint32_t times, uint32_t period,
		       uint32_t *offset, uint32_t *data)
{
	*offset = 0;
	*data = times;
}

/* ---- memory: there is nothing to flush, and nothing fails ---------------------------------- */

int amdgpu_vm_flush_compute_tlb(struct amdgpu_device *adev, struct amdgpu_vm *vm,
				uint32_t flush_type, uint32_t xcc_mask)
{
	return 0;
}

void amdgpu_amdkfd_gpuvm_destroy_cb(struct amdgpu_device *adev, struct amdgpu_vm *vm)
{
}

bool amdgpu_amdkfd_is_fed(struct amdgpu_device *adev)
{
	return false;
}

uint64_t amdgpu_amdkfd_xcp_memory_size(struct amdgpu_device *adev, int partition)
{
	return FAKE_VRAM;
}

/* ---- doorbells: 8 KiB for each process, and for the driver -------------------------------- */

#define PAGES_OF_A_PROCESS 2

struct doorbells {
	struct amdgpu_bo bo;
	void *memory;
	int index;
};

static DEFINE_IDA(taken);

int amdgpu_bo_create_kernel(struct amdgpu_device *adev, unsigned long size, int align, u32 domain,
			    struct amdgpu_bo **ret, u64 *gpu_address, void **cpu_address)
{
	struct doorbells *doorbells = kvzalloc(sizeof(*doorbells), GFP_KERNEL);
	int last = pci_resource_len(adev->pdev, 2) / PAGE_SIZE / PAGES_OF_A_PROCESS - 1;

	if (!doorbells || size > PAGES_OF_A_PROCESS * PAGE_SIZE)
		goto fail;
	doorbells->index = ida_alloc_max(&taken, last, GFP_KERNEL);
	doorbells->memory = kvzalloc(size, GFP_KERNEL);
	if (doorbells->index < 0 || !doorbells->memory)
		goto fail;
	if (cpu_address)
		*cpu_address = doorbells->memory;
	*ret = &doorbells->bo;
	return 0;
fail:
	kvfree(doorbells);
	return -ENOMEM;
}

void amdgpu_bo_free_kernel(struct amdgpu_bo **bo, u64 *gpu_address, void **cpu_address)
{
	struct doorbells *doorbells = container_of(*bo, struct doorbells, bo);

	if (!*bo)
		return;
	ida_free(&taken, doorbells->index);
	kvfree(doorbells->memory);
	kvfree(doorbells);
	*bo = NULL;
}

uint32_t amdgpu_doorbell_index_on_bar(struct amdgpu_device *adev, struct amdgpu_bo *bo,
				      uint32_t index, uint32_t size)
{
	const struct doorbells *doorbells = container_of(bo, struct doorbells, bo);

	return (doorbells->index * PAGES_OF_A_PROCESS * PAGE_SIZE + index * size) / sizeof(u32);
}
