/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * /sys/kernel/debug/kfd/rls: the run list as packets, what pm_create_runlist_ib() in
 * kfd_packet_manager.c builds. Fields are those of kfd_pm4_headers_ai.h.
 */

#define MAP_PROCESS 0xa1U
#define MAP_QUEUES 0xa2U
#define RUN_LIST 0xa5U

#define MAP_PROCESS_WORDS 16U
#define MAP_QUEUES_WORDS 7U
#define RUN_LIST_WORDS 4U
#define LIST_WORDS 4096U /* 16 KiB: the buffer ends there */

#define QUANTUM 10U
#define CHAIN (1U << 20) /* back to its start: it is oversubscribed */
#define VALID (1U << 23)
#define BY_FIRMWARE (1U << 4) /* map_to_hws_determined_queue_slots */
#define ENGINE_SDMA 2U

struct list {
	uint32_t words[LIST_WORDS];
	size_t n;
};

static uint32_t *packet(struct list *list, uint32_t opcode, unsigned words)
{
	uint32_t *at = list->words + list->n;

	if (list->n + words > LIST_WORDS)
		return NULL;
	list->n += words;
	at[0] = 3U << 30 | (words - 2) << 16 | opcode << 8;
	return at;
}

static unsigned queues_here(const struct sim_process *process, const struct sim_gpu *gpu,
			    bool active)
{
	unsigned n = 0;

	for (const struct sim_queue *queue = process->queues; queue; queue = queue->next)
		n += queue->gpu == gpu && (queue->active || !active);
	return n;
}

static void map_queue(struct list *list, const struct sim_queue *queue)
{
	uint32_t *words = packet(list, MAP_QUEUES, MAP_QUEUES_WORDS);
	uint32_t engine = queue->type == SIM_COMPUTE ? 0 : ENGINE_SDMA;

	if (!words)
		return;
	words[1] = 1U << 29 | engine << 26 | BY_FIRMWARE;
	words[2] = mqd_doorbell(queue) << 2;
	words[3] = (uint32_t)mqd_address(queue);
	words[4] = (uint32_t)(mqd_address(queue) >> 32);
	words[5] = (uint32_t)queue->write_pointer;
	words[6] = (uint32_t)(queue->write_pointer >> 32);
}

static void map_process(struct list *list, const struct sim_process *process,
			const struct sim_gpu *gpu)
{
	uint32_t *words = packet(list, MAP_PROCESS, MAP_PROCESS_WORDS);

	if (!words)
		return;
	words[1] = mqd_pasid(process) | QUANTUM << 25;
	words[13] = 1U << 7 | queues_here(process, gpu, true) << 22;
	for (const struct sim_queue *queue = process->queues; queue; queue = queue->next)
		if (queue->gpu == gpu && queue->active)
			map_queue(list, queue);
}

static void chain(struct list *list, const struct sim_gpu *gpu)
{
	uint32_t size = (uint32_t)(list->n + RUN_LIST_WORDS);
	uint32_t *words = packet(list, RUN_LIST, RUN_LIST_WORDS);

	if (words)
		words[3] = size | CHAIN | VALID | min_u(gpu->processes, 15) << 24;
}

void debugfs_rls(const struct sim *sim, const struct topology *topology, FILE *out)
{
	for (size_t i = 0; i < sim->n_gpus; i++) {
		const struct sim_gpu *gpu = &sim->gpus[i];
		struct list list = { 0 };

		if (gpu->gone)
			continue;
		fprintf(out, "Node %u, gpu_id %x:\n", topology_node(topology, gpu->info.kfd_gpu_id),
			gpu->info.kfd_gpu_id);
		if (gpu->info.scheduler == SCHEDULER_MES) {
			fprintf(out, "  No active runlist\n");
			continue;
		}
		for (const struct sim_process *p = sim->processes; p; p = p->next)
			if (queues_here(p, gpu, false) > 0)
				map_process(&list, p, gpu);
		if (gpu->oversubscribed)
			chain(&list, gpu);
		if (list.n == 0)
			fprintf(out, "  No active runlist\n");
		debugfs_dump(out, "  ", list.words, list.n);
	}
}
