/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * Memory queue descriptors: words of struct v9_mqd, v10_mqd, v11_mqd in drivers/gpu/drm/amd/
 * include, as init_mqd() and update_mqd() of kfd_mqd_manager_v*.c fill them. The numbers are
 * those of 4-byte words; all generations have the common ones at the same places.
 */

enum word {
	HEADER = 0,
	SE0 = 23, /* se1 follows; compute_tmpring_size lies between se1 and se2 */
	SE2 = 26,
	SE4_V9 = 39,  /* gfx9 */
	SE4_V11 = 44, /* gfx11 and later */
	XCC_ID = 39,  /* gfx9.4.3: compute_current_logic_xcc_id; chunk size two words on */
	XCC_CHUNK = 41,
	MQD_BASE = 128,
	ACTIVE = 130,
	VMID,
	PERSISTENT,
	PIPE_PRIORITY,
	QUEUE_PRIORITY,
	QUANTUM,
	PQ_BASE, /* low and high */
	PQ_RPTR = 138,
	RPTR_ADDRESS,
	WPTR_ADDRESS = 141,
	DOORBELL = 143,
	PQ_CONTROL = 145,
	AQL_CONTROL = 181,
};

enum sdma_word {
	RB_CONTROL,
	RB_BASE,
	RB_RPTR = 3,
	SDMA_QUEUE_ID = 127,
};

/* Where struct vi_sdma_mqd to v12_sdma_mqd have these words. gfx8 has the offset of the doorbell in the word
 * that enables it. */
static const struct sdma_layout {
	unsigned before; /* the first target of the next layout */
	unsigned rptr_low, rptr_high, doorbell, doorbell_offset;
} sdma_layouts[] = {
	{ 90000, 9, 8, 18, 18 },
	{ 110000, 9, 8, 18, 22 },
	{ 120000, 8, 7, 17, 19 },
	{ UINT32_MAX, 7, 8, 15, 17 },
};

#define HEADER_VALUE 0xc0310800U
#define PRELOAD (0x53U << 8 | 1U) /* of CP_HQD_PERSISTENT_STATE */
#define QUANTUM_VALUE 0x111U      /* enabled, in milliseconds, one */
#define RPTR_BLOCK_SIZE (5U << 8)
#define SLICE_WORDS 2048U
#define SLICES 32768U /* as many as 26 bits of words have room for */

uint32_t mqd_pasid(const struct sim_process *process)
{
	return 0x8000U + (uint32_t)(process->serial % 0x8000U);
}

uint64_t mqd_address(const struct sim_queue *queue)
{
	return 0x8000000000ULL + queue->serial * 0x10000ULL;
}

uint32_t mqd_doorbell(const struct sim_queue *queue)
{
	return (uint32_t)(queue->process->serial % SLICES) * SLICE_WORDS + 2 * queue->doorbell;
}

void slots_of(const struct gpu_info *info, unsigned *ret_first, unsigned *ret_end)
{
	unsigned all = info->pipes * info->queues_per_pipe;

	*ret_first = all > info->queue_slots ? all - info->queue_slots : 0;
	*ret_end = min_u(*ret_first + info->queue_slots, SIM_HQDS_MAX);
}

static bool several_xccs(unsigned target)
{
	return target >= 90400 && target < 100000;
}

/* gfx8 and gfx10 have four words, whatever the part; the rest of the engines is not masked. */
static void put_engines(const struct sim_queue *queue, unsigned xcc, uint32_t words[MQD_WORDS])
{
	unsigned target = queue->gpu->info.gfx_target, fourth = 0;
	const uint32_t *engines = queue->engines[xcc];

	words[SE0] = engines[0];
	words[SE0 + 1] = engines[1];
	words[SE2] = engines[2];
	words[SE2 + 1] = engines[3];
	if (several_xccs(target)) {
		words[XCC_ID] = xcc;
		words[XCC_CHUNK] = 1;
	} else if (target >= 110000) {
		fourth = SE4_V11;
	} else if (target >= 90000 && target < 100000) {
		fourth = SE4_V9;
	}
	for (unsigned i = 4; fourth > 0 && i < SIM_ENGINES; i++)
		words[fourth + i - 4] = engines[i];
}

/* pipe_priority_map[] in kfd_mqd_manager.c: low, medium, high. */
static uint32_t pipe_priority(unsigned priority)
{
	return priority < 7 ? 0 : priority < 11 ? 1 : 2;
}

static void put64(uint32_t *words, uint64_t value)
{
	words[0] = (uint32_t)value;
	words[1] = (uint32_t)(value >> 32);
}

/* order_base_2() of a ring's size in words. */
static uint32_t ring_order(uint64_t bytes)
{
	uint32_t order = 0;

	while (order < 63 && UINT64_C(4) << order < bytes)
		order++;
	return order;
}

/* KFD's VMIDs are the upper ones of 16. Which a process has is the firmware's to say: here they
 * go by the order in which processes came. */
uint32_t mqd_vmid(const struct sim_queue *queue)
{
	unsigned slots = min_u(max_u(queue->gpu->info.process_slots, 1), 16), before = 0;

	for (const struct sim_process *p = queue->process->next; p; p = p->next)
		before++;
	return 16 - slots + before % slots;
}

void mqd_compute(const struct sim_queue *queue, unsigned xcc, uint32_t words[MQD_WORDS])
{
	bool loaded = queue->hqd >= 0;
	uint32_t order = ring_order(queue->ring_size);

	memset(words, 0, MQD_WORDS * sizeof(words[0]));
	words[HEADER] = HEADER_VALUE;
	put_engines(queue, xcc, words);
	put64(words + MQD_BASE, mqd_address(queue) + xcc * MQD_WORDS * sizeof(words[0]));
	words[ACTIVE] = loaded;
	words[VMID] = loaded ? mqd_vmid(queue) : 0;
	words[PERSISTENT] = PRELOAD;
	words[PIPE_PRIORITY] = pipe_priority(queue->priority);
	words[QUEUE_PRIORITY] = queue->priority;
	words[QUANTUM] = QUANTUM_VALUE;
	put64(words + PQ_BASE, queue->ring_base >> 8);
	words[PQ_RPTR] = (uint32_t)queue->read_index;
	put64(words + RPTR_ADDRESS, queue->read_pointer);
	put64(words + WPTR_ADDRESS, queue->write_pointer);
	words[DOORBELL] = mqd_doorbell(queue) << 2;
	words[PQ_CONTROL] = RPTR_BLOCK_SIZE | (order > 0 ? order - 1 : 0);
	words[AQL_CONTROL] = queue->aql;
}

void mqd_sdma(const struct sim_queue *queue, uint32_t words[MQD_SDMA_WORDS])
{
	const struct sdma_layout *layout = sdma_layouts;
	unsigned target = queue->gpu->info.gfx_target;

	while (target >= layout->before)
		layout++;
	memset(words, 0, MQD_SDMA_WORDS * sizeof(words[0]));
	words[RB_CONTROL] = ring_order(queue->ring_size) << 1;
	put64(words + RB_BASE, queue->ring_base >> 8);
	put64(words + RB_RPTR, queue->read_index);
	words[layout->rptr_low] = (uint32_t)queue->read_pointer;
	words[layout->rptr_high] = (uint32_t)(queue->read_pointer >> 32);
	words[layout->doorbell_offset] = mqd_doorbell(queue) << (target < 90000 ? 0 : 2);
	words[layout->doorbell] |= 1U << 28; /* enabled */
	words[SDMA_QUEUE_ID] = queue->id;
}
