// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The registers of the GPU that is not there. Those of a queue slot are copied from the descriptor of
 * the queue that is loaded, for the driver to read them; the others do not exist.
 */
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"

/* CP_MQD_BASE_ADDR and those behind it, from hqd_dump() of gfx9, and the place in a descriptor of their
 * values: v9_structs.h. Those of the later generations are in the same order. */
#define FIRST_REGISTER	0xc914
#define DESCRIPTOR_REGISTERS 128
#define ACTIVE		2 /* CP_HQD_ACTIVE */

static void no_sh_mem(struct amdgpu_device *adev, uint32_t vmid, uint32_t config,
		      uint32_t ape1_base, uint32_t ape1_limit, uint32_t bases OF_XCC)
{
}

static int no_mapping(struct amdgpu_device *adev, u32 pasid, unsigned int vmid OF_XCC)
{
	return 0;
}

static int no_interrupts(struct amdgpu_device *adev, uint32_t pipe OF_XCC)
{
	return 0;
}

/* A slot of KFD; NULL for the slot of the scheduler, on a pipe of its own. */
static struct fake_slot *slot_of(struct amdgpu_device *adev, uint32_t xcc, uint32_t pipe,
				 uint32_t queue)
{
	struct fake_card *card = fake_card_of(adev);

	return xcc < FAKE_XCCS && pipe < card->geometry->pipes && queue < card->geometry->queues ?
		&card->slots[xcc][pipe][queue] : NULL;
}

/* As hqd_load() of amdgpu does, it says that the slot is active last. */
static int load_slot(struct amdgpu_device *adev, void *mqd, uint32_t pipe, uint32_t queue,
		     uint32_t __user *wptr, uint32_t shift, uint32_t mask, struct mm_struct *mm OF_XCC)
{
	struct fake_slot *slot = slot_of(adev, XCC, pipe, queue);

	if (!slot)
		return 0;
	memcpy(slot->registers, (uint32_t *)mqd + DESCRIPTOR_REGISTERS, sizeof(slot->registers));
	slot->registers[ACTIVE] = 1;
	return 0;
}

static int no_sdma_load(struct amdgpu_device *adev, void *mqd, uint32_t __user *wptr,
			struct mm_struct *mm)
{
	return 0;
}

static int no_sdma_dump(struct amdgpu_device *adev, uint32_t engine, uint32_t queue,
			uint32_t (**dump)[2], uint32_t *n)
{
	*dump = kzalloc(sizeof(**dump), GFP_KERNEL);
	*n = 1;
	return *dump ? 0 : -ENOMEM;
}

/* The registers of a slot, which the caller frees. */
static int dump_slot(struct amdgpu_device *adev, uint32_t pipe, uint32_t queue,
		     uint32_t (**dump)[2], uint32_t *n OF_XCC)
{
	const struct fake_slot *slot = slot_of(adev, XCC, pipe, queue);
	uint32_t i;

	*n = FAKE_SLOT_REGISTERS;
	*dump = kcalloc(*n, sizeof(**dump), GFP_KERNEL);
	for (i = 0; *dump && i < *n; i++) {
		(*dump)[i][0] = FIRST_REGISTER + i * sizeof(uint32_t);
		(*dump)[i][1] = slot ? slot->registers[i] : 0;
	}
	return *dump ? 0 : -ENOMEM;
}

static bool never_occupied(struct amdgpu_device *adev, uint64_t address, uint32_t pipe,
			   uint32_t queue OF_XCC)
{
	return false;
}

static bool never_sdma_occupied(struct amdgpu_device *adev, void *mqd)
{
	return false;
}

static int empty_slot(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type,
		      unsigned int timeout, uint32_t pipe, uint32_t queue OF_XCC)
{
	struct fake_slot *slot = slot_of(adev, XCC, pipe, queue);

	if (slot)
		memset(slot, 0, sizeof(*slot));
	return 0;
}

static int no_sdma_destroy(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	return 0;
}

static int no_wave_control(struct amdgpu_device *adev, uint32_t index, uint32_t command OF_XCC)
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

/* Each generation has a table of its own. */
#define CALLS {										\
	.program_sh_mem_settings = no_sh_mem,						\
	.set_pasid_vmid_mapping = no_mapping,						\
	.init_interrupts = no_interrupts,						\
	.hqd_load = load_slot,								\
	.hiq_mqd_load = fake_load_hiq,							\
	.hqd_sdma_load = no_sdma_load,							\
	.hqd_dump = dump_slot,								\
	.hqd_sdma_dump = no_sdma_dump,							\
	.hqd_is_occupied = never_occupied,						\
	.hqd_sdma_is_occupied = never_sdma_occupied,					\
	.hqd_destroy = empty_slot,							\
	.hqd_sdma_destroy = no_sdma_destroy,						\
	.wave_control_execute = no_wave_control,					\
	.get_atc_vmid_pasid_mapping_info = no_pasid,					\
	.set_vm_context_page_table_base = no_page_table,				\
	FURTHER_CALLS									\
}

const struct kfd2kgd_calls gfx_v9_kfd2kgd = CALLS, arcturus_kfd2kgd = CALLS,
			   aldebaran_kfd2kgd = CALLS, gc_9_4_3_kfd2kgd = CALLS,
			   gfx_v10_3_kfd2kgd = CALLS, gfx_v11_kfd2kgd = CALLS,
			   gfx_v12_kfd2kgd = CALLS;

/* These generations are not among the geometries. */
const struct kfd2kgd_calls gfx_v7_kfd2kgd, gfx_v8_kfd2kgd, gfx_v10_kfd2kgd;
