// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The render nodes: ACQUIRE_VM wants an open file of one. Each file is an address space, which knows
 * only what is mapped in it: amdkfd looks there for the buffers of a queue.
 */
#include <linux/dma-fence.h>
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"

struct render_file {
	struct drm_file drm;
	struct amdgpu_fpriv private;
	struct amdgpu_bo root; /* it is only locked */
	struct list_head mappings;
};

struct render_mapping {
	struct list_head list;
	struct kgd_mem *memory;
	struct amdgpu_bo_va_mapping range;
	struct amdgpu_bo_va va;
};

static int render_open(struct inode *inode, struct file *file)
{
	struct fake_card *card = container_of(file->private_data, struct fake_card, node);
	struct render_file *render = kvzalloc(sizeof(*render), GFP_KERNEL);

	if (!render)
		return -ENOMEM;
	INIT_LIST_HEAD(&render->mappings);
	dma_resv_init(&render->root.tbo.base._resv);
	render->root.tbo.base.resv = &render->root.tbo.base._resv;
	render->root.tbo.bdev = &card->adev->mman.bdev;
	render->private.vm.root.bo = &render->root;
	render->private.vm.last_tlb_flush = dma_fence_get_stub();
	render->drm.driver_priv = &render->private;
	file->private_data = &render->drm;
	return 0;
}

static void mapping_free(struct render_mapping *mapping)
{
	list_del(&mapping->list);
	kfree(mapping);
}

static int render_release(struct inode *inode, struct file *file)
{
	struct render_file *render = container_of(file->private_data, struct render_file, drm);
	struct render_mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &render->mappings, list)
		mapping_free(mapping);
	dma_fence_put(render->private.vm.last_tlb_flush);
	dma_resv_fini(&render->root.tbo.base._resv);
	kvfree(render);
	return 0;
}

static const struct file_operations render_operations = {
	.owner = THIS_MODULE,
	.open = render_open,
	.release = render_release,
};

bool fake_render_is(struct file *file)
{
	return file->f_op == &render_operations;
}

int fake_render_register(struct fake_card *card)
{
	struct device *device = card->adev->dev;
	char *name = devm_kasprintf(device, GFP_KERNEL, "renderD%d", card->render.index);

	card->node = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = name,
		.nodename = devm_kasprintf(device, GFP_KERNEL, "dri/%s", name),
		.fops = &render_operations,
		.mode = 0660,
	};
	return card->node.nodename ? misc_register(&card->node) : -ENOMEM;
}

/* ---- mappings: the mutex of the process protects them --------------------------------------- */

int amdgpu_amdkfd_gpuvm_map_memory_to_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					  void *drm)
{
	struct render_file *render = container_of(drm, struct render_file, drm);
	struct render_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL);

	if (!mapping)
		return -ENOMEM;
	mapping->memory = memory;
	mapping->range.start = memory->va >> AMDGPU_GPU_PAGE_SHIFT;
	mapping->range.last = mapping->range.start + amdgpu_bo_ngpu_pages(memory->bo) - 1;
	mapping->range.bo_va = &mapping->va;
	mapping->va.base.bo = memory->bo;
	list_add(&mapping->list, &render->mappings);
	return 0;
}

int amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(struct amdgpu_device *adev, struct kgd_mem *memory,
					      void *drm)
{
	struct render_file *render = container_of(drm, struct render_file, drm);
	struct render_mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &render->mappings, list)
		if (mapping->memory == memory)
			mapping_free(mapping);
	return 0;
}

static struct render_file *render_of_vm(struct amdgpu_vm *vm)
{
	return container_of(vm, struct render_file, private.vm);
}

struct amdgpu_bo_va_mapping *amdgpu_vm_bo_lookup_mapping(struct amdgpu_vm *vm, uint64_t page)
{
	struct render_mapping *mapping;

	list_for_each_entry(mapping, &render_of_vm(vm)->mappings, list)
		if (page >= mapping->range.start && page <= mapping->range.last)
			return &mapping->range;
	return NULL;
}

struct amdgpu_bo_va *amdgpu_vm_bo_find(struct amdgpu_vm *vm, struct amdgpu_bo *bo)
{
	struct render_mapping *mapping;

	list_for_each_entry(mapping, &render_of_vm(vm)->mappings, list)
		if (mapping->va.base.bo == bo)
			return &mapping->va;
	return NULL;
}

/* A buffer lives until its memory is freed. */
struct amdgpu_bo *amdgpu_bo_ref(struct amdgpu_bo *bo)
{
	return bo;
}

void amdgpu_bo_unref(struct amdgpu_bo **bo)
{
	*bo = NULL;
}
