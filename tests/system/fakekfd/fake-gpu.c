// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What amdkfd asks of amdgpu about one GPU that is not there: an MI200 with 8 shader engines of 13
 * CUs, 4 pipes of 8 queues, 13 VMIDs. A device of QEMU's (ivshmem, 1af4:1110) is its PCI function
 * and its doorbells. It executes nothing: to load a queue into its slot there is nothing to do. By
 * default it has no firmware to schedule queues (sched_policy=2); fake-scheduler.c is that for
 * sched_policy=0.
 */
#include <linux/dma-fence.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_reset.h"
#include "fake.h"
#include "kfd_priv.h"

#define ENGINES		8
#define CUS_OF_ENGINE	13
#define CUS_ON_DIE	14 /* the last of each is fused off */
#define PIPES		4
#define QUEUES_OF_PIPE	8
#define RENDER_MINOR	128
#define DOORBELL_BAR	2

static struct {
	struct amdgpu_device *adev;
	struct amdgpu_reset_domain reset;
	struct drm_minor render;
	uint32_t sdma_doorbells[16];
} card;

void amdgpu_amdkfd_get_cu_info(struct amdgpu_device *adev, struct kfd_cu_info *info)
{
	int i;

	*info = (struct kfd_cu_info){
		.num_shader_engines = ENGINES,
		.num_shader_arrays_per_engine = 1,
		.num_cu_per_sh = CUS_ON_DIE,
		.cu_active_number = ENGINES * CUS_OF_ENGINE,
		.simd_per_cu = 4,
		.max_waves_per_simd = 8,
		.wave_front_size = 64,
		.max_scratch_slots_per_cu = 32,
		.lds_size = 64,
	};
	/* Four columns of engines: those beyond are further rows. */
	for (i = 0; i < ENGINES; i++)
		info->cu_bitmap[i % 4][i / 4] = (1U << CUS_OF_ENGINE) - 1;
}

uint32_t amdgpu_amdkfd_get_fw_version(struct amdgpu_device *adev, enum kgd_engine_type type)
{
	return 60;
}

uint64_t amdgpu_amdkfd_get_gpu_clock_counter(struct amdgpu_device *adev)
{
	return ktime_get_ns();
}

uint32_t amdgpu_amdkfd_get_max_engine_clock_in_mhz(struct amdgpu_device *adev)
{
	return 1700;
}

bool amdgpu_amdkfd_have_atomics_support(struct amdgpu_device *adev)
{
	return true;
}

int amdgpu_pasid_alloc(unsigned int bits)
{
	static atomic_t last = ATOMIC_INIT(0x8000);

	return atomic_inc_return(&last);
}

/* They are enough for a machine's life. */
void amdgpu_pasid_free(u32 pasid)
{
}

/* 16 lanes of PCI Express 4.0. */
int amdgpu_amdkfd_get_pcie_bandwidth_mbytes(struct amdgpu_device *adev, bool is_min)
{
	return 32000;
}

void amdgpu_amdkfd_set_compute_idle(struct amdgpu_device *adev, bool idle)
{
}

/* ---- registers: there are none ---------------------------------------------------------- */

static void no_sh_mem(struct amdgpu_device *adev, uint32_t vmid, uint32_t config,
		      uint32_t ape1_base, uint32_t ape1_limit, uint32_t bases)
{
}

static int no_mapping(struct amdgpu_device *adev, u32 pasid, unsigned int vmid)
{
	return 0;
}

static int no_interrupts(struct amdgpu_device *adev, uint32_t pipe)
{
	return 0;
}

static int no_load(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		   uint32_t __user *wptr, uint32_t shift, uint32_t mask, struct mm_struct *mm)
{
	return 0;
}

static int no_sdma_load(struct amdgpu_device *adev, void *mqd, uint32_t __user *wptr,
			struct mm_struct *mm)
{
	return 0;
}

/* One register of each slot, which the caller frees. */
static int one_register(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue,
			uint32_t (**dump)[2], uint32_t *n)
{
	*dump = kzalloc(sizeof(**dump), GFP_KERNEL);
	*n = 1;
	return *dump ? 0 : -ENOMEM;
}

static bool never_occupied(struct amdgpu_device *adev, uint64_t address, uint32_t pipe,
			   uint32_t queue)
{
	return false;
}

static bool never_sdma_occupied(struct amdgpu_device *adev, void *mqd)
{
	return false;
}

static int no_destroy(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type,
		      unsigned int timeout, uint32_t pipe, uint32_t queue)
{
	return 0;
}

static int no_sdma_destroy(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	return 0;
}

static int no_wave_control(struct amdgpu_device *adev, uint32_t index, uint32_t command)
{
	return 0;
}

static bool no_pasid(struct amdgpu_device *adev, uint8_t vmid, uint16_t *pasid)
{
	*pasid = 0;
	return false;
}

static void no_page_table(struct amdgpu_device *adev, uint32_t vmid, uint64_t base)
{
}

const struct kfd2kgd_calls aldebaran_kfd2kgd = {
	.program_sh_mem_settings = no_sh_mem,
	.set_pasid_vmid_mapping = no_mapping,
	.init_interrupts = no_interrupts,
	.hqd_load = no_load,
	.hiq_mqd_load = fake_load_hiq,
	.hqd_sdma_load = no_sdma_load,
	.hqd_dump = one_register,
	.hqd_sdma_dump = one_register,
	.hqd_is_occupied = never_occupied,
	.hqd_sdma_is_occupied = never_sdma_occupied,
	.hqd_destroy = no_destroy,
	.hqd_sdma_destroy = no_sdma_destroy,
	.wave_control_execute = no_wave_control,
	.get_atc_vmid_pasid_mapping_info = no_pasid,
	.set_vm_context_page_table_base = no_page_table,
};

/* ---- the render node: what ACQUIRE_VM wants a file of ------------------------------------- */

static int render_open(struct inode *inode, struct file *file)
{
	struct drm_file *drm = kvzalloc(sizeof(*drm), GFP_KERNEL);
	struct amdgpu_fpriv *private = kvzalloc(sizeof(*private), GFP_KERNEL);

	if (!drm || !private) {
		kvfree(drm);
		kvfree(private);
		return -ENOMEM;
	}
	private->vm.last_tlb_flush = dma_fence_get_stub();
	drm->driver_priv = private;
	file->private_data = drm;
	return 0;
}

static int render_release(struct inode *inode, struct file *file)
{
	struct drm_file *drm = file->private_data;
	struct amdgpu_fpriv *private = drm->driver_priv;

	dma_fence_put(private->vm.last_tlb_flush);
	kvfree(private);
	kvfree(drm);
	return 0;
}

static const struct file_operations render_operations = {
	.owner = THIS_MODULE,
	.open = render_open,
	.release = render_release,
};

static struct miscdevice render = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "renderD128",
	.nodename = "dri/renderD128",
	.fops = &render_operations,
	.mode = 0660,
};

/* ---- the card ----------------------------------------------------------------------------- */

static struct amdgpu_device *card_new(struct pci_dev *pci)
{
	struct amdgpu_device *adev = kvzalloc(sizeof(*adev), GFP_KERNEL);

	if (!adev)
		return NULL;
	adev->dev = &pci->dev;
	adev->pdev = pci;
	adev->asic_type = CHIP_ALDEBARAN;
	adev->ip_versions[GC_HWIP][0] = IP_VERSION(9, 4, 2);
	adev->ip_versions[SDMA0_HWIP][0] = IP_VERSION(4, 4, 0);
	adev->rev_id = 1;
	adev->unique_id = 0xfa4e0001;
	adev->sdma.num_instances = 5;
	adev->gmc.real_vram_size = FAKE_VRAM;
	adev->gfx.config.max_cu_per_sh = CUS_ON_DIE;
	adev->gfx.config.max_shader_engines = ENGINES;
	adev->gfx.config.max_sh_per_se = 1;
	adev->ddev.dev = &pci->dev;
	adev->ddev.render = &card.render;
	adev->reset_domain = &card.reset;
	return adev;
}

static void share(struct pci_dev *pci, struct kgd2kfd_shared_resources *ret)
{
	*ret = (struct kgd2kfd_shared_resources){
		.compute_vmid_bitmap = 0xfff8,
		.num_pipe_per_mec = PIPES,
		.num_queue_per_pipe = QUEUES_OF_PIPE,
		.sdma_doorbell_idx = card.sdma_doorbells,
		.non_cp_doorbells_start = 0x1e0 / 2,
		.non_cp_doorbells_end = 0x1ff / 2,
		.doorbell_physical_address = pci_resource_start(pci, DOORBELL_BAR),
		.doorbell_aperture_size = pci_resource_len(pci, DOORBELL_BAR),
		.gpuvm_size = 1ULL << 47,
		.drm_render_minor = RENDER_MINOR,
	};
	bitmap_set(ret->cp_queue_bitmap, 0, PIPES * QUEUES_OF_PIPE);
}

static int card_insert(struct pci_dev *pci)
{
	struct kgd2kfd_shared_resources resources;
	int r = pci_enable_device(pci);

	if (r < 0)
		return r;
	card.render.index = RENDER_MINOR;
	card.reset.wq = alloc_ordered_workqueue("fake-reset", 0);
	card.adev = card_new(pci);
	if (!card.reset.wq || !card.adev)
		return -ENOMEM;
	r = misc_register(&render);
	if (r < 0)
		return r;

	card.adev->kfd.dev = kgd2kfd_probe(card.adev, false);
	if (!card.adev->kfd.dev)
		return -ENODEV;
	share(pci, &resources);
	card.adev->kfd.init_complete =
		kgd2kfd_device_init(card.adev->kfd.dev, &card.adev->ddev, &resources);
	return card.adev->kfd.init_complete ? 0 : -EIO;
}

/* What it has taken stays with a machine that is about to end: it cannot be unloaded. */
static int __init fake_init(void)
{
	struct pci_dev *pci = pci_get_device(0x1af4, 0x1110, NULL);
	int r = kgd2kfd_init();

	if (r == 0)
		r = pci ? card_insert(pci) : -ENODEV;
	pr_info("fake GPU: %d\n", r);
	return r;
}
module_init(fake_init);

MODULE_DESCRIPTION("amdkfd with a GPU that is not there");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(DMA_BUF);
