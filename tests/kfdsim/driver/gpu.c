/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "kfdsim/driver/parts.h"

static int make_timing(struct sim_gpu *gpu)
{
	const struct geometry *geometry = &gpu->info.geometry;
	struct timing_gpu shape = {
		.xccs = geometry->xccs,
		.engines = geometry->engines,
		.queue_slots = gpu->info.queue_slots,
		.process_slots = gpu->info.process_slots,
		.mes = gpu->info.scheduler == SCHEDULER_MES,
	};

	_Static_assert(sizeof(shape.active) == sizeof(geometry->active), "the same shape");
	memcpy(shape.active, geometry->active, sizeof(shape.active));
	return timing_new(&shape, &gpu->timing);
}

int sim_gpu_init(struct sim *sim, size_t index, const struct gpu_info *info, unsigned minor)
{
	struct sim_gpu *gpu = &sim->gpus[index];

	*gpu = (struct sim_gpu){
		.sim = sim,
		.info = *info,
		.index = (unsigned)index,
		.minor = minor,
	};
	sim->n_gpus = index + 1;
	return sim->timing ? make_timing(gpu) : 0;
}

bool sim_gpu_has_run_list(const struct sim_gpu *gpu)
{
	return gpu->info.scheduler != SCHEDULER_MES;
}

unsigned sim_count_queues(const struct sim_process *process, const struct sim_gpu *gpu)
{
	unsigned n = 0;

	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		n += queue->gpu == gpu;
	return n;
}

struct sim_queue *sim_find_gws(struct sim_process *process, const struct sim_gpu *gpu)
{
	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->gpu == gpu && queue->gws)
			return queue;
	return NULL;
}

/* ---- counting ---- */

static void count_process(struct sim_gpu *gpu, const struct sim_process *process)
{
	bool any = false;

	for (struct sim_queue *queue = process->queues; queue; queue = queue->next) {
		if (queue->gpu != gpu)
			continue;
		any = true;
		if (!queue->active)
			continue;
		gpu->compute_queues += queue->type == SIM_COMPUTE;
		gpu->sdma_queues += queue->type != SIM_COMPUTE;
		gpu->gws_queues += queue->gws;
	}
	gpu->processes += any;
}

void sim_gpu_count(struct sim_gpu *gpu)
{
	gpu->compute_queues = gpu->sdma_queues = gpu->gws_queues = gpu->processes = 0;
	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		count_process(gpu, process);
	if (gpu->peak_queues < gpu->compute_queues)
		gpu->peak_queues = gpu->compute_queues;
	if (gpu->peak_processes < gpu->processes)
		gpu->peak_processes = gpu->processes;
}

/* pm_calc_rlib_size(); a run list without an active queue is not sent. */
static void judge(struct sim_gpu *gpu)
{
	bool any = gpu->compute_queues + gpu->sdma_queues > 0, before = gpu->oversubscribed;

	gpu->too_many_queues = any && gpu->compute_queues > gpu->info.queue_slots;
	gpu->too_many_processes = any && gpu->processes > gpu->info.process_slots;
	gpu->too_many_gws = any && gpu->gws_queues > 1;
	gpu->oversubscribed = gpu->too_many_queues || gpu->too_many_processes || gpu->too_many_gws;
	gpu->oversubscriptions += gpu->oversubscribed && !before;
}

/* ---- slots, as firmware might fill them ---- */

void sim_gpu_leave(struct sim_queue *queue)
{
	if (queue->hqd >= 0)
		queue->gpu->hqds[queue->hqd] = NULL;
	queue->hqd = -1;
}

/* Kernel rings have the first queues of each pipe (amdgpu_gfx_compute_queue_acquire()). */
static int free_slot(const struct sim_gpu *gpu)
{
	unsigned all = gpu->info.pipes * gpu->info.queues_per_pipe;
	unsigned first = all > gpu->info.queue_slots ? all - gpu->info.queue_slots : 0;

	for (unsigned i = first; i < first + gpu->info.queue_slots && i < SIM_HQDS_MAX; i++)
		if (!gpu->hqds[i])
			return (int)i;
	return -1;
}

static bool has_slot(const struct sim_gpu *gpu, const struct sim_process *process)
{
	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->gpu == gpu && queue->hqd >= 0)
			return true;
	return false;
}

static struct sim_queue *first_waiting(const struct sim_gpu *gpu, const struct sim_process *process)
{
	struct sim_queue *first = NULL;

	for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->gpu == gpu && queue->active && queue->type == SIM_COMPUTE &&
		    queue->hqd < 0 && (!first || queue->serial < first->serial))
			first = queue;
	return first;
}

/* The oldest one that waits for a slot, of a process that has a VMID or can have one. */
static struct sim_queue *next_waiting(const struct sim_gpu *gpu)
{
	struct sim_queue *first = NULL, *queue;
	unsigned mapped = 0;

	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		mapped += has_slot(gpu, process);
	for (struct sim_process *process = gpu->sim->processes; process; process = process->next) {
		if (mapped >= gpu->info.process_slots && !has_slot(gpu, process))
			continue;
		queue = first_waiting(gpu, process);
		if (queue && (!first || queue->serial < first->serial))
			first = queue;
	}
	return first;
}

static void fill_slots(struct sim_gpu *gpu)
{
	int slot;

	while ((slot = free_slot(gpu)) >= 0) {
		struct sim_queue *queue = next_waiting(gpu);

		if (!queue)
			break;
		queue->hqd = slot;
		gpu->hqds[slot] = queue;
	}
}

void sim_gpu_submit(struct sim_gpu *gpu, uint64_t now_ns)
{
	sim_gpu_count(gpu);
	judge(gpu);
	fill_slots(gpu);
	gpu->run_lists++;
	if (gpu->timing && sim_gpu_has_run_list(gpu))
		timing_preempt(gpu->timing, now_ns);
}

/* ---- and later ---- */

static void reset_queues(struct sim_gpu *gpu, uint64_t now_ns)
{
	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		for (struct sim_queue *queue = process->queues; queue; queue = queue->next) {
			if (queue->gpu != gpu)
				continue;
			if (gpu->timing && queue->active)
				timing_queue_drop(gpu->timing, queue->serial, now_ns);
			queue->active = false;
			queue->dispatched = false;
			queue->meets_ns = 0;
			queue->reset = true;
			sim_gpu_leave(queue);
		}
}

void sim_gpu_reset(struct sim_gpu *gpu, uint64_t now_ns)
{
	reset_queues(gpu, now_ns);
	sim_gpu_submit(gpu, now_ns);
}

void sim_gpu_gone(struct sim *sim, struct sim_gpu *gpu, uint64_t now_ns)
{
	reset_queues(gpu, now_ns);
	gpu->gone = true;
	sim_gpu_submit(gpu, now_ns);
	sim->topology_generation++;
}

static struct sim_queue *find_serial(const struct sim_gpu *gpu, uint64_t serial)
{
	for (struct sim_process *process = gpu->sim->processes; process; process = process->next)
		for (struct sim_queue *queue = process->queues; queue; queue = queue->next)
			if (queue->gpu == gpu && queue->serial == serial)
				return queue;
	return NULL;
}

bool sim_gpu_work(struct sim_gpu *gpu, uint64_t now_ns, uint64_t *next_ns)
{
	uint64_t key, end, next;
	bool any = false;

	if (!gpu->timing)
		return false;
	while (timing_ended(gpu->timing, now_ns, &key, &end)) {
		struct sim_queue *queue = find_serial(gpu, key);

		if (end < now_ns && gpu->late_ns < now_ns - end)
			gpu->late_ns = now_ns - end;
		if (queue)
			sim_queue_ended(queue, end);
		any = true;
	}
	next = timing_next(gpu->timing);
	if (next < *next_ns)
		*next_ns = next;
	return any;
}
