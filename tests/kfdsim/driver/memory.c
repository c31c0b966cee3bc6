/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define PAGE 4096U

#define KINDS_MAPPED (KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)

/* ---- as the GPU sees it ---- */

/* The buffer that an address lies in, or NULL; *size is cut to what is alike from there on. */
static const struct sim_buffer *buffer_at(const struct sim_process *process, uint64_t address,
					  size_t *size)
{
	for (struct sim_buffer *buffer = process->buffers; buffer; buffer = buffer->next) {
		if (!buffer->mapped)
			continue;
		if (address >= buffer->address && address - buffer->address < buffer->size) {
			uint64_t left = buffer->size - (address - buffer->address);

			*size = *size < left ? *size : left;
			return buffer;
		}
		if (buffer->address > address && buffer->address - address < *size)
			*size = buffer->address - address;
	}
	return NULL;
}

static int transfer(struct sim_process *process, uint64_t address, uint8_t *buf, size_t size,
		    bool put)
{
	const struct sim_world *world = &process->sim->world;
	const struct sim_buffer *buffer = buffer_at(process, address, &size);
	uint64_t offset = buffer ? address - buffer->address : 0;
	int r = 0;

	if (buffer && buffer->place && put)
		memcpy(world->arena + buffer->place + offset, buf, size);
	else if (buffer && buffer->place)
		memcpy(buf, world->arena + buffer->place + offset, size);
	else if (buffer)
		address = buffer->user + offset;
	if (!buffer || !buffer->place)
		r = put ? world->write(world->userdata, process->pid, address, buf, size)
			: world->read(world->userdata, process->pid, address, buf, size);
	return r < 0 ? -EFAULT : (int)size;
}

#define PIECE (1U << 30) /* what transfer() can say that it has done */

int sim_get(struct sim_process *process, uint64_t address, void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		size_t n = size - done < PIECE ? size - done : PIECE;
		int r = transfer(process, address + done, (uint8_t *)buf + done, n, false);

		if (r < 0)
			return r;
		done += (size_t)r;
	}
	return 0;
}

int sim_put(struct sim_process *process, uint64_t address, const void *buf, size_t size)
{
	uint8_t *from = (uint8_t *)(uintptr_t)buf; /* only read where put is set */

	for (size_t done = 0; done < size;) {
		size_t n = size - done < PIECE ? size - done : PIECE;
		int r = transfer(process, address + done, from + done, n, true);

		if (r < 0)
			return r;
		done += (size_t)r;
	}
	return 0;
}

/* ---- buffers ---- */

struct sim_buffer *sim_find_buffer(const struct sim_process *process, uint64_t handle)
{
	for (struct sim_buffer *buffer = process->buffers; buffer; buffer = buffer->next)
		if (buffer->handle == handle)
			return buffer;
	return NULL;
}

static void account(struct sim *sim, const struct sim_buffer *buffer, uint64_t size)
{
	if (buffer->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		sim_known_gpu(sim, buffer->gpu_id)->vram_used += size;
}

static void buffer_free(struct sim_process *process, struct sim_buffer *buffer)
{
	account(process->sim, buffer, -buffer->size);
	if (!(buffer->flags & KINDS_MAPPED))
		sim_arena_put(process->sim, buffer->place, buffer->size);
	free(buffer);
}

void sim_buffers_free(struct sim_process *process)
{
	while (process->buffers) {
		struct sim_buffer *buffer = process->buffers;

		process->buffers = buffer->next;
		buffer_free(process, buffer);
	}
	if (process->event_handle == 0)
		sim_arena_put(process->sim, process->event_page, 8ULL * SIM_EVENT_SLOTS_MAX);
}

/* The driver compares open files: one by another number is the same. */
static bool same_file(const struct sim_process *process, int kept, int fd)
{
	const struct sim_world *world = &process->sim->world;

	return world->file_keep ? world->file_same(world->userdata, kept, process->pid, fd)
				: kept == fd;
}

int ioctl_acquire_vm(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_acquire_vm_args *args = argument;
	struct sim_process *process = call->process;
	struct sim_gpu *gpu = sim_find_gpu(call->sim, args->gpu_id);

	const struct sim_world *world = &call->sim->world;
	int file = (int)args->drm_fd;

	if (!gpu || args->drm_fd > INT_MAX)
		return -EINVAL;
	if (process->acquired[gpu->index])
		return same_file(process, process->drm_files[gpu->index], file) ? 0 : -EBUSY;
	if (world->file_keep)
		file = world->file_keep(world->userdata, process->pid, file);
	if (file < 0)
		return -EINVAL;
	process->acquired[gpu->index] = true;
	process->drm_files[gpu->index] = file;
	return 0;
}

void sim_files_free(struct sim_process *process)
{
	const struct sim_world *world = &process->sim->world;

	for (size_t i = 0; i < process->sim->n_gpus && world->file_keep; i++)
		if (process->acquired[i])
			world->put_away(world->userdata, process->drm_files[i]);
}

static uint64_t vram_left(const struct sim_gpu *gpu)
{
	uint64_t all = gpu->info.vram_bytes;

	return all > gpu->vram_used ? all - gpu->vram_used : 0;
}

int ioctl_available_memory(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_available_memory_args *args = argument;
	const struct sim_gpu *gpu = sim_find_gpu(call->sim, args->gpu_id);

	if (!gpu)
		return -EINVAL;
	args->available = vram_left(gpu);
	return 0;
}

/* amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(): the first of these that is set. */
static uint32_t kind_of(uint32_t flags)
{
	static const uint32_t kinds[] = {
		KFD_IOC_ALLOC_MEM_FLAGS_VRAM,       KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,    KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
		KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (flags & kinds[i])
			return kinds[i];
	return 0;
}

/* Finds what stands for it. -EINVAL, -ENOMEM. */
static int take_place(const struct sim_call *call, struct sim_gpu *gpu, struct sim_buffer *buffer,
		      uint64_t offset)
{
	switch (kind_of(buffer->flags)) {
	case KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
		if (buffer->size > vram_left(gpu))
			return -ENOMEM;
		return sim_arena_take(call->sim, buffer->size, &buffer->place);
	case KFD_IOC_ALLOC_MEM_FLAGS_GTT:
		return sim_arena_take(call->sim, buffer->size, &buffer->place);
	case KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
		buffer->user = offset;
		return offset == 0 ? -EINVAL : 0;
	case KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL:
		return buffer->size != SIM_SLICE ? -EINVAL
						 : sim_slice(call->process, gpu, &buffer->place);
	case KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP:
		return buffer->size != PAGE ? -EINVAL : sim_mmio(call->sim, gpu, &buffer->place);
	default: return -EINVAL;
	}
}

static uint64_t next_handle(struct sim_process *process, uint32_t gpu_id)
{
	return (uint64_t)gpu_id << 32 | ++process->handles;
}

int ioctl_alloc_memory(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *args = argument;
	struct sim_process *process = call->process;
	struct sim_buffer *buffer;
	struct sim_gpu *gpu;
	int r;

	if (args->size == 0)
		return -EINVAL;
	if (process->context != SIM_CONTEXT_PRIMARY &&
	    args->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return -EOPNOTSUPP;
	r = sim_bound_gpu(call, args->gpu_id, &gpu);
	if (r < 0)
		return r == -ESRCH ? -ENODEV : r;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	buffer->address = args->va_addr;
	buffer->size = args->size;
	buffer->flags = kind_of(args->flags);
	buffer->gpu_id = args->gpu_id;
	r = take_place(call, gpu, buffer, args->mmap_offset);
	if (r < 0) {
		free(buffer);
		return r;
	}
	account(call->sim, buffer, buffer->size);
	buffer->handle = next_handle(process, args->gpu_id);
	buffer->next = process->buffers;
	process->buffers = buffer;
	args->handle = buffer->handle;
	args->mmap_offset = buffer->place ?: buffer->user;
	return 0;
}

int ioctl_free_memory(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_free_memory_of_gpu_args *args = argument;
	struct sim_buffer **at = &call->process->buffers, *buffer;

	if (args->handle != 0 && args->handle == call->process->event_handle)
		return -EPERM; /* the signals' page */
	while (*at && (*at)->handle != args->handle)
		at = &(*at)->next;
	buffer = *at;
	if (!buffer)
		return -EINVAL;
	if (buffer->mapped)
		return -EBUSY;
	*at = buffer->next;
	buffer_free(call->process, buffer);
	return 0;
}
