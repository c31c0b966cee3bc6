/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/gpu.h"

#include <string.h>

#include "util/base.h"

void gpu_init(struct gpu *gpu, const struct gpu_info *info, unsigned reserve_queues)
{
	uint32_t mask[CODEC_WORDS];

	memset(gpu, 0, sizeof(*gpu));
	gpu->info = *info;
	gpu->reserve_queues = reserve_queues;
	codec_init(&gpu->codec, &info->geometry);

	/* A CU that no mask bit reaches cannot be granted. */
	geometry_all(&info->geometry, &gpu->all);
	codec_encode(&gpu->codec, &gpu->all, mask);
	codec_decode(&gpu->codec, mask, codec_words(&gpu->codec), &gpu->all);
	gpu->cus = cuset_count(&gpu->all);
}

/* by: 1 to add, -1 to remove. */
static void budget_add(struct budget *sum, const struct budget *b, int by)
{
	sum->queues += (unsigned)by * b->queues;
	sum->processes += (unsigned)by * b->processes;
	sum->sdma_queues += (unsigned)by * b->sdma_queues;
	sum->cooperative += (unsigned)by * b->cooperative;
	sum->vram += (uint64_t)by * b->vram;
}

static void count_engines(struct gpu *gpu, const struct partition *partition, unsigned by)
{
	uint32_t engines = cuset_engines(partition_claim(partition));
	unsigned *owners = partition->isolation == ISOLATION_SHADER_ENGINE ? gpu->rt_exclusive
									   : gpu->rt_tolerant;

	for (unsigned e = 0; e < CUSET_ENGINES; e++) {
		if (!(engines & (UINT32_C(1) << e)))
			continue;
		owners[e] += by;
		gpu->alone[e] += partition->alone ? by : 0;
	}
}

/* All sums but the sets of CUs. */
static void count(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class,
		  int by)
{
	budget_add(&gpu->charged, &partition->charged, by);
	gpu->n_partitions += (unsigned)by;
	if (partition->isolation == ISOLATION_SHARED)
		gpu->n_shared += (unsigned)by;
	if (lease_class == CLASS_REALTIME) {
		gpu->n_realtime += (unsigned)by;
		count_engines(gpu, partition, (unsigned)by);
	}
	gpu->changed = true;
}

void gpu_charge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class)
{
	bool shared = partition->isolation == ISOLATION_SHARED;

	cuset_add(shared ? &gpu->shared : &gpu->taken, partition_claim(partition));
	count(gpu, partition, lease_class, 1);
}

void gpu_discharge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class)
{
	if (partition->isolation != ISOLATION_SHARED)
		cuset_remove(&gpu->taken, partition_claim(partition));
	count(gpu, partition, lease_class, -1);
}

static uint64_t left(uint64_t whole, uint64_t charged, uint64_t excess, uint64_t unmanaged,
		     uint64_t reserve)
{
	uint64_t gone = charged + excess + unmanaged + reserve;

	return gone < whole ? whole - gone : 0;
}

unsigned gpu_cus_free(const struct gpu *gpu)
{
	struct cuset left_over = gpu->all;

	cuset_remove(&left_over, &gpu->taken);
	cuset_remove(&left_over, &gpu->shared);
	cuset_remove(&left_over, &gpu->lend.borrowed);
	return cuset_count(&left_over);
}

unsigned gpu_queues_free(const struct gpu *gpu)
{
	return (unsigned)left(gpu->info.queue_slots, gpu->charged.queues,
			      gpu->observed.excess.queues, gpu->observed.unmanaged.queues,
			      gpu->reserve_queues);
}

unsigned gpu_processes_free(const struct gpu *gpu)
{
	return (unsigned)left(gpu->info.process_slots, gpu->charged.processes,
			      gpu->observed.excess.processes, gpu->observed.unmanaged.processes, 0);
}

unsigned gpu_sdma_free(const struct gpu *gpu)
{
	return (unsigned)left(gpu->info.sdma_queues, gpu->charged.sdma_queues,
			      gpu->observed.excess.sdma_queues, gpu->observed.unmanaged.sdma_queues,
			      0);
}

uint64_t gpu_vram_free(const struct gpu *gpu)
{
	return left(gpu->info.vram_bytes, gpu->charged.vram, gpu->observed.excess.vram,
		    gpu->observed.unmanaged.vram, 0);
}

void gpu_add_engines(const struct gpu *gpu, struct cuset *set)
{
	uint32_t engines = cuset_engines(set);

	for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
		for (unsigned e = 0; e < gpu->info.geometry.engines; e++)
			if (engines & (UINT32_C(1) << e))
				set->pair[cuset_pair(x, e)] |= gpu->all.pair[cuset_pair(x, e)];
}
