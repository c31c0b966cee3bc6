/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/driver/ioctl.h"
#include "kfdsim/driver/parts.h"

#define PERCENTAGE_MAX 100U
#define DEVICE_QUEUES_MAX 4096U    /* amdgpu.max_num_of_queues_per_device */
#define USER_END 0x7ffffffff000ULL /* TASK_SIZE_MAX: what access_ok() asks */
#define SDMA_DOORBELLS 0x100U      /* vega20_doorbell_index_init(), vega20_reg_init.c */
#define DOORBELLS_OF_ENGINE 10U
#define SECOND_DOORBELLS 512U /* KFD_QUEUE_DOORBELL_MIRROR_OFFSET: those of odd queues */
#define QUEUE_TYPE_SDMA_BY_ENGINE 4U
#define SDMA_ENGINE_OFFSET 88
#define ENOTSUPP_KERNEL 524 /* include/linux/errno.h; user space has no name */

bool sim_queue_wanted(const struct sim_queue *queue)
{
	return queue->ring_base != 0 && queue->percentage > 0 && !queue->process->evicted &&
	       !queue->reset;
}

/* sdma_engine_id, since Linux 6.12: behind what the headers of Debian 12 have. */
static uint32_t engine_of(const struct kfd_ioctl_create_queue_args *args)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)args + SDMA_ENGINE_OFFSET, sizeof(value));
	return value;
}

/* ---- what the driver checks before it looks for anything ---- */

static bool user_address(uint64_t address, size_t size)
{
	return address <= USER_END - size;
}

/* From 6.5 on, bits 8 to 15 are the XCC of a PM4 queue. */
static uint32_t percentage_of(const struct sim *sim, uint32_t percentage)
{
	return sim->kfd_minor < KFD_LINUX_6_12 ? percentage : percentage & 0xff;
}

static int check_ring(uint64_t base, uint32_t size, uint32_t percentage, uint32_t priority)
{
	if (percentage > PERCENTAGE_MAX || priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (!user_address(base, sizeof(uint64_t)))
		return -EFAULT;
	if ((size & (size - 1)) != 0)
		return -EINVAL;
	return 0;
}

static uint32_t ring_size(uint32_t size)
{
	return size < KFD_MIN_QUEUE_RING_SIZE ? KFD_MIN_QUEUE_RING_SIZE : size;
}

static int check_create(const struct sim *sim, const struct kfd_ioctl_create_queue_args *args)
{
	int r = check_ring(args->ring_base_address, args->ring_size,
			   percentage_of(sim, args->queue_percentage), args->queue_priority);
	uint32_t last = sim->kfd_minor < KFD_LINUX_6_12 ? KFD_IOC_QUEUE_TYPE_SDMA_XGMI
							: QUEUE_TYPE_SDMA_BY_ENGINE;

	if (r < 0)
		return r;
	if (!user_address(args->read_pointer_address, sizeof(uint32_t)) ||
	    !user_address(args->write_pointer_address, sizeof(uint32_t)) ||
	    !user_address(args->eop_buffer_address, sizeof(uint32_t)) ||
	    !user_address(args->ctx_save_restore_address, sizeof(uint32_t)))
		return -EFAULT;
	return args->queue_type > last ? -ENOTSUPP_KERNEL : 0;
}

/* ---- room for one more ---- */

/* Made so far on a GPU, active or not, by all processes. */
static unsigned count_made(const struct sim_gpu *gpu)
{
	unsigned n = 0;

	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		n += sim_count_queues(process, gpu);
	return n;
}

/* pqm_create_queue(): 127 by the scheduler's firmware, but not on gfx9.4.3 and its like. */
static unsigned process_queues_max(const struct sim_gpu *gpu)
{
	switch (gpu->info.gfx_target) {
	case 90402: /* gfx942 is what runtimes call GC 9.4.3 and 9.4.4 */
	case 90403:
	case 90404:
	case 90500: return 255;
	default: return 127;
	}
}

static int check_room(const struct sim_process *process, const struct sim_gpu *gpu)
{
	if (sim_count_queues(process, gpu) >= process_queues_max(gpu))
		return -ENOSPC;
	if (process->n_queues >= SIM_QUEUES_MAX)
		return -ENOMEM;
	return count_made(gpu) >= DEVICE_QUEUES_MAX ? -EPERM : 0;
}

/* One by its engine is of the pool that the engine is of: those for XGMI come last. */
static enum sim_queue_type type_of(const struct sim_gpu *gpu,
				   const struct kfd_ioctl_create_queue_args *args)
{
	switch (args->queue_type) {
	case QUEUE_TYPE_SDMA_BY_ENGINE:
		return engine_of(args) < gpu->node.sdma_engines ? SIM_SDMA : SIM_SDMA_XGMI;
	case KFD_IOC_QUEUE_TYPE_SDMA: return SIM_SDMA;
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI: return SIM_SDMA_XGMI;
	default: return SIM_COMPUTE;
	}
}

static bool sdma_used(const struct sim_gpu *gpu, enum sim_queue_type type, unsigned id)
{
	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
			if (queue->gpu == gpu && queue->type == type && queue->sdma == id)
				return true;
	return false;
}

/* allocate_sdma_queue(), kfd_device_queue_manager.c: two pools, in which queues go over the engines in
 * turn. By its engine, a queue has to be one of that engine's. */
static int find_sdma(const struct sim_gpu *gpu, const struct kfd_ioctl_create_queue_args *args,
		     unsigned *ret)
{
	enum sim_queue_type type = type_of(gpu, args);
	bool xgmi = type == SIM_SDMA_XGMI,
	     by_engine = args->queue_type == QUEUE_TYPE_SDMA_BY_ENGINE;
	unsigned n = xgmi ? gpu->info.sdma_xgmi_queues : gpu->info.sdma_queues, first = 0, step = 1;

	if (by_engine) {
		first = engine_of(args) - (xgmi ? gpu->node.sdma_engines : 0);
		step = xgmi ? gpu->node.sdma_xgmi_engines : gpu->node.sdma_engines;
	}
	*ret = 0;
	if (type == SIM_COMPUTE)
		return 0;
	for (unsigned i = first; i < n; i += step)
		if (!sdma_used(gpu, type, i)) {
			*ret = i;
			return 0;
		}
	return -ENOMEM;
}

/* ---- making and unmaking ---- */

static unsigned lowest_id(const struct sim_process *process)
{
	bool used[SIM_QUEUES_MAX] = { false };
	unsigned id = 0;

	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		used[queue->id] = true;
	while (used[id])
		id++;
	return id;
}

/* Those of SDMA are fixed: each engine looks at its own. allocate_doorbell(),
 * kfd_device_queue_manager.c. */
static unsigned sdma_doorbell(const struct sim_queue *queue)
{
	const struct sim_node *node = &queue->gpu->node;
	bool xgmi = queue->type == SIM_SDMA_XGMI;
	unsigned pcie = node->sdma_engines ?: 1; /* not in every world */
	unsigned engines = xgmi ? node->sdma_xgmi_engines ?: 1 : pcie;
	unsigned engine = queue->sdma % engines + (xgmi ? pcie : 0);
	unsigned number = queue->sdma / engines;

	return SDMA_DOORBELLS + engine * DOORBELLS_OF_ENGINE + number % 2 * SECOND_DOORBELLS +
	       number / 2;
}

/* There are more than a process may have queues. */
static unsigned lowest_doorbell(const struct sim_queue *queue)
{
	bool used[SIM_DOORBELLS] = { false };
	unsigned doorbell = 0;

	for (struct sim_queue *other = queue->process->queues; other; other = other->next)
		if (other->gpu == queue->gpu)
			used[other->doorbell] = true;
	while (used[doorbell])
		doorbell++;
	return doorbell;
}

static struct sim_queue *queue_new(const struct sim_call *call, struct sim_gpu *gpu,
				   const struct kfd_ioctl_create_queue_args *args, unsigned sdma)
{
	struct sim_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->process = call->process;
	queue->gpu = gpu;
	queue->type = type_of(gpu, args);
	queue->sdma = sdma;
	queue->aql = args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	queue->id = lowest_id(call->process);
	queue->serial = ++call->sim->queue_serial;
	queue->ring_base = args->ring_base_address;
	queue->ring_size = args->ring_size;
	queue->read_pointer = args->read_pointer_address;
	queue->write_pointer = args->write_pointer_address;
	queue->percentage = percentage_of(call->sim, args->queue_percentage);
	queue->priority = args->queue_priority;
	queue->hqd = -1;
	queue->doorbell = queue->type == SIM_COMPUTE ? lowest_doorbell(queue)
						     : sdma_doorbell(queue);
	queue->active_ns = call->now_ns;
	sim_mask_map(queue);
	return queue;
}

static void link_queue(struct sim_queue *queue)
{
	struct sim_process *process = queue->process;
	unsigned compute = 0;

	queue->next = process->queues;
	process->queues = queue;
	process->n_queues++;
	process->made++;
	for (struct sim_queue *other = process->queues; other; other = other->next)
		compute += other->type == SIM_COMPUTE;
	if (process->peak < compute)
		process->peak = compute;
}

static void unlink_queue(struct sim_queue *queue)
{
	struct sim_queue **at = &queue->process->queues;

	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
	queue->process->n_queues--;
}

/* Before its GPU is told. */
static void take_out(struct sim_queue *queue, uint64_t now_ns)
{
	struct sim_gpu *gpu = queue->gpu;

	if (queue->dispatched)
		queue->ran_ns += now_ns > queue->began ? now_ns - queue->began : 0;
	if (gpu->timing && queue->active)
		timing_queue_drop(gpu->timing, queue->serial, now_ns);
	queue->active = false;
	queue->dispatched = false;
	queue->meets_ns = 0;
	sim_gpu_leave(queue);
}

int sim_queue_changed(struct sim_queue *queue, bool active, uint64_t now_ns)
{
	struct sim_gpu *gpu = queue->gpu;
	bool was = queue->active;
	int r;

	if (active && gpu->timing && queue->type == SIM_COMPUTE) {
		r = timing_queue_set(gpu->timing, queue->serial, queue->process->serial,
				     queue->engines, queue->priority, now_ns);
		if (r < 0)
			return r;
	}
	if (!active)
		take_out(queue, now_ns);
	queue->active = active;
	if (was || active || sim_gpu_has_run_list(gpu))
		sim_gpu_submit(gpu, now_ns);
	return 0;
}

static int start(struct sim_queue *queue, uint64_t now_ns)
{
	if (sim_queue_wanted(queue))
		return sim_queue_changed(queue, true, now_ns);
	sim_gpu_count(queue->gpu);
	return 0;
}

static uint64_t doorbell_offset(const struct sim_queue *queue)
{
	return queue->process->slices[queue->gpu->index] + 8ULL * queue->doorbell;
}

/* What the driver asks before it makes a queue, in its order. */
static int admit(const struct sim_call *call, struct kfd_ioctl_create_queue_args *args,
		 struct sim_gpu **ret, unsigned *ret_sdma)
{
	const struct sim_gpu *gpu;
	uint64_t slice;
	int r;

	r = check_create(call->sim, args);
	if (r < 0)
		return r;
	args->ring_size = ring_size(args->ring_size);
	r = sim_bound_gpu(call, args->gpu_id, ret);
	if (r < 0)
		return r;
	gpu = *ret;
	if (args->queue_type == QUEUE_TYPE_SDMA_BY_ENGINE &&
	    engine_of(args) >= gpu->node.sdma_engines + gpu->node.sdma_xgmi_engines)
		return -EINVAL;
	r = sim_slice(call->process, gpu, &slice);
	r = r < 0 ? r : sim_queue_check_buffers(call->process, gpu, args);
	r = r < 0 ? r : check_room(call->process, gpu);
	return r < 0 ? r : find_sdma(gpu, args, ret_sdma);
}

int ioctl_create_queue(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_create_queue_args *args = argument;
	struct sim_queue *queue;
	struct sim_gpu *gpu;
	unsigned sdma;
	int r;

	r = admit(call, args, &gpu, &sdma);
	if (r < 0)
		return r;
	queue = queue_new(call, gpu, args, sdma);
	if (!queue)
		return -ENOMEM;
	link_queue(queue);
	r = start(queue, call->now_ns);
	if (r < 0) {
		unlink_queue(queue);
		free(queue);
		return r;
	}
	sim_doorbell_init(queue);
	sim_record_queue(queue);
	args->queue_id = queue->id;
	args->doorbell_offset = doorbell_offset(queue);
	return 0;
}

int ioctl_destroy_queue(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_destroy_queue_args *args = argument;
	struct sim_queue *queue = sim_find_queue(call->process, args->queue_id);
	struct sim_gpu *gpu;
	bool was;

	if (!queue)
		return -EINVAL;
	gpu = queue->gpu;
	was = queue->active;
	sim_record_queue_gone(queue);
	take_out(queue, call->now_ns);
	unlink_queue(queue);
	free(queue);
	if (was)
		sim_gpu_submit(gpu, call->now_ns);
	else
		sim_gpu_count(gpu);
	return 0;
}

int ioctl_update_queue(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_update_queue_args *args = argument;
	uint32_t percentage = percentage_of(call->sim, args->queue_percentage);
	struct sim_queue *queue;
	int r;

	r = check_ring(args->ring_base_address, args->ring_size, percentage, args->queue_priority);
	if (r < 0)
		return r;
	queue = sim_find_queue(call->process, args->queue_id);
	if (!queue)
		return -EFAULT;
	if (queue->reset)
		return -EACCES;
	queue->ring_base = args->ring_base_address;
	queue->ring_size = ring_size(args->ring_size);
	queue->percentage = percentage;
	queue->priority = args->queue_priority;
	r = sim_queue_changed(queue, sim_queue_wanted(queue), call->now_ns);
	sim_record_change(queue);
	return r;
}

int sim_queues_evict(struct sim_process *process, bool evicted, uint64_t now_ns)
{
	int r = 0;

	process->evicted = evicted;
	for (struct sim_queue *queue = process->queues; queue && r == 0; queue = queue->next)
		if (queue->active != sim_queue_wanted(queue))
			r = sim_queue_changed(queue, !queue->active, now_ns);
	return r;
}

void sim_queues_free(struct sim_process *process, uint64_t now_ns)
{
	struct sim *sim = process->sim;
	bool here[SIM_GPUS_MAX] = { false }, active[SIM_GPUS_MAX] = { false };

	while (process->queues) {
		struct sim_queue *queue = process->queues;

		here[queue->gpu->index] = true;
		active[queue->gpu->index] |= queue->active;
		sim_record_queue_gone(queue);
		take_out(queue, now_ns);
		unlink_queue(queue);
		free(queue);
	}
	for (size_t i = 0; i < sim->n_gpus; i++) {
		if (active[i])
			sim_gpu_submit(&sim->gpus[i], now_ns);
		else if (here[i])
			sim_gpu_count(&sim->gpus[i]);
	}
}
