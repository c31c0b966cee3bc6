/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "kfdsim/driver/parts.h"

/* Linux, kfd_priv.h: KFD_MMAP_TYPE_SHIFT and KFD_MMAP_GPU_ID_SHIFT. */
#define TYPE_SHIFT 62
#define GPU_ID_SHIFT 46
#define GPU_ID_MASK 0xffffU
#define OFFSET_MASK ((1ULL << GPU_ID_SHIFT) - 1)
#define MMIO_SIZE 4096U

uint64_t sim_mmap_encode(enum sim_mmap type, uint32_t gpu_id, uint64_t offset)
{
	return (uint64_t)type << TYPE_SHIFT | (uint64_t)(gpu_id & GPU_ID_MASK) << GPU_ID_SHIFT |
	       (offset & OFFSET_MASK);
}

void sim_mmap_decode(uint64_t encoded, enum sim_mmap *type, uint32_t *gpu_id, uint64_t *offset)
{
	*type = (enum sim_mmap)(encoded >> TYPE_SHIFT);
	*gpu_id = encoded >> GPU_ID_SHIFT & GPU_ID_MASK;
	*offset = encoded & OFFSET_MASK;
}

int sim_slice(struct sim_process *process, const struct sim_gpu *gpu, uint64_t *ret)
{
	uint64_t *slice = &process->slices[gpu->index];

	if (*slice == 0) {
		int r = sim_arena_take_slice(process->sim, slice);

		if (r < 0)
			return r;
	}
	*ret = *slice;
	return 0;
}

void sim_slices_free(struct sim_process *process)
{
	for (size_t i = 0; i < process->sim->n_gpus; i++)
		sim_arena_put(process->sim, process->slices[i], SIM_SLICE);
}

int sim_mmio(struct sim *sim, const struct sim_gpu *gpu, uint64_t *ret)
{
	uint64_t *page = &sim->mmio[gpu->index];

	if (*page == 0) {
		int r = sim_arena_take(sim, MMIO_SIZE, page);

		if (r < 0)
			return r;
	}
	*ret = *page;
	return 0;
}

/* kfd_event_mmap(): with it mapped, all slots may be used. */
static int events_place(struct sim_process *process, uint64_t offset, uint64_t *ret)
{
	if (process->event_page == 0 || offset >= 8ULL * SIM_EVENT_SLOTS_MAX)
		return -EINVAL;
	if (process->event_handle == 0)
		process->event_slots = SIM_EVENT_SLOTS_MAX;
	*ret = process->event_page;
	return 0;
}

int sim_mmap_place(struct sim *sim, struct sim_process *process, uint64_t encoded,
		   uint64_t *ret_place)
{
	uint64_t offset, place = 0;
	enum sim_mmap type;
	struct sim_gpu *gpu;
	uint32_t gpu_id;
	int r = -EINVAL;

	sim_mmap_decode(encoded, &type, &gpu_id, &offset);
	gpu = sim_find_gpu(sim, gpu_id);
	if (type == SIM_MMAP_EVENTS)
		r = events_place(process, offset, &place);
	else if (type == SIM_MMAP_DOORBELL && gpu && offset < SIM_SLICE)
		r = sim_slice(process, gpu, &place);
	else if (type == SIM_MMAP_MMIO && gpu && offset < MMIO_SIZE)
		r = sim_mmio(sim, gpu, &place);
	if (r < 0)
		return r;
	*ret_place = place + offset;
	return 0;
}
