// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What amdkfd asks of amdgpu about GPUs that are not there. Devices of QEMU's (ivshmem, 1af4:1110)
 * are their PCI functions and their doorbells. They execute nothing. By default they have no firmware
 * to schedule queues (sched_policy=2); fake-scheduler.c is that for sched_policy=0.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"
#include "kfd_priv.h"

#define RENDER_MINOR	128
#define DOORBELL_BAR	2
#define SDMA_DOORBELLS	0x100 /* the first; each engine has a few of its own */
#define SDMA_DOORBELLS_OF_ENGINE 10

static struct fake_card cards[FAKE_CARDS];

struct fake_card *fake_card_of(struct amdgpu_device *adev)
{
	struct fake_card *card = cards;

	while (card->adev != adev)
		card++;
	return card;
}

struct fake_card *fake_card_first(void)
{
	return cards;
}

uint32_t amdgpu_amdkfd_get_fw_version(struct amdgpu_device *adev, enum kgd_engine_type type)
{
	return 4000; /* as new as any feature needs */
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

/* ---- the cards ---------------------------------------------------------------------------- */

static struct amdgpu_device *device_new(struct pci_dev *pci, struct fake_card *card)
{
	const struct fake_geometry *geometry = card->geometry;
	struct amdgpu_device *adev = kvzalloc(sizeof(*adev), GFP_KERNEL);

	if (!adev)
		return NULL;
	adev->dev = &pci->dev;
	adev->pdev = pci;
	adev->asic_type = geometry->asic;
	adev->ip_versions[GC_HWIP][0] = geometry->gc;
	adev->ip_versions[SDMA0_HWIP][0] = geometry->sdma;
	adev->rev_id = 1;
	adev->unique_id = 0xfa4e0001 + (card - cards);
	adev->sdma.num_instances = geometry->sdma_engines;
	adev->gmc.real_vram_size = FAKE_VRAM;
	adev->gmc.xgmi.supported = geometry->xgmi;
	adev->gfx.config.max_cu_per_sh = geometry->cus_on_die;
	adev->gfx.config.max_shader_engines = geometry->engines;
	adev->gfx.config.max_sh_per_se = geometry->arrays;
	adev->ddev.dev = &pci->dev;
	adev->ddev.render = &card->render;
	adev->reset_domain = &card->reset;
	spin_lock_init(&adev->mman.bdev.lru_lock);
	return adev;
}

static void share(struct fake_card *card, struct kgd2kfd_shared_resources *ret)
{
	const struct fake_geometry *geometry = card->geometry;
	struct pci_dev *pci = card->adev->pdev;
	int i;

	*ret = (struct kgd2kfd_shared_resources){
		.compute_vmid_bitmap = geometry->vmids,
		.num_pipe_per_mec = geometry->pipes,
		.num_queue_per_pipe = geometry->queues,
		.sdma_doorbell_idx = card->sdma_doorbells,
		.non_cp_doorbells_start = SDMA_DOORBELLS,
		.non_cp_doorbells_end = SDMA_DOORBELLS +
			ARRAY_SIZE(card->sdma_doorbells) * SDMA_DOORBELLS_OF_ENGINE - 1,
		.doorbell_physical_address = pci_resource_start(pci, DOORBELL_BAR),
		.doorbell_aperture_size = pci_resource_len(pci, DOORBELL_BAR),
		.gpuvm_size = 1ULL << 47,
		.drm_render_minor = card->render.index,
	};
	for (i = 0; i < ARRAY_SIZE(card->sdma_doorbells); i++)
		card->sdma_doorbells[i] = SDMA_DOORBELLS + i * SDMA_DOORBELLS_OF_ENGINE;
	/* The kernel's own rings have the first queues of each pipe. */
	for (i = 0; i < geometry->pipes; i++)
		bitmap_set(ret->cp_queue_bitmap, i * geometry->queues + geometry->kernel_queues,
			   geometry->queues - geometry->kernel_queues);
}

static int card_insert(struct fake_card *card, struct pci_dev *pci)
{
	struct kgd2kfd_shared_resources resources;
	int r = pci_enable_device(pci);

	if (r < 0)
		return r;
	card->geometry = fake_geometry_find(card - cards);
	if (!card->geometry)
		return -EINVAL;
	card->render.index = RENDER_MINOR + (card - cards);
	init_rwsem(&card->reset.sem);
	card->reset.wq = alloc_ordered_workqueue("fake-reset", 0);
	fake_geometry_fuse(card->geometry, card - cards, &card->cus);
	card->adev = device_new(pci, card);
	if (!card->reset.wq || !card->adev)
		return -ENOMEM;
	fake_linux_describe(card);
	r = fake_render_register(card);
	if (r < 0)
		return r;

	card->adev->kfd.dev = kgd2kfd_probe(card->adev, false);
	if (!card->adev->kfd.dev)
		return -ENODEV;
	share(card, &resources);
	card->adev->kfd.init_complete = fake_linux_start(card, &resources);
	return card->adev->kfd.init_complete ? 0 : -EIO;
}

/* What it has taken stays with a machine that is about to end: it cannot be unloaded. */
static int __init fake_init(void)
{
	struct pci_dev *pci = NULL;
	int i, r = kgd2kfd_init();

	for (i = 0; r == 0 && i < fake_cards(); i++) {
		pci = pci_get_device(0x1af4, 0x1110, pci);
		r = pci ? card_insert(&cards[i], pci) : -ENODEV;
	}
	pr_info("fake GPU: %d\n", r);
	return r;
}
module_init(fake_init);

MODULE_DESCRIPTION("amdkfd with GPUs that are not there");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(DMA_BUF);
