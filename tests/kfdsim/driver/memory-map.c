/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

/* Both have the same argument: kfd_ioctl_unmap_memory_from_gpu_args too. */
typedef int (*each_t)(const struct sim_call *call, struct sim_buffer *buffer, struct sim_gpu *gpu);

static bool overlap(const struct sim_buffer *a, const struct sim_buffer *b)
{
	return a->address - b->address < b->size || b->address - a->address < a->size;
}

/* amdgpu_vm_bo_map(): an address is one buffer's. */
static bool address_taken(const struct sim_process *process, const struct sim_buffer *buffer,
			  uint64_t bit)
{
	for (struct sim_buffer *other = process->buffers; other; other = other->next)
		if (other != buffer && other->mapped & bit && overlap(other, buffer))
			return true;
	return false;
}

static int map(const struct sim_call *call, struct sim_buffer *buffer, struct sim_gpu *gpu)
{
	uint64_t bit = 1ULL << gpu->index;

	if (gpu->gone)
		return -EINVAL;
	if (!call->process->acquired[gpu->index])
		return -ENODEV;
	if (address_taken(call->process, buffer, bit))
		return -EINVAL;
	buffer->mapped |= bit;
	return 0;
}

static int unmap(const struct sim_call *call, struct sim_buffer *buffer, struct sim_gpu *gpu)
{
	(void)call;
	buffer->mapped &= ~(1ULL << gpu->index);
	return 0;
}

/* From n_success on, so that a call that was interrupted can be made again. */
static int for_each(const struct sim_call *call, struct kfd_ioctl_map_memory_to_gpu_args *args,
		    each_t each)
{
	struct sim_buffer *buffer;
	uint32_t ids[SIM_GPUS_MAX];

	if (args->n_devices == 0 || args->n_success > args->n_devices)
		return -EINVAL;
	if (args->n_devices > SIM_GPUS_MAX)
		return -ENOMEM;
	if (sim_copy_from(call, args->device_ids_array_ptr, ids, args->n_devices * sizeof(ids[0])) <
	    0)
		return -EFAULT;
	if (!sim_known_gpu(call->sim, (uint32_t)(args->handle >> 32)))
		return -EINVAL;
	buffer = sim_find_buffer(call->process, args->handle);
	if (!buffer)
		return -ENOMEM;
	for (uint32_t i = args->n_success; i < args->n_devices; i++) {
		struct sim_gpu *gpu = sim_known_gpu(call->sim, ids[i]);
		int r = gpu ? each(call, buffer, gpu) : -EINVAL;

		if (r < 0)
			return r;
		args->n_success = i + 1;
	}
	return 0;
}

int ioctl_map_memory(const struct sim_call *call, void *argument)
{
	return for_each(call, argument, map);
}

int ioctl_unmap_memory(const struct sim_call *call, void *argument)
{
	return for_each(call, argument, unmap);
}
