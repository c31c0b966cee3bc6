/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/admit.h"

#include <string.h>

#include "core/decide/candidate.h"
#include "core/decide/hint.h"
#include "core/ledger/waiting-queue.h"
#include "core/mask/place.h"

/* ---- budgets --------------------------------------------------------------------- */

/* One countable thing: what is asked, left, there in all, gone to leases, and what the
 * lease that is resized has of it. */
struct countable {
	enum reason reason;
	uint64_t asked, free, whole, leased, had;
};

/* A best-effort lease may go beyond the slots where policy says so and no realtime lease
 * would suffer. */
static bool may_oversubscribe(const struct candidate *a)
{
	return a->admit_context->arbiter->settings->oversubscribe_besteffort &&
	       a->admit_context->class == CLASS_BESTEFFORT && a->gpu->n_realtime == 0;
}

#define COUNTABLES 5U

static void count_up(const struct candidate *a, struct countable ret[static COUNTABLES])
{
	const struct gpu *gpu = a->gpu;
	const struct want *want = a->want;
	const struct budget *charged = &gpu->charged, *excess = &gpu->observed.excess;
	const struct budget had = a->had ? a->had->charged : (struct budget){ 0 };
	bool slots = !may_oversubscribe(a);
	const struct countable list[COUNTABLES] = {
		{ REASON_QUEUES, want->queues, slots ? gpu_queues_free(gpu) : UINT64_MAX,
		  gpu->info.queue_slots - min_u(gpu->reserve_queues, gpu->info.queue_slots),
		  charged->queues + excess->queues, had.queues },
		{ REASON_PROCESSES, want->processes, slots ? gpu_processes_free(gpu) : UINT64_MAX,
		  gpu->info.process_slots, charged->processes + excess->processes, had.processes },
		{ REASON_SDMA, want->sdma_queues, gpu_sdma_free(gpu), gpu->info.sdma_queues,
		  charged->sdma_queues + excess->sdma_queues, had.sdma_queues },
		{ REASON_VRAM, want->vram, gpu_vram_free(gpu), gpu->info.vram_bytes,
		  charged->vram + excess->vram, had.vram },
		/* More than one queue with GWS oversubscribes the run list:
		 * pm_calc_rlib_size(), kfd_packet_manager.c. */
		{ REASON_COOPERATIVE, want->cooperative, charged->cooperative == 0, 1,
		  charged->cooperative, had.cooperative },
	};

	memcpy(ret, list, sizeof(list));
}

/* More than there is in all; told before anything that may pass. */
static enum outcome admit_whole(struct candidate *a)
{
	struct countable list[COUNTABLES];
	char whole[HINT_AMOUNT];

	count_up(a, list);
	for (size_t i = 0; i < COUNTABLES; i++) {
		const struct countable *c = &list[i];

		if (c->asked <= c->had || c->asked <= c->whole)
			continue;
		hint_format(a->refusal, "there %s %s in all to give",
			    c->whole == 1 || c->reason == REASON_VRAM ? "is" : "are",
			    hint_amount(c->reason, c->whole, whole));
		return candidate_refuse(a, OUTCOME_NEVER, c->reason, c->asked, c->whole);
	}
	return OUTCOME_FITS;
}

static enum outcome admit_budgets(struct candidate *a)
{
	struct countable list[COUNTABLES];

	count_up(a, list);
	for (size_t i = 0; i < COUNTABLES; i++) {
		const struct countable *c = &list[i];
		bool unmanaged_processes = c->asked + c->leased <=
					   c->whole; /* but for them it would fit */

		if (c->asked <= c->had || c->asked <= c->free)
			continue;
		hint_countable(a->refusal, a->gpu, c->reason, c->free);
		return candidate_refuse(a, OUTCOME_NOT_NOW,
					unmanaged_processes ? REASON_UNMANAGED : c->reason,
					c->asked, c->free);
	}
	return OUTCOME_FITS;
}

/* ---- quota ----------------------------------------------------------------------- */

static enum outcome admit_quota(struct candidate *a)
{
	const struct tenant *tenant = a->admit_context->tenant;
	const struct gpu_info *info = &a->gpu->info;
	const struct want *want = a->want;
	char limit[HINT_AMOUNT], held[HINT_AMOUNT];
	const struct {
		const char *key;
		enum reason reason;
		uint64_t asked, held, limit;
	} list[] = {
		{ "max-cus", REASON_CUS, a->aim, a->held.cus,
		  limit_of(&tenant->max_cus, a->gpu->cus) },
		{ "max-queues", REASON_QUEUES, want->queues, a->held.budget.queues,
		  limit_of(&tenant->max_queues, info->queue_slots) },
		{ "max-processes", REASON_PROCESSES, want->processes, a->held.budget.processes,
		  limit_of(&tenant->max_processes, info->process_slots) },
		{ "max-vram", REASON_VRAM, want->vram, a->held.budget.vram,
		  limit_of(&tenant->max_vram, info->vram_bytes) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		uint64_t left = list[i].limit > list[i].held ? list[i].limit - list[i].held : 0;

		if (list[i].asked <= left)
			continue;
		hint_format(a->refusal, "%s of tenant %s is %s, %s of it held by uid %u",
			    list[i].key, tenant->name,
			    hint_amount(list[i].reason, list[i].limit, limit),
			    hint_amount(list[i].reason, list[i].held, held), a->admit_context->uid);
		return candidate_refuse(a, OUTCOME_QUOTA, REASON_QUOTA, list[i].asked, left);
	}
	return OUTCOME_FITS;
}

/* ---- all of it ------------------------------------------------------------------- */

/* A resize that asks for nothing that the lease does not have: it only gives. */
static bool only_gives(const struct candidate *a)
{
	const struct partition *had = a->had;
	const struct want *want = a->want;

	return had && max_u(a->aim, want->cus_max) <= had->count &&
	       want->queues <= had->charged.queues && want->processes <= had->charged.processes &&
	       want->sdma_queues <= had->charged.sdma_queues && want->vram <= had->charged.vram &&
	       want->cooperative <= had->charged.cooperative;
}

/* A lease has waited here for as long as it must, and ranks before who asks now. */
static bool is_barred(const struct candidate *a)
{
	const struct admit_context *admit_context = a->admit_context;

	return a->gpu->barrier.id && queue_before(a->gpu->barrier.class, a->gpu->barrier.id,
						  admit_context->class, admit_context->id);
}

static enum outcome admit_state(struct candidate *a)
{
	const struct gpu *gpu = a->gpu;

	a->confined = is_barred(a);
	if (only_gives(a))
		return OUTCOME_FITS;
	if (gpu->draining) {
		hint_format(a->refusal, "it is being drained: an administrator can undrain it");
		return candidate_refuse(a, OUTCOME_NOT_NOW, REASON_DRAIN, a->aim, 0);
	}
	if (gpu->observed.oversubscribed && !may_oversubscribe(a)) {
		hint_oversubscribed(a->refusal, gpu);
		return candidate_refuse(a, OUTCOME_NOT_NOW, REASON_OVERSUBSCRIBED, a->want->queues,
					0);
	}
	if (a->confined) {
		a->refusal->behind = gpu->barrier.id;
		hint_format(a->refusal,
			    "lease %llu has waited for it while %u others were granted: "
			    "nothing else is granted there before it",
			    (unsigned long long)gpu->barrier.id, LEASE_PASSES_MAX);
		return candidate_refuse(a, OUTCOME_NOT_NOW, REASON_CUS, a->aim, 0);
	}
	return OUTCOME_FITS;
}

static enum outcome admit_aim(struct candidate *a)
{
	const struct geometry *geometry = &a->gpu->info.geometry;

	a->aim = a->want->cus ? a->want->cus
			      : place_engines_aim(geometry, &a->gpu->all, a->want->shader_engines);
	if (a->want->shader_engines > geometry->engines) {
		hint_format(a->refusal, "there are %u shader engines", geometry->engines);
		return candidate_refuse(a, OUTCOME_NEVER, REASON_SHADER_ENGINES,
					a->want->shader_engines, geometry->engines);
	}
	if (a->want->cus_min > a->aim) {
		hint_format(a->refusal, "cus-min %u: %u shader engines have %u CUs",
			    a->want->cus_min, a->want->shader_engines, a->aim);
		return candidate_refuse(a, OUTCOME_NEVER, REASON_SHAPE, a->want->cus_min, a->aim);
	}
	if (a->want->cus_max && a->want->cus_max < a->aim) {
		hint_format(a->refusal, "cus-max %u: %u shader engines have %u CUs; say cus too",
			    a->want->cus_max, a->want->shader_engines, a->aim);
		return candidate_refuse(a, OUTCOME_NEVER, REASON_SHAPE, a->want->cus_max, a->aim);
	}
	return OUTCOME_FITS;
}

/* The share of the GPU that the lease which is resized has. */
static const struct partition *partition_had(const struct lease *previous, unsigned gpu)
{
	for (size_t i = 0; previous && i < previous->n_partitions; i++)
		if (previous->partitions[i].gpu == gpu)
			return &previous->partitions[i];
	return NULL;
}

static void fill(const struct candidate *a, struct partition *ret)
{
	const struct want *want = a->want;

	*ret = (struct partition){
		.gpu = a->index,
		.asked = max_u(a->aim, min_u(want->cus_max, a->gpu->cus)),
		.granted = { .queues = want->queues,
			     .processes = want->processes,
			     .sdma_queues = want->sdma_queues,
			     .cooperative = want->cooperative,
			     .vram = want->vram },
		.streams = want->streams,
		.priority = want->priority,
		.isolation = want->isolation,
		.alone = a->admit_context->alone,
		.any_shape = want->any_shape,
		.adaptable = a->admit_context->adaptable,
	};
	ret->charged = ret->granted;
}

enum outcome admit(const struct admit_context *admit_context, const struct want *want, unsigned gpu,
		   struct partition *ret, struct refusal *ret_refusal)
{
	static enum outcome (*const steps[])(struct candidate *) = {
		admit_aim, admit_quota, admit_whole, admit_state, admit_budgets,
	};
	struct candidate a = {
		.admit_context = admit_context,
		.want = want,
		.gpu = &admit_context->arbiter->gpus[gpu],
		.index = gpu,
		.had = partition_had(admit_context->previous, gpu),
		.refusal = ret_refusal,
	};
	struct partition partition;
	enum outcome outcome;

	*ret_refusal = (struct refusal){ 0 };
	memcpy(ret_refusal->gpu, a.gpu->info.name, sizeof(ret_refusal->gpu));
	if (admit_context->shares)
		a.held = admit_context->shares[gpu];
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		outcome = steps[i](&a);

		/* What would not fit an empty GPU is not to be tried again. */
		if (outcome == OUTCOME_NOT_NOW && candidate_cus_ever(&a) != OUTCOME_FITS)
			return OUTCOME_NEVER;
		if (outcome != OUTCOME_FITS)
			return outcome;
	}
	fill(&a, &partition);
	outcome = candidate_cus(&a, &partition);
	if (outcome == OUTCOME_FITS)
		*ret = partition;
	return outcome;
}
