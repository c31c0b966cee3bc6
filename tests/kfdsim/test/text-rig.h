/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A driver's state made by hand, for what maps, prints and records it. */

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util/base.h"
#include "core/mask/geometry.h"
#include "kfdsim/text/text.h"

static inline struct gpu_info rig_gpu(const char *name, unsigned target, unsigned xccs,
				      unsigned engines, unsigned arrays, unsigned array_cus,
				      unsigned cus)
{
	struct gpu_info info = {
		.gfx_target = target,
		.queue_slots = target < 100300 ? 24 : 8,
		.process_slots = 8,
		.pipes = 4,
		.queues_per_pipe = target < 100300 ? 8 : 4,
		.sdma_queues = 16,
		.vram_bytes = UINT64_C(16) << 30,
		.scheduler = target < 110000 ? SCHEDULER_HWS : SCHEDULER_MES,
		.geometry = { .xccs = xccs,
			      .engines = engines,
			      .arrays = arrays,
			      .array_cus = array_cus,
			      .wgp = target >= 100000 },
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	CHECK(geometry_spread(&info.geometry, cus) == 0);
	return info;
}

/* With few files to write for each: two parts of 6 and 8 CUs. */
static inline struct gpu_info rig_small(void)
{
	return rig_gpu("0000:03:00.0", 90006, 1, 2, 1, 4, 6);
}

static inline struct gpu_info rig_small_wgps(void)
{
	return rig_gpu("0000:04:00.0", 100300, 1, 1, 2, 4, 8);
}

static inline struct gpu_info rig_small_xccs(void)
{
	return rig_gpu("0000:05:00.0", 90402, 2, 2, 1, 3, 8);
}

/* GPU ids and minors go up from 0x1000 and 128, as fake-sysfs has them. */
static inline struct sim *rig_sim(const struct gpu_info *gpus, size_t n)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	CHECK(sim);
	for (size_t i = 0; i < n; i++) {
		sim->gpus[i].info = gpus[i];
		sim->gpus[i].info.kfd_gpu_id = 0x1000U + 0x101U * (uint32_t)i;
		sim->gpus[i].index = (unsigned)i;
		sim->gpus[i].minor = 128 + (unsigned)i;
	}
	sim->n_gpus = n;
	sim->topology_generation = 1;
	return sim;
}

static inline struct sim_process *rig_process(struct sim *sim, pid_t pid)
{
	struct sim_process *process = calloc(1, sizeof(*process));

	CHECK(process);
	process->sim = sim;
	process->pid = pid;
	process->context = SIM_CONTEXT_PRIMARY;
	process->serial = ++sim->serial;
	process->next = sim->processes;
	sim->processes = process;
	return process;
}

/* A compute queue in no slot, without a mask; newest first, as the driver lists them. */
static inline struct sim_queue *rig_queue(struct sim_process *process, unsigned gpu)
{
	struct sim_queue *queue = calloc(1, sizeof(*queue));

	CHECK(queue);
	queue->process = process;
	queue->gpu = &process->sim->gpus[gpu];
	queue->id = process->made++;
	queue->serial = ++process->sim->serial;
	queue->doorbell = queue->id;
	queue->ring_base = 0x7ff000000000ULL + 0x100000ULL * queue->id;
	queue->ring_size = 65536;
	queue->percentage = 100;
	queue->priority = 7;
	queue->aql = queue->active = true;
	queue->hqd = -1;
	memset(queue->engines, 0xff, sizeof(queue->engines));
	queue->next = process->queues;
	process->queues = queue;
	process->n_queues++;
	return queue;
}

static inline void rig_queue_gone(struct sim_queue *queue)
{
	struct sim_queue **at = &queue->process->queues;

	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
	free(queue);
}

static inline void rig_process_gone(struct sim_process *process)
{
	struct sim_process **at = &process->sim->processes;

	while (process->queues)
		rig_queue_gone(process->queues);
	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	free(process);
}

static inline void rig_done(struct sim *sim)
{
	while (sim->processes)
		rig_process_gone(sim->processes);
	free(sim);
}
