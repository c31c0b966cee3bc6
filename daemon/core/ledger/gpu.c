/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/gpu.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

const char *const graphics_state_names[] = {
	[GRAPHICS_UNKNOWN] = "unknown",
	[GRAPHICS_NONE] = "none",
	[GRAPHICS_DRAWN] = "drawn",
	NULL,
};

void gpu_init(struct gpu *gpu, const struct gpu_info *info, unsigned reserve_queues)
{
	uint32_t mask[CODEC_WORDS];

	memset(gpu, 0, sizeof(*gpu));
	gpu->info = *info;
	gpu->reserve_queues = reserve_queues;
	gpu->lend.join_usec = UINT64_MAX;
	codec_init(&gpu->codec, &info->geometry);
	gpu->masks_known = codec_knows(info->gfx_target);

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
	sum->sdma_xgmi_queues += (unsigned)by * b->sdma_xgmi_queues;
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

unsigned gpu_sdma_xgmi_free(const struct gpu *gpu)
{
	return (unsigned)left(gpu->info.sdma_xgmi_queues, gpu->charged.sdma_xgmi_queues,
			      gpu->observed.excess.sdma_xgmi_queues,
			      gpu->observed.unmanaged.sdma_xgmi_queues, 0);
}

uint64_t gpu_vram_free(const struct gpu *gpu)
{
	return left(gpu->info.vram_bytes, gpu->charged.vram, gpu->observed.excess.vram,
		    gpu->observed.unmanaged.vram,
		    gpu->graphics.vram < gpu->info.vram_bytes ? gpu->graphics.vram
							      : gpu->info.vram_bytes);
}

void gpu_add_engines(const struct gpu *gpu, struct cuset *set)
{
	uint32_t engines = cuset_engines(set);

	for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
		for (unsigned e = 0; e < gpu->info.geometry.engines; e++)
			if (engines & (UINT32_C(1) << e))
				set->pair[cuset_pair(x, e)] |= gpu->all.pair[cuset_pair(x, e)];
}

size_t gpu_gaps(const struct gpu *gpu, const char *ret[static 6])
{
	size_t n = gpu_info_gaps(&gpu->info, ret), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (gpu->graphics.state != GRAPHICS_NONE || strcmp(ret[i], "graphics") != 0)
			ret[kept++] = ret[i];
	return kept;
}

void gpu_name_processes(const struct gpu *gpu, struct refusal *refusal)
{
	refusal->n_processes = gpu->observed.n_processes;
	for (size_t i = 0; i < gpu->observed.n_processes && i < REFUSAL_PROCESSES; i++)
		refusal->processes[i] = gpu->observed.processes[i];
}

static void name(struct refusal *refusal, const struct unmanaged_process *process)
{
	if (refusal->n_processes < REFUSAL_PROCESSES)
		refusal->processes[refusal->n_processes] = *process;
	refusal->n_processes++;
}

static bool uses_vram(const struct gpu_client *client)
{
	return client->lease == 0 && client->vram > 0;
}

static bool is_client(const struct gpu *gpu, pid_t pid)
{
	for (size_t i = 0; i < gpu->graphics.n_clients; i++)
		if (gpu->graphics.clients[i].pid == pid && uses_vram(&gpu->graphics.clients[i]))
			return true;
	return false;
}

void gpu_name_vram_users(const struct gpu *gpu, struct refusal *refusal)
{
	refusal->n_processes = 0;
	for (size_t i = 0; i < gpu->graphics.n_clients; i++) {
		const struct gpu_client *client = &gpu->graphics.clients[i];
		struct unmanaged_process process = { .pid = client->pid, .uid = client->uid };

		memcpy(process.command, client->command, sizeof(process.command));
		if (uses_vram(client))
			name(refusal, &process);
	}
	for (size_t i = 0; i < gpu->observed.n_processes; i++)
		if (!is_client(gpu, gpu->observed.processes[i].pid))
			name(refusal, &gpu->observed.processes[i]);
}

/* ---- invariants of partitions and leases ------------------------------------------------- */

/* Does the mask codec reproduce the set? It would not if the set had half a WGP. */
static bool is_whole(const struct codec *codec, const struct cuset *set)
{
	uint32_t mask[CODEC_WORDS];
	struct cuset back;

	codec_encode(codec, set, mask);
	codec_decode(codec, mask, codec_words(codec), &back);
	return cuset_equal(&back, set);
}

static int check_mask(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	uint32_t mask[CODEC_WORDS];
	char why[128];

	if (!cuset_within(&p->occupied, &gpu->all) || !cuset_within(&p->cus, &p->occupied))
		return refuse(buf, size, -EINVAL,
			      "a mask has CUs that the GPU has not, or that are not charged");
	if (!geometry_on_every_xcc(&gpu->info.geometry, &p->cus))
		return refuse(buf, size, -EINVAL, "an XCC without a CU");

	codec_encode(&gpu->codec, &p->cus, mask);
	if (codec_check(&gpu->codec, &gpu->info.geometry, mask, codec_words(&gpu->codec), why,
			sizeof(why)) < 0)
		return refuse(buf, size, -EINVAL, "the kernel's mask: %s", why);
	if (!is_whole(&gpu->codec, &p->cus) || !is_whole(&gpu->codec, &p->occupied))
		return refuse(buf, size, -EINVAL, "the mask splits a WGP");
	return 0;
}

static int check_adaptation(const struct gpu *gpu, const struct partition *p, char *buf,
			    size_t size)
{
	const struct cuset *base = &p->adaptation->base;

	if (!cuset_within(base, &p->cus) || cuset_empty(base) ||
	    !geometry_on_every_xcc(&gpu->info.geometry, base) ||
	    (geometry_effective(&gpu->info.geometry, base) != cuset_count(base) &&
	     !cuset_equal(base, &gpu->all)))
		return refuse(buf, size, -EINVAL, "the base is no rectangle within the mask");
	if (!is_whole(&gpu->codec, base) || !is_whole(&gpu->codec, &p->adaptation->before))
		return refuse(buf, size, -EINVAL, "the base, or the mask before, splits a WGP");
	return 0;
}

int gpu_check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	int r;

	r = check_mask(gpu, p, buf, size);
	if (r < 0)
		return r;
	if (p->adaptation) {
		r = check_adaptation(gpu, p, buf, size);
		if (r < 0)
			return r;
	}
	/* Rectangular, but for the whole GPU and shape=any. */
	if (p->effective == p->count || p->any_shape || cuset_equal(&p->cus, &gpu->all))
		return 0;
	return refuse(buf, size, -EINVAL, "%u CUs of which %u effective", p->count, p->effective);
}

static bool exclusive_engines(enum lease_class a, const struct partition *p, enum lease_class b,
			      const struct partition *q)
{
	if (p->alone || q->alone)
		return true;
	return a == CLASS_REALTIME && b == CLASS_REALTIME &&
	       (p->isolation == ISOLATION_SHADER_ENGINE || q->isolation == ISOLATION_SHADER_ENGINE);
}

const char *partition_conflict(enum lease_class a, const struct partition *p, enum lease_class b,
			       const struct partition *q)
{
	bool may_share = p->isolation == ISOLATION_SHARED && q->isolation == ISOLATION_SHARED;

	if (cuset_overlap(partition_claim(p), partition_claim(q)) && !may_share)
		return "CUs";
	if ((cuset_engines(partition_claim(p)) & cuset_engines(partition_claim(q))) &&
	    exclusive_engines(a, p, b, q))
		return "a shader engine";
	return NULL;
}

bool lease_is_active(const struct lease *lease)
{
	return lease->state == STATE_GRANTED ||
	       (lease->state == STATE_REVOKING && !lease->lend.idle) ||
	       (lease->state == STATE_ENDING && lease->adaptable && !lease->lend.idle);
}
