/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/gpu.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"
#include "core/ledger/lease.h"

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
	gpu->masks_known = codec_knows(info->gfx_target) && !info->whole_only;

	/* A CU that no mask bit reaches cannot be granted. */
	geometry_all(&info->geometry, &gpu->all);
	codec_encode(&gpu->codec, &gpu->all, mask);
	codec_decode(&gpu->codec, mask, codec_words(&gpu->codec), &gpu->all);
	gpu->cus = cuset_count(&gpu->all);
}

static void count_engines(struct gpu *gpu, const struct partition *partition, unsigned by)
{
	const struct cuset claim = partition_claim(partition);
	uint32_t engines = cuset_engines(&claim);
	unsigned *owners = partition->isolation == ISOLATION_SHADER_ENGINE ? gpu->rt_exclusive
									   : gpu->rt_tolerant;

	for (unsigned e = 0; e < CUSET_ENGINES; e++) {
		if (!(engines & (UINT32_C(1) << e)))
			continue;
		owners[e] += by;
		gpu->alone[e] += partition->alone ? by : 0;
	}
}

/* The counts of partitions. */
static void count(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class,
		  int by)
{
	gpu->n_partitions += (unsigned)by;
	if (partition->exclusive)
		gpu->n_exclusive += (unsigned)by;
	if (lease_class == CLASS_REALTIME) {
		gpu->n_realtime += (unsigned)by;
		count_engines(gpu, partition, (unsigned)by);
	}
	gpu->changed = true;
}

void gpu_charge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class)
{
	const struct cuset claim = partition_claim(partition);
	bool shared = partition->isolation == ISOLATION_SHARED;

	cuset_add(shared ? &gpu->shared : &gpu->taken, &claim);
	budget_add(&gpu->charged, &partition->charged);
	count(gpu, partition, lease_class, 1);
}

void gpu_discharge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class)
{
	const struct cuset claim = partition_claim(partition);

	if (partition->isolation != ISOLATION_SHARED)
		cuset_remove(&gpu->taken, &claim);
	budget_remove(&gpu->charged, &partition->charged);
	count(gpu, partition, lease_class, -1);
}

uint32_t gpu_engines_closed(const struct gpu *gpu)
{
	uint32_t closed = 0;

	for (unsigned e = 0; e < CUSET_ENGINES; e++)
		if (gpu->rt_exclusive[e] > 0 || gpu->rt_tolerant[e] > 0 || gpu->alone[e] > 0)
			closed |= UINT32_C(1) << e;
	return closed;
}

static struct cuset unclaimed(const struct gpu *gpu)
{
	struct cuset cus = gpu->all;

	cuset_remove(&cus, &gpu->taken);
	cuset_remove(&cus, &gpu->shared);
	return cus;
}

unsigned gpu_cus_unclaimed(const struct gpu *gpu)
{
	const struct cuset cus = unclaimed(gpu);

	return cuset_count(&cus);
}

unsigned gpu_cus_free(const struct gpu *gpu)
{
	struct cuset cus = unclaimed(gpu);

	cuset_remove(&cus, &gpu->lend.borrowed);
	return cuset_count(&cus);
}

struct budget gpu_all(const struct gpu_info *info)
{
	return (struct budget){ .queues = info->queue_slots,
				.processes = info->process_slots,
				.sdma_queues = info->sdma_queues,
				.sdma_xgmi_queues = info->sdma_xgmi_queues,
				.vram = info->vram_bytes,
				/* More than one queue with GWS oversubscribes the run list:
				 * pm_calc_rlib_size(), kfd_packet_manager.c. */
				.cooperative = 1 };
}

struct budget gpu_for_leases(const struct gpu *gpu)
{
	struct budget all = gpu_all(&gpu->info);

	all.queues -= min_u64(gpu->reserve_queues, all.queues);
	return all;
}

struct budget gpu_free(const struct gpu *gpu)
{
	return gpu_free_beside(gpu, NULL);
}

struct budget gpu_free_beside(const struct gpu *gpu, const struct partition *own)
{
	struct budget all = gpu_for_leases(gpu);

	all.vram -= min_u64(gpu->graphics.vram, all.vram);
	for (unsigned r = 0; r < BUDGETS; r++) {
		uint64_t mine = own ? beyond(own->used.of[r], own->charged.of[r]) : 0;

		mine = min_u64(mine, gpu->observed.excess.of[r]);
		all.of[r] -= min_u64(gpu_promised(gpu, r) - mine, all.of[r]);
	}
	return all;
}

uint64_t gpu_promised(const struct gpu *gpu, enum resource resource)
{
	return gpu->charged.of[resource] + gpu->observed.excess.of[resource] +
	       gpu->observed.unmanaged.of[resource];
}

uint64_t gpu_drm_memory(const struct gpu *gpu, uint64_t vram, uint64_t gtt)
{
	return gpu->info.system_memory ? gtt : vram;
}

uint64_t gpu_round_vram(uint64_t bytes)
{
	const uint64_t step = UINT64_C(16) << 20;

	return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

void gpu_judge_vram(struct gpu *gpu)
{
	uint64_t all = gpu->info.vram_bytes, others = gpu->graphics.vram;
	uint64_t used = gpu->observed.used.vram + others;
	uint64_t promised = gpu_promised(gpu, RESOURCE_VRAM) + others;
	bool short_of = all > 0 && ((gpu->charged.vram > 0 && promised > all) ||
				    used > all - all / (gpu->vram_pressure ? 8 : 16));

	gpu->changed |= short_of != gpu->vram_pressure;
	gpu->vram_pressure = short_of;
}

void gpu_add_engines(const struct gpu *gpu, struct cuset *set)
{
	struct cuset whole = gpu->all;

	cuset_keep_engines(&whole, cuset_engines(set));
	cuset_add(set, &whole);
}

size_t gpu_gaps(const struct gpu *gpu, const char *ret[static GPU_GAPS])
{
	size_t n = gpu_info_gaps(&gpu->info, ret), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (gpu->graphics.state != GRAPHICS_NONE || strcmp(ret[i], "graphics") != 0)
			ret[kept++] = ret[i];
	return kept;
}

void gpu_name_processes(const struct gpu *gpu, struct refusal *refusal)
{
	refusal->n_processes = 0;
	for (size_t i = 0; i < gpu->observed.n_processes; i++)
		refusal_add_process(refusal, &gpu->observed.processes[i]);
}

static bool uses_vram(const struct gpu *gpu, const struct gpu_client *client)
{
	return client->lease == 0 && gpu_drm_memory(gpu, client->vram, client->gtt) > 0;
}

static bool is_client(const struct gpu *gpu, pid_t pid)
{
	for (size_t i = 0; i < gpu->graphics.n_clients; i++)
		if (gpu->graphics.clients[i].pid == pid &&
		    uses_vram(gpu, &gpu->graphics.clients[i]))
			return true;
	return false;
}

void gpu_name_vram_users(const struct gpu *gpu, struct refusal *refusal)
{
	refusal->n_processes = 0;
	for (size_t i = 0; i < gpu->graphics.n_clients; i++) {
		const struct gpu_client *client = &gpu->graphics.clients[i];
		const struct unmanaged_process process = { .who = client->who };

		if (uses_vram(gpu, client))
			refusal_add_process(refusal, &process);
	}
	for (size_t i = 0; i < gpu->observed.n_processes; i++)
		if (!is_client(gpu, gpu->observed.processes[i].pid))
			refusal_add_process(refusal, &gpu->observed.processes[i]);
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
	if (!cuset_within(&p->occupied, &gpu->all) || !cuset_within(&p->cus, &p->occupied))
		return refuse(buf, size, -EINVAL,
			      "a mask has CUs that the GPU has not, or that are not charged");
	if (!geometry_on_every_xcc(&gpu->info.geometry, &p->cus))
		return refuse(buf, size, -EINVAL, "an XCC without a CU");
	if (!cuset_within(&p->resize, &gpu->all))
		return refuse(buf, size, -EINVAL, "it waits for CUs that the GPU has not");
	if (!is_whole(&gpu->codec, &p->cus) || !is_whole(&gpu->codec, &p->occupied) ||
	    !is_whole(&gpu->codec, &p->resize))
		return refuse(buf, size, -EINVAL, "the mask splits a WGP");
	return 0;
}

static bool is_base(const struct gpu *gpu, const struct cuset *base)
{
	return geometry_on_every_xcc(&gpu->info.geometry, base) &&
	       (geometry_effective(&gpu->info.geometry, base) == cuset_count(base) ||
		cuset_equal(base, &gpu->all));
}

static int check_adaptation(const struct gpu *gpu, const struct partition *p, char *buf,
			    size_t size)
{
	const struct cuset *base = &p->adaptation->base;

	if (!cuset_within(base, &p->cus) || !is_base(gpu, base))
		return refuse(buf, size, -EINVAL, "the base is no rectangle within the mask");
	if (!cuset_empty(&p->resize) && !is_base(gpu, &p->resize))
		return refuse(buf, size, -EINVAL, "the base that it waits for is no rectangle");
	if (!is_whole(&gpu->codec, base) || !is_whole(&gpu->codec, &p->adaptation->before))
		return refuse(buf, size, -EINVAL, "the base, or the mask before, splits a WGP");
	return 0;
}

int gpu_check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	if (check_mask(gpu, p, buf, size) < 0 ||
	    (p->adaptation && check_adaptation(gpu, p, buf, size) < 0))
		return -EINVAL;
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
	const struct cuset of_p = partition_claim(p), of_q = partition_claim(q);
	bool may_share = p->isolation == ISOLATION_SHARED && q->isolation == ISOLATION_SHARED;

	if (cuset_overlap(&of_p, &of_q) && !may_share)
		return "CUs";
	if ((cuset_engines(&of_p) & cuset_engines(&of_q)) && exclusive_engines(a, p, b, q))
		return "a shader engine";
	return NULL;
}

bool lease_is_active(const struct lease *lease)
{
	return lease->state == STATE_GRANTED ||
	       (lease->state == STATE_REVOKING && !lease->lend.idle) ||
	       (lease->state == STATE_ENDING && lease->adaptable && !lease->lend.idle);
}
