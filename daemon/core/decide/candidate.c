/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/candidate.h"

#include "core/decide/hint.h"
#include "core/mask/place.h"

enum outcome candidate_refuse(struct candidate *a, enum outcome outcome, enum reason reason,
			      uint64_t asked, uint64_t free)
{
	a->refusal->reason = reason;
	a->refusal->asked = asked;
	a->refusal->free = free;
	a->refusal->retry = outcome == OUTCOME_NOT_NOW;
	return outcome;
}

void admit_available(const struct gpu *gpu, enum lease_class lease_class, enum isolation isolation,
		     bool alone, struct cuset *ret)
{
	*ret = gpu->all;
	cuset_remove(ret, &gpu->taken);
	if (isolation != ISOLATION_SHARED)
		cuset_remove(ret, &gpu->shared);

	for (unsigned e = 0; e < gpu->info.geometry.engines; e++) {
		bool closed = gpu->alone[e] > 0;
		uint32_t others = 0;

		if (lease_class == CLASS_REALTIME)
			closed |= gpu->rt_exclusive[e] > 0 ||
				  (isolation == ISOLATION_SHADER_ENGINE && gpu->rt_tolerant[e] > 0);
		for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
			others |= gpu->taken.pair[cuset_pair(x, e)] |
				  gpu->shared.pair[cuset_pair(x, e)];
		if (!closed && !(alone && others))
			continue;
		for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
			ret->pair[cuset_pair(x, e)] = 0;
	}
}

/* Not one CU more, by policy and by what was asked; held: what the user has already. */
static unsigned limit_cus(const struct candidate *a, unsigned held)
{
	uint64_t quota = limit_of(&a->admit_context->tenant->max_cus, a->gpu->cus);
	unsigned limit = a->want->cus_max ? a->want->cus_max : UINT32_MAX;

	quota = quota > held ? quota - held : 0;
	return quota < limit ? (unsigned)quota : limit;
}

/* Engines that no realtime lease could have now. */
static uint32_t closed_engines(const struct gpu *gpu)
{
	uint32_t closed = 0;

	for (unsigned e = 0; e < gpu->info.geometry.engines; e++)
		if (gpu->rt_exclusive[e] > 0 || gpu->rt_tolerant[e] > 0 || gpu->alone[e] > 0)
			closed |= UINT32_C(1) << e;
	return closed;
}

static void prepare(const struct candidate *a, struct place_request *ret)
{
	const struct admit_context *admit_context = a->admit_context;
	const struct want *want = a->want;
	bool realtime = admit_context->class == CLASS_REALTIME;

	*ret = (struct place_request){
		.all = &a->gpu->all,
		.keep = a->had ? &a->had->cus : NULL,
		.aim = a->aim,
		.floor = want->cus_min ? want->cus_min : a->aim - a->aim / 10, /* 9/10, up */
		.ceiling = max_u(a->aim, want->cus_max),
		.limit = limit_cus(a, a->held.cus),
		.engines = want->shader_engines,
		.exact = want->exact,
		.any_shape = want->any_shape,
		.columns = realtime,
		.few_engines = realtime,
		.closed = closed_engines(a->gpu),
	};
	if (admit_context->adaptable) {
		ret->aim = ret->ceiling = max_u(ret->floor, 1);
		ret->few_engines = true;
	}
	admit_available(a->gpu, admit_context->class, want->isolation, admit_context->alone,
			&ret->avail);
	if (admit_context->previous) { /* it is granted at once: nobody is asked to give way */
		struct cuset borrowed = a->gpu->lend.borrowed;

		if (admit_context->alone)
			gpu_add_engines(a->gpu, &borrowed);
		cuset_remove(&ret->avail, &borrowed);
	}
	if (a->confined && a->had)
		cuset_keep(&ret->avail, &a->had->occupied);
	ret->preferred = ret->avail;
	cuset_remove(&ret->preferred, &a->gpu->shared);
	cuset_remove(&ret->preferred, &a->gpu->lend.borrowed);
}

/* As many CUs where nobody has to give way for them, if there are. */
static void place_preferred(const struct candidate *a, const struct place_request *request,
			    struct placement *placement)
{
	struct place_request preferred = *request;
	struct placement other;
	struct place_miss miss;

	if (!cuset_overlap(&placement->cus, &a->gpu->lend.borrowed))
		return;
	cuset_remove(&preferred.avail, &a->gpu->lend.borrowed);
	if (place(&a->gpu->info.geometry, &preferred, &other, &miss) >= 0 &&
	    other.count >= placement->count)
		*placement = other;
}

/* Would it fit if other realtime leases did not close their engines? */
static bool fits_without_engines(const struct candidate *a, const struct place_request *request)
{
	struct place_request open = *request;

	admit_available(a->gpu, CLASS_GUARANTEED, ISOLATION_CU, false, &open.avail);
	return place_fits(&a->gpu->info.geometry, &open);
}

/* Engines that have a CU for it on every XCC. */
static unsigned open_engines(const struct gpu *gpu, const struct cuset *avail)
{
	unsigned n = 0;

	for (unsigned e = 0; e < gpu->info.geometry.engines; e++) {
		bool open = true;

		for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
			open &= avail->pair[cuset_pair(x, e)] != 0;
		n += open;
	}
	return n;
}

/* Engines that the want takes at the least. */
static unsigned engines_for(const struct candidate *a)
{
	unsigned one = place_engines_aim(&a->gpu->info.geometry, &a->gpu->all, 1);

	if (a->want->shader_engines > 0 || one == 0)
		return a->want->shader_engines;
	return (a->aim + one - 1) / one;
}

/* The most whole engines that could be had, n at most, where nothing else was asked. */
static unsigned engines_that_fit(const struct candidate *a, const struct place_request *request,
				 unsigned n)
{
	const struct geometry *geometry = &a->gpu->info.geometry;
	struct place_request fewer = *request;

	if (a->want->cus > 0 || a->want->cus_min > 0 || a->want->cus_max > 0)
		return 0;
	for (; n > 0; n--) {
		fewer.engines = n;
		fewer.aim = fewer.ceiling = place_engines_aim(geometry, &a->gpu->all, n);
		fewer.floor = fewer.aim - fewer.aim / 10;
		if (place_fits(geometry, &fewer))
			break;
	}
	return n;
}

static enum outcome refuse_engines(struct candidate *a, const struct place_request *request,
				   unsigned engines, enum outcome outcome)
{
	unsigned fit = engines_that_fit(a, request, engines);

	if (fit > 0)
		hint_format(a->refusal, "ask for %u shader engine%s", fit, fit == 1 ? "" : "s");
	return candidate_refuse(a, outcome, REASON_SHADER_ENGINES, a->want->shader_engines,
				engines);
}

static enum outcome refuse_cus(struct candidate *a, const struct place_request *request,
			       const struct place_miss *miss, enum outcome outcome)
{
	unsigned free = cuset_count(&request->avail);
	unsigned engines = open_engines(a->gpu, &request->avail);

	hint_cus(a->refusal, free, miss, outcome == OUTCOME_NOT_NOW ? "now" : "an empty GPU");
	if (engines < a->want->shader_engines)
		return refuse_engines(a, request, engines, outcome);
	if (a->admit_context->class == CLASS_REALTIME && outcome == OUTCOME_NOT_NOW &&
	    fits_without_engines(a, request))
		return candidate_refuse(a, outcome, REASON_SHADER_ENGINES, engines_for(a), engines);
	if (free < (request->exact ? request->aim : request->floor))
		return candidate_refuse(a, outcome, REASON_CUS, a->aim, free);
	return candidate_refuse(a, outcome, REASON_SHAPE, a->aim, free);
}

enum outcome candidate_cus_ever(struct candidate *a)
{
	struct place_request request;
	struct place_miss miss = { 0 };
	struct placement placement;

	prepare(a, &request);
	request.avail = request.preferred = a->gpu->all;
	request.limit = limit_cus(a, 0);
	if (place_fits(&a->gpu->info.geometry, &request) ||
	    place(&a->gpu->info.geometry, &request, &placement, &miss) == 0)
		return OUTCOME_FITS;
	return refuse_cus(a, &request, &miss, OUTCOME_NEVER);
}

enum outcome candidate_cus(struct candidate *a, struct partition *partition)
{
	struct place_request request;
	struct place_miss miss = { 0 };
	struct placement placement;

	prepare(a, &request);
	if (place(&a->gpu->info.geometry, &request, &placement, &miss) < 0) {
		if (candidate_cus_ever(a) != OUTCOME_FITS)
			return OUTCOME_NEVER;
		return refuse_cus(a, &request, &miss, OUTCOME_NOT_NOW);
	}
	place_preferred(a, &request, &placement);
	partition->cus = partition->occupied = placement.cus;
	if (a->admit_context->adaptable)
		partition->base = placement.cus;
	partition->count = placement.count;
	partition->effective = placement.effective;
	return OUTCOME_FITS;
}
