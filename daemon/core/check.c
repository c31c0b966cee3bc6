/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* arbiter_check(): the promises, from scratch. Nothing here trusts the sums that gpu.c
 * keeps, or the code that made the partitions. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/arbiter.h"

struct check {
	const struct arbiter *arbiter;
	char *buf;
	size_t size;
};

static bool broken(const struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);

static bool broken(const struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->buf, check->size, format, args);
	va_end(args);
	return false;
}

#define ID(lease) ((unsigned long long)(lease)->id)

/* ---- promise 4: every mask is valid for the hardware -------------------------------- */

static bool on_every_xcc(const struct geometry *g, const struct cuset *set)
{
	for (unsigned x = 0; x < g->xccs; x++) {
		uint32_t any = 0;

		for (unsigned e = 0; e < CUSET_ENGINES; e++)
			any |= set->pair[cuset_pair(x, e)];
		if (!any)
			return false;
	}
	return true;
}

static bool check_mask(const struct check *check, const struct lease *lease,
		       const struct partition *p)
{
	const struct gpu *gpu = &check->arbiter->gpus[p->gpu];
	uint32_t mask[DEAL_WORDS];
	struct cuset back;
	char why[128];

	if (!cuset_within(&p->cus, &gpu->all) || !cuset_within(&p->cus, &p->occupied))
		return broken(check, "lease %llu: CUs that are not there, or not charged", ID(lease));
	if (cuset_count(&p->cus) != p->count || p->count == 0)
		return broken(check, "lease %llu: count %u of %u CUs", ID(lease), p->count,
			      cuset_count(&p->cus));
	if (!on_every_xcc(&gpu->info.geometry, &p->cus))
		return broken(check, "lease %llu: an XCC without a CU", ID(lease));
	if (geometry_effective(&gpu->info.geometry, &p->cus) != p->effective)
		return broken(check, "lease %llu: E is not %u", ID(lease), p->effective);

	deal_encode(&gpu->deal, &p->cus, mask);
	if (deal_check(&gpu->deal, &gpu->info.geometry, mask, deal_words(&gpu->deal), why,
		       sizeof(why)) < 0)
		return broken(check, "lease %llu: the kernel's mask: %s", ID(lease), why);
	deal_decode(&gpu->deal, mask, deal_words(&gpu->deal), &back);
	if (!cuset_equal(&back, &p->cus))
		return broken(check, "lease %llu: the kernel would make another set of it", ID(lease));
	return true;
}

/* Rectangular, but for the whole GPU and shape=any. */
static bool check_shape(const struct check *check, const struct lease *lease,
			const struct partition *p)
{
	const struct gpu *gpu = &check->arbiter->gpus[p->gpu];

	if (p->effective == p->count || p->any_shape || cuset_equal(&p->cus, &gpu->all))
		return true;
	return broken(check, "lease %llu: %u CUs of which %u effective", ID(lease), p->count,
		      p->effective);
}

/* ---- promises 1 and 2: who may share what ------------------------------------------- */

static bool exclusive_engines(const struct lease *a, const struct partition *p,
			      const struct lease *b, const struct partition *q)
{
	if (p->alone || q->alone)
		return true;
	return a->class == CLASS_REALTIME && b->class == CLASS_REALTIME &&
	       (p->isolation == ISOLATION_SHADER_ENGINE || q->isolation == ISOLATION_SHADER_ENGINE);
}

static bool check_pair(const struct check *check, const struct lease *a,
		       const struct partition *p, const struct lease *b,
		       const struct partition *q)
{
	bool may_share = p->isolation == ISOLATION_SHARED && q->isolation == ISOLATION_SHARED;

	if (p->gpu != q->gpu)
		return true;
	if (cuset_overlap(&p->occupied, &q->occupied) && !may_share)
		return broken(check, "leases %llu and %llu share CUs", ID(a), ID(b));
	if ((cuset_engines(&p->occupied) & cuset_engines(&q->occupied)) &&
	    exclusive_engines(a, p, b, q))
		return broken(check, "leases %llu and %llu share a shader engine", ID(a), ID(b));
	return true;
}

static bool check_others(const struct check *check, size_t i)
{
	const struct arbiter *arbiter = check->arbiter;
	const struct lease *a = arbiter->leases[i];

	for (size_t j = i + 1; j < arbiter->n_leases; j++) {
		const struct lease *b = arbiter->leases[j];

		if (b->id <= a->id || b->id >= arbiter->next_id)
			return broken(check, "lease %llu is out of order", ID(b));
		for (size_t k = 0; k < a->n_partitions; k++)
			for (size_t l = 0; l < b->n_partitions; l++)
				if (!check_pair(check, a, &a->partitions[k], b, &b->partitions[l]))
					return false;
	}
	return true;
}

static bool check_lease(const struct check *check, size_t i)
{
	const struct lease *lease = check->arbiter->leases[i];

	for (size_t j = 0; j < lease->n_partitions; j++) {
		const struct partition *p = &lease->partitions[j];

		for (size_t k = 0; k < j; k++)
			if (lease->partitions[k].gpu == p->gpu)
				return broken(check, "lease %llu is on a GPU twice", ID(lease));
		if (p->isolation == ISOLATION_SHARED && lease->class != CLASS_BESTEFFORT)
			return broken(check, "lease %llu shares and must not", ID(lease));
		if (!check_mask(check, lease, p) || !check_shape(check, lease, p))
			return false;
	}
	return check_others(check, i);
}

/* ---- promise 3: budgets, and the sums ------------------------------------------------ */

/* What the leases on a GPU come to, counted anew. */
static void sum_up(const struct arbiter *arbiter, unsigned index, struct gpu *ret)
{
	gpu_init(ret, &arbiter->gpus[index].info, arbiter->gpus[index].reserve_queues);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		for (size_t j = 0; j < arbiter->leases[i]->n_partitions; j++)
			if (arbiter->leases[i]->partitions[j].gpu == index)
				gpu_charge(ret, &arbiter->leases[i]->partitions[j],
					   arbiter->leases[i]->class);
}

static bool check_sums(const struct check *check, const struct gpu *gpu, const struct gpu *sum)
{
	if (!cuset_equal(&gpu->taken, &sum->taken) || !cuset_equal(&gpu->shared, &sum->shared) ||
	    memcmp(&gpu->charged, &sum->charged, sizeof(gpu->charged)) != 0 ||
	    gpu->n_partitions != sum->n_partitions || gpu->n_realtime != sum->n_realtime ||
	    gpu->n_shared != sum->n_shared ||
	    memcmp(gpu->rt_exclusive, sum->rt_exclusive, sizeof(gpu->rt_exclusive)) != 0 ||
	    memcmp(gpu->rt_tolerant, sum->rt_tolerant, sizeof(gpu->rt_tolerant)) != 0 ||
	    memcmp(gpu->alone, sum->alone, sizeof(gpu->alone)) != 0)
		return broken(check, "%s: the sums are not those of its leases", gpu->info.name);
	return true;
}

/* Grants alone; what strangers add later makes the GPU oversubscribed, which is told. */
static bool check_budgets(const struct check *check, const struct gpu *gpu)
{
	const struct budget *c = &gpu->charged;
	bool slots = !check->arbiter->settings->oversubscribe_besteffort || gpu->n_realtime > 0;

	if (slots && c->queues > gpu->info.queue_slots)
		return broken(check, "%s: %u queues granted of %u", gpu->info.name, c->queues,
			      gpu->info.queue_slots);
	if (slots && c->processes > gpu->info.process_slots)
		return broken(check, "%s: %u processes granted of %u", gpu->info.name,
			      c->processes, gpu->info.process_slots);
	if (c->sdma_queues > gpu->info.sdma_queues || c->vram > gpu->info.vram_bytes ||
	    c->cooperative > 1)
		return broken(check, "%s: more SDMA queues, VRAM or cooperative queues granted "
			      "than there are", gpu->info.name);
	return true;
}

bool arbiter_check(const struct arbiter *arbiter, char *buf, size_t size)
{
	const struct check check = { arbiter, buf, size };

	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (!check_lease(&check, i))
			return false;
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu sum;

		sum_up(arbiter, i, &sum);
		if (!check_sums(&check, &arbiter->gpus[i], &sum) ||
		    !check_budgets(&check, &arbiter->gpus[i]))
			return false;
	}
	return true;
}
