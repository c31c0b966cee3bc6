/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "kfdsim/driver/ioctl.h"

/*
 * What CREATE_QUEUE asks of a queue's memory since Linux 6.12: each piece is a buffer of its own,
 * mapped to the GPU, and as large as the driver wants it. kfd_queue_acquire_buffers() and
 * kfd_queue_ctx_save_restore_size(), kfd_queue.c.
 */

#define PAGE 4096ULL
#define HEADER 40U /* struct kfd_context_save_area_header */

static uint64_t align(uint64_t size, uint64_t to)
{
	return (size + to - 1) / to * to;
}

static unsigned vgpr_size(unsigned target)
{
	if (target / 100 == 904 || target == 90010 || target == 90008)
		return 0x80000;
	if (target == 110000 || target == 110001 || target == 110501 || target == 120000 ||
	    target == 120001)
		return 0x60000;
	return 0x40000;
}

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

struct sim_save_area sim_save_area(const struct gpu_info *info)
{
	const struct geometry *geometry = &info->geometry;
	unsigned target = info->gfx_target, cus = geometry_cus(geometry) / geometry->xccs;
	unsigned engines = geometry->engines * geometry->xccs, waves = cus * 32;
	struct sim_save_area area = { 0 };
	uint64_t control, data;

	if (target < 80001)
		return area;
	if (target < 100100)
		waves = min(cus * 40, engines * 512);
	/* Vector registers, scalar registers, LDS and state of each CU. */
	data = align((uint64_t)cus * (vgpr_size(target) + 0x4000U + 0x10000U + 0x1000U), PAGE);
	control = align(HEADER + waves * (target >= 100100 ? 12U : 8U) + 8U, PAGE);
	if (target / 10000 == 10 && control > 0x7000)
		control = 0x7000;
	area.control = (uint32_t)control;
	area.all = (uint32_t)(control + data);
	area.debugger = (uint32_t)align(waves * 32U, 64);
	return area;
}

/* A buffer begins there, on the page, and is as large: 0 is any size. */
static int check_buffer(const struct sim_process *process, const struct sim_gpu *gpu,
			uint64_t address, uint64_t size)
{
	for (const struct sim_buffer *buffer = process->buffers; buffer; buffer = buffer->next)
		if (buffer->mapped >> gpu->index & 1 && buffer->address == address / PAGE * PAGE &&
		    (size == 0 || align(buffer->size, PAGE) == size / PAGE * PAGE))
			return 0;
	return -EINVAL;
}

static int check_compute(const struct sim_process *process, const struct sim_gpu *gpu,
			 const struct kfd_ioctl_create_queue_args *args)
{
	struct sim_save_area area = sim_save_area(&gpu->info);
	uint64_t save;
	int r = 0;

	if (args->eop_buffer_address) {
		if (gpu->info.gfx_target >= 80000 && args->eop_buffer_size < PAGE)
			return -EINVAL;
		r = check_buffer(process, gpu, args->eop_buffer_address,
				 align(args->eop_buffer_size, PAGE));
	}
	if (r < 0 || args->ctl_stack_size != area.control || args->ctx_save_restore_size < area.all)
		return -EINVAL;
	save = ((uint64_t)args->ctx_save_restore_size + area.debugger) * gpu->info.geometry.xccs;
	return check_buffer(process, gpu, args->ctx_save_restore_address, align(save, PAGE));
}

int sim_queue_check_buffers(const struct sim_process *process, const struct sim_gpu *gpu,
			    const struct kfd_ioctl_create_queue_args *args)
{
	bool aql = args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	bool twice = aql && gpu->info.gfx_target < 90000; /* shown to the GPU two times */
	int r;

	if (gpu->sim->kfd_minor < KFD_LINUX_6_12)
		return 0;
	r = check_buffer(process, gpu, args->write_pointer_address, PAGE);
	r = r < 0 ? r : check_buffer(process, gpu, args->read_pointer_address, PAGE);
	r = r < 0 ? r
		  : check_buffer(process, gpu, args->ring_base_address,
				 args->ring_size / (twice ? 2 : 1));
	if (r < 0 || (!aql && args->queue_type != KFD_IOC_QUEUE_TYPE_COMPUTE))
		return r;
	return check_compute(process, gpu, args);
}
