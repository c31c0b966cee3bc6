/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/attempt.h"

#include "core/hint.h"
#include "core/place.h"

enum outcome attempt_refuse(struct attempt *a, enum outcome outcome, enum reason reason,
			    uint64_t asked, uint64_t free)
{
	a->refusal->reason = reason;
	a->refusal->asked = asked;
	a->refusal->free = free;
	return outcome;
}

void admit_available(const struct gpu *gpu, enum lease_class lease_class,
		     enum isolation isolation, bool alone, struct cuset *ret)
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

static void prepare(const struct attempt *a, struct place_request *ret)
{
	const struct application *application = a->application;
	const struct want *want = a->want;
	bool realtime = application->class == CLASS_REALTIME;
	uint64_t quota = limit_of(&application->tenant->max_cus, a->gpu->cus);
	uint64_t limit = quota > a->held_cus ? quota - a->held_cus : 0;

	*ret = (struct place_request){
		.aim = a->aim,
		.floor = want->cus_min ? want->cus_min : max_u(a->aim / 10 * 9 + a->aim % 10 * 9 / 10, 1),
		.ceiling = max_u(a->aim, want->cus_max),
		.limit = limit > UINT32_MAX ? UINT32_MAX : (unsigned)limit,
		.engines = want->shader_engines,
		.exact = want->exact,
		.any_shape = want->any_shape,
		.columns = realtime,
		.few_engines = realtime,
	};
	if (want->cus_max)
		ret->limit = min_u(ret->limit, want->cus_max);
	admit_available(a->gpu, application->class, want->isolation, application->alone,
			&ret->avail);
	ret->calm = ret->avail;
	cuset_remove(&ret->calm, &a->gpu->shared);
	if (application->previous)
		for (size_t i = 0; i < application->previous->n_partitions; i++)
			if (application->previous->partitions[i].gpu == a->index)
				ret->keep = &application->previous->partitions[i].cus;
}

/* Would it fit if nobody else had any CU? */
static bool fits_empty(const struct attempt *a, const struct place_request *request)
{
	struct place_request empty = *request;

	empty.avail = empty.calm = a->gpu->all;
	return place_fits(&a->gpu->info.geometry, &empty);
}

/* Would it fit if other realtime leases did not close their engines? */
static bool fits_without_engines(const struct attempt *a, const struct place_request *request)
{
	struct place_request open = *request;

	open.engines = 0;
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

static enum outcome refuse_cus(struct attempt *a, const struct place_request *request,
			       const struct place_miss *miss)
{
	unsigned free = cuset_count(&request->avail);
	enum outcome outcome = fits_empty(a, request) ? OUTCOME_NOT_NOW : OUTCOME_NEVER;
	unsigned engines = open_engines(a->gpu, &request->avail);

	hint_cus(a->refusal, a->gpu, request, miss);
	if (outcome == OUTCOME_NOT_NOW && engines < a->want->shader_engines)
		return attempt_refuse(a, outcome, REASON_SHADER_ENGINES, a->want->shader_engines, engines);
	if (a->application->class == CLASS_REALTIME && outcome == OUTCOME_NOT_NOW &&
	    fits_without_engines(a, request))
		return attempt_refuse(a, outcome, REASON_SHADER_ENGINES, a->aim, free);
	if (free < request->floor)
		return attempt_refuse(a, outcome, REASON_CUS, a->aim, free);
	return attempt_refuse(a, outcome, REASON_SHAPE, a->aim, free);
}

enum outcome attempt_cus(struct attempt *a, struct partition *partition)
{
	struct place_request request;
	struct place_miss miss = {0};
	struct placement placement;

	prepare(a, &request);
	if (place(&a->gpu->info.geometry, &request, &placement, &miss) < 0)
		return refuse_cus(a, &request, &miss);

	partition->cus = partition->occupied = placement.cus;
	partition->count = placement.count;
	partition->effective = placement.effective;
	return OUTCOME_FITS;
}

bool attempt_cus_ever(const struct attempt *a)
{
	struct place_request request;

	prepare(a, &request);
	return fits_empty(a, &request);
}
