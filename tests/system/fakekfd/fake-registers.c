// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The registers of the GPU that is not there. Those of a queue slot are copied from the descriptor of
 * the queue that is loaded, for the driver to read them; the others do not exist.
 */
#include <linux/slab.h>

#include "amdgpu_amdkfd.h"
#include "fake.h"
#include "v9_structs.h"

/* CP_MQD_BASE_ADDR and those behind it, from hqd_dump() of gfx9, and the place in a descriptor of their
 * values: v9_structs.h. Those of the later generations are in the same order. */
#define FIRST_REGISTER	0xc914
#define DESCRIPTOR_REGISTERS 128
#define ACTIVE		2 /* CP_HQD_ACTIVE */

/* Registers of an SDMA queue slot, from hqd_sdma_dump() of gfx9: SDMA0_RLC0_RB_CNTL is the first, and one
 * run of them ends behind SDMA0_RLC0_DOORBELL. */
#define FIRST_OF_RINGS	0x4e80
#define ENGINE_BYTES	0x1800
#define RING_BYTES	0x180
#define SECOND_RUN	0xa0
enum { CONTROL, DOORBELL = 18, STATUS };
#define RING_ENABLED	1U
#define DOORBELL_ENABLED (1U << 28)

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

static struct fake_ring *ring_of(struct amdgpu_device *adev, uint32_t engine, uint32_t queue)
{
	return engine < FAKE_ENGINES && queue < FAKE_RINGS ?
		&fake_card_of(adev)->rings[engine][queue] : NULL;
}

/* The descriptors of later generations have the ids of the engine and its queue where gfx9 has them. */
static struct fake_ring *ring_of_mqd(struct amdgpu_device *adev, const struct v9_sdma_mqd *mqd)
{
	return ring_of(adev, mqd->sdma_engine_id, mqd->sdma_queue_id);
}

static int load_ring(struct amdgpu_device *adev, void *mqd, uint32_t __user *wptr,
		     struct mm_struct *mm)
{
	struct fake_ring *ring = ring_of_mqd(adev, mqd);

	if (!ring)
		return -EINVAL;
	memcpy(ring->registers, mqd, sizeof(ring->registers));
	ring->registers[CONTROL] |= RING_ENABLED;
	ring->registers[DOORBELL] |= DOORBELL_ENABLED;
	return 0;
}

/* As hqd_sdma_destroy() of amdgpu does, it leaves the ring enabled. */
static int empty_ring(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	struct fake_ring *ring = ring_of_mqd(adev, mqd);

	if (ring)
		ring->registers[DOORBELL] = 0;
	return 0;
}

/* The registers of a slot, which the caller frees. */
static int dump_ring(struct amdgpu_device *adev, uint32_t engine, uint32_t queue,
		     uint32_t (**dump)[2], uint32_t *n)
{
	const struct fake_ring *ring = ring_of(adev, engine, queue);
	uint32_t i, first = FIRST_OF_RINGS + engine * ENGINE_BYTES + queue * RING_BYTES;

	*n = FAKE_RING_REGISTERS;
	*dump = kcalloc(*n, sizeof(**dump), GFP_KERNEL);
	for (i = 0; *dump && i < *n; i++) {
		(*dump)[i][0] = first + (i < STATUS ? 0 : SECOND_RUN - STATUS * 4) + i * 4;
		(*dump)[i][1] = ring ? ring->registers[i] : 0;
	}
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
	.hqd_sdma_load = load_ring,							\
	.hqd_dump = dump_slot,								\
	.hqd_sdma_dump = dump_ring,							\
	.hqd_is_occupied = never_occupied,						\
	.hqd_sdma_is_occupied = never_sdma_occupied,					\
	.hqd_destroy = empty_slot,							\
	.hqd_sdma_destroy = empty_ring,							\
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
