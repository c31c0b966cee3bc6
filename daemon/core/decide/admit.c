/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/admit.h"

#include <string.h>

#include "core/decide/borrow.h"
#include "core/decide/disturbance.h"
#include "core/decide/exclusive.h"
#include "core/ledger/waiting-queue.h"
#include "core/mask/place.h"
#include "core/policy/request.h"

/* A want on a GPU while it is being judged. */
struct candidate {
	const struct admit_context *admit_context;
	const struct want *want;
	const struct gpu *gpu;
	unsigned index;              /* of the GPU */
	const struct partition *had; /* of the lease that is resized; else NULL */
	struct cuset had_claim;      /* what that one claims */
	unsigned aim;                /* CUs asked */
	bool confined; /* to CUs that the lease has or that its tenant's floor keeps: a waiting
			* lease ranks before it for others */
	const struct floor *floor; /* of other tenants; NULL: none */
	struct cuset outside;      /* CUs that it may not have, because queues cover them */
	struct share held; /* by this user under this tenant; zero unless a quota bounds it */
	bool own; /* max-cus leaves too little without CUs that leases of the user return */
	struct refusal *refusal;
};

/* What a refusal counts: the reason and the numbers go together. */
struct shortage {
	enum reason reason;
	enum resource resource;
	uint64_t asked, free, total;
};

static enum outcome refuse(const struct candidate *a, enum outcome outcome,
			   struct shortage shortage)
{
	struct refusal *refusal = a->refusal;

	refusal->reason = shortage.reason;
	refusal->resource = shortage.resource;
	refusal->asked = shortage.asked;
	refusal->free = shortage.free;
	refusal->total = shortage.total;
	refusal->retry = outcome == OUTCOME_NOT_NOW;
	return outcome;
}

static struct shortage of_cus(const struct candidate *a, enum reason reason, uint64_t asked,
			      uint64_t free)
{
	return (struct shortage){ reason, RESOURCE_CUS, asked, free, a->gpu->cus };
}

static struct shortage of_engines(const struct candidate *a, enum reason reason, uint64_t asked,
				  uint64_t free)
{
	return (struct shortage){ reason, RESOURCE_SHADER_ENGINES, asked, free,
				  a->gpu->info.geometry.engines };
}

/* Above what the tenant allows one user. */
static enum outcome refuse_quota(const struct candidate *a, const char *key, uint64_t limit,
				 uint64_t held, struct shortage shortage)
{
	refusal_set_bound(a->refusal, key, limit, a->admit_context->tenant->name);
	a->refusal->held = held;
	a->refusal->uid = a->admit_context->uid;
	return refuse(a, OUTCOME_QUOTA, shortage);
}

/* A later check refuses for something else. */
static void forget_facts(struct refusal *refusal)
{
	char gpu[GPU_NAME_MAX];

	memcpy(gpu, refusal->gpu, sizeof(gpu));
	*refusal = (struct refusal){ 0 };
	memcpy(refusal->gpu, gpu, sizeof(gpu));
}

/* ---- CUs --------------------------------------------------------------------------- */

void admit_available(const struct gpu *gpu, enum lease_class lease_class, enum isolation isolation,
		     bool alone, struct cuset *ret)
{
	uint32_t closed = 0;

	*ret = gpu->all;
	cuset_remove(ret, &gpu->taken);
	if (isolation != ISOLATION_SHARED)
		cuset_remove(ret, &gpu->shared);

	if (alone)
		closed = cuset_engines(&gpu->taken) | cuset_engines(&gpu->shared);
	for (unsigned e = 0; e < gpu->info.geometry.engines; e++)
		if (gpu->alone[e] > 0 ||
		    (lease_class == CLASS_REALTIME &&
		     (gpu->rt_exclusive[e] > 0 ||
		      (isolation == ISOLATION_SHADER_ENGINE && gpu->rt_tolerant[e] > 0))))
			closed |= UINT32_C(1) << e;
	cuset_keep_engines(ret, ~closed);
}

/* The same, without what queues cover and what the floors of other tenants keep. */
static void available(const struct candidate *a, enum lease_class lease_class,
		      enum isolation isolation, bool alone, struct cuset *ret)
{
	struct cuset kept;

	admit_available(a->gpu, lease_class, isolation, alone, ret);
	cuset_remove(ret, &a->outside);
	if (!a->floor)
		return;
	kept = a->floor->now.cus;
	if (alone)
		gpu_add_engines(a->gpu, &kept);
	cuset_remove(ret, &kept);
}

static void find_outside(struct candidate *a, const struct partition *p)
{
	disturbance_find_cus(a->admit_context->arbiter, a->admit_context->self, p, &a->outside);
	cuset_remove(&a->outside, &a->had_claim); /* what it has, it keeps */
}

/* What a limit of CUs leaves beside those that the user holds, at most `limit`. */
static unsigned limit_by(const struct candidate *a, const struct limit *quota, unsigned held,
			 unsigned limit)
{
	return (unsigned)min_u64(beyond(limit_of(quota, a->gpu->cus), held), limit);
}

/* CUs of a base that max-fixed-cus does not count. */
static unsigned free_base(const struct candidate *a)
{
	return a->admit_context->adaptable ? quota_free_base(a->gpu) : 0;
}

/* The fewest CUs with which a quota grants it: those asked, unless cus-min says that fewer will do. */
static unsigned least_of_quota(const struct candidate *a)
{
	return a->want->cus_min && !a->want->exact ? a->want->cus_min : a->aim;
}

/* CUs asked that a best-effort lease never returns, for max-fixed-cus. */
static uint64_t fixed_cus(const struct candidate *a)
{
	if (a->admit_context->self->class != CLASS_BESTEFFORT)
		return 0;
	return beyond(a->admit_context->adaptable ? want_least_cus(a->want, a->aim)
						  : least_of_quota(a),
		      free_base(a));
}

/* CUs of the user's adaptable leases, which return them for the request, and its own before a resize. *ret_held: these, and
 * all others that count for max-cus. */
static void own_cus(const struct candidate *a, struct cuset *ret, struct cuset *ret_held)
{
	*ret = a->held.borrowed;
	if (a->had)
		cuset_add(ret, &a->had->occupied);
	*ret_held = a->held.cus;
	cuset_add(ret_held, ret);
}

/* What max-cus leaves beside these CUs. */
static unsigned max_cus_left(const struct candidate *a, const struct cuset *held)
{
	return limit_by(a, &a->admit_context->tenant->max_cus, cuset_count(held), UINT32_MAX);
}

/* Does max-cus leave too few CUs to the request, unless adaptable leases of its user return some? The resize of an
 * adaptable lease asks for a base. */
static bool takes_own(const struct candidate *a)
{
	bool base = a->had && a->admit_context->adaptable;
	unsigned asked = base ? want_least_cus(a->want, a->aim) : a->aim;

	return asked > max_cus_left(a, &a->held.cus) && !cuset_empty(&a->held.borrowed);
}

/* What the user holds for max-cus, less what its leases return for the request. */
static unsigned held_cus(const struct candidate *a)
{
	unsigned held = cuset_count(&a->held.cus);

	return a->own ? held - cuset_count(&a->held.borrowed) : held;
}

/* The upper bound of CUs: what quotas leave, and cus-max. */
static unsigned limit_cus(const struct candidate *a)
{
	const struct tenant *tenant = a->admit_context->tenant;
	unsigned limit = a->want->cus_max ? a->want->cus_max : UINT32_MAX;
	unsigned uncounted = free_base(a), fixed;

	limit = limit_by(a, &tenant->max_cus, held_cus(a), limit);
	if (a->admit_context->self->class != CLASS_BESTEFFORT)
		return limit;
	fixed = limit_by(a, &tenant->max_fixed_cus, a->held.fixed_cus, UINT32_MAX - uncounted);
	return min_u(limit, fixed + uncounted);
}

static void prepare(const struct candidate *a, struct place_request *ret)
{
	const struct admit_context *admit_context = a->admit_context;
	const struct want *want = a->want;
	bool realtime = admit_context->self->class == CLASS_REALTIME;
	struct cuset own;

	*ret = (struct place_request){
		.all = &a->gpu->all,
		.keep = a->had ? &a->had->cus : a->gpu->prefer,
		.aim = a->aim,
		.floor = want_least_cus(want, a->aim),
		.ceiling = max_u(a->aim, want->cus_max),
		.limit = limit_cus(a),
		.engines = want->shader_engines,
		.exact = want->exact,
		.any_shape = want->any_shape,
		.columns = realtime,
		.few_engines = realtime,
		.closed = gpu_engines_closed(a->gpu),
	};
	if (!a->gpu->masks_known)
		ret->floor = ret->aim;  /* all CUs: admit_aim() */
	if (admit_context->adaptable) { /* its base; without cus-min what a fixed lease gets */
		if (want->cus_min > 0)
			ret->aim = ret->floor;
		ret->ceiling = ret->aim;
		ret->few_engines = true;
		/* A claim closes its engines to requests for whole ones. */
		ret->closed |= cuset_engines(&a->gpu->taken) | cuset_engines(&a->gpu->shared);
	}
	available(a, admit_context->self->class, want->isolation, admit_context->alone,
		  &ret->avail);
	if (a->confined) {
		own = a->floor ? a->floor->own.cus : (struct cuset){ 0 };
		cuset_add(&own, &a->had_claim);
		cuset_keep(&ret->avail, &own);
	}
	ret->preferred = ret->avail;
	cuset_remove(&ret->preferred, &a->gpu->shared);
	cuset_remove(&ret->preferred, &a->gpu->lend.borrowed);
	if (want->isolation == ISOLATION_SHARED && !ret->keep)
		ret->keep = &ret->preferred; /* before CUs that others share */
}

/* How many engines the placement closes to realtime leases. */
static int closes(const struct place_request *request, const struct placement *placement)
{
	return __builtin_popcount(cuset_engines(&placement->cus) & ~request->closed);
}

/* What a fixed lease has before a resize. Until its holder acknowledges, its queues may have that and what it gets. */
static const struct partition *had_fixed(const struct candidate *a)
{
	return a->admit_context->adaptable ? NULL : a->had;
}

/* What max-fixed-cus leaves beside that. */
static unsigned fixed_cus_left(const struct candidate *a)
{
	const struct admit_context *context = a->admit_context;
	const struct partition *had = had_fixed(a);

	if (!had || context->self->class != CLASS_BESTEFFORT)
		return UINT32_MAX;
	return limit_by(a, &context->tenant->max_fixed_cus,
			a->held.fixed_cus + cuset_count(&had->occupied), UINT32_MAX);
}

/* Keeps of what is available the CUs of the user, and so many others, as evenly as they are there. */
static void keep_own(const struct candidate *a, const struct cuset *own, unsigned left,
		     struct place_request *request)
{
	const struct geometry *geometry = &a->gpu->info.geometry;
	unsigned step = geometry_step(geometry), pairs = CUSET_PAIRS;
	struct place_request others = *request;
	struct cuset kept = { 0 };

	cuset_remove(&others.avail, own);
	for (unsigned i = 0, last = 0; left >= step && i - last <= pairs; i++) {
		unsigned pair = i % pairs;

		if (!(others.avail.pair[pair] & ~kept.pair[pair]))
			continue;
		place_pick(geometry, &others, pair, 1, &kept);
		left -= step;
		last = i;
	}
	cuset_add(&kept, own);
	cuset_keep(&request->avail, &kept);
}

/* What a user holds, and what it is to get, are together no more than max-cus: so the request takes as many CUs as
 * it can that other leases of the user return first, or that a fixed lease has. false: it cannot take so many. */
static bool place_beside_own(const struct candidate *a, const struct place_request *request,
			     struct placement *placement, struct place_miss *miss)
{
	struct place_request fewer = *request;
	struct cuset own, held, beyond;
	bool counts = a->own || had_fixed(a);
	unsigned left;

	own_cus(a, &own, &held);
	left = min_u(min_u(max_cus_left(a, &held), fixed_cus_left(a)), a->gpu->cus);
	fewer.keep = a->own ? &own : request->keep;
	while (place(&a->gpu->info.geometry, &fewer, placement, miss) >= 0) {
		beyond = placement->cus;
		cuset_remove(&beyond, &own);
		if (!counts || cuset_count(&beyond) <= left)
			return true;
		if (request->any_shape)
			break; /* the most is found below */
		fewer.limit = placement->count - 1;
	}
	/* place() may prefer a larger rectangle to one of returned CUs alone. */
	fewer = *request;
	keep_own(a, &own, left, &fewer);
	return counts && place(&a->gpu->info.geometry, &fewer, placement, miss) >= 0;
}

/* Finds a placement within these CUs. false: none has as many CUs as the present one. */
static bool place_within(const struct candidate *a, const struct place_request *request,
			 const struct cuset *cus, const struct placement *present,
			 struct placement *ret)
{
	struct place_request within = *request;

	cuset_keep(&within.avail, cus);
	return place_beside_own(a, &within, ret, NULL) && ret->count >= present->count;
}

/* A resize stays on what the lease has, or else on what it claims already, and of that on what borrowers have returned, if
 * as many CUs fit there. */
static bool place_on_own(const struct candidate *a, const struct place_request *request,
			 struct placement *placement)
{
	struct placement own;
	struct cuset cus = a->had->occupied, returned;
	bool fits = place_within(a, request, &cus, placement, &own);

	if (!fits && !cuset_empty(&a->had->resize)) {
		cuset_add(&cus, &a->had_claim);
		returned = cus;
		cuset_remove(&returned, &a->gpu->lend.borrowed);
		fits = place_within(a, request, &returned, placement, &own) ||
		       place_within(a, request, &cus, placement, &own);
	}
	if (fits)
		*placement = own;
	return fits;
}

/* Of placements with as many CUs prefers the one that reclaims nothing from borrowers. */
static void place_preferred(const struct candidate *a, const struct place_request *request,
			    struct placement *placement)
{
	struct placement other;
	struct cuset cus = request->avail;

	if (a->had && place_on_own(a, request, placement))
		return;
	if (a->own || !cuset_overlap(&placement->cus, &a->gpu->lend.borrowed))
		return;
	cuset_remove(&cus, &a->gpu->lend.borrowed);
	if (place_within(a, request, &cus, placement, &other) &&
	    !(request->few_engines && closes(request, &other) > closes(request, placement)))
		*placement = other;
}

/* Would the request fit if realtime leases did not close their engines to it? */
static bool fits_without_engines(const struct candidate *a, const struct place_request *request)
{
	struct place_request open = *request;

	available(a, CLASS_GUARANTEED, ISOLATION_CU, false, &open.avail);
	return place_fits(&a->gpu->info.geometry, &open);
}

/* Engines that have an available CU on every XCC. */
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

/* The fewest engines that hold the CUs asked for. */
static unsigned engines_for(const struct candidate *a)
{
	unsigned one = place_engines_aim(&a->gpu->info.geometry, &a->gpu->all, 1);

	if (a->want->shader_engines > 0 || one == 0)
		return a->want->shader_engines;
	return (a->aim + one - 1) / one;
}

/* A want of whole engines, which does not bound its CUs, too. */
static bool wants_whole_engines(const struct want *want)
{
	return want->shader_engines > 0 && want->cus == 0 && want->cus_min == 0 &&
	       want->cus_max == 0;
}

/* The most whole engines that would fit, n at most. */
static unsigned engines_that_fit(const struct candidate *a, const struct place_request *request,
				 unsigned n)
{
	const struct geometry *geometry = &a->gpu->info.geometry;
	struct place_request fewer = *request;

	for (; n > 0; n--) {
		fewer.engines = n;
		fewer.aim = fewer.ceiling = place_engines_aim(geometry, &a->gpu->all, n);
		fewer.floor = fewer.aim - fewer.aim / 10;
		if (place_fits(geometry, &fewer))
			break;
	}
	return n;
}

static enum outcome refuse_cus(struct candidate *a, const struct place_request *request,
			       const struct place_miss *miss, enum outcome outcome)
{
	unsigned free = cuset_count(&request->avail);
	unsigned engines = open_engines(a->gpu, &request->avail);
	bool few = free < (request->exact ? request->aim : request->floor);

	refusal_set_fits(a->refusal, RESOURCE_CUS, miss->below, miss->above);
	if (wants_whole_engines(a->want)) {
		engines = engines_that_fit(a, request, min_u(engines, a->want->shader_engines));
		if (engines > 0)
			refusal_set_fits(a->refusal, RESOURCE_SHADER_ENGINES, engines, 0);
	}
	if (engines < a->want->shader_engines)
		return refuse(
			a, outcome,
			of_engines(a, REASON_SHADER_ENGINES, a->want->shader_engines, engines));
	if (a->admit_context->self->class == CLASS_REALTIME && outcome == OUTCOME_NOT_NOW &&
	    fits_without_engines(a, request))
		return refuse(a, outcome,
			      of_engines(a, REASON_SHADER_ENGINES, engines_for(a), engines));
	return refuse(a, outcome, of_cus(a, few ? REASON_CUS : REASON_SHAPE, a->aim, free));
}

/* Names the tenants whose floors keep what the request lacks. */
static enum outcome refuse_floor(struct candidate *a, enum outcome outcome, const char *key,
				 uint64_t tenants, uint64_t kept, struct shortage shortage)
{
	shortage.reason = REASON_FLOOR;
	refusal_set_bound(a->refusal, key, kept, "");
	floor_names(a->admit_context->arbiter->settings, tenants, a->refusal->tenant,
		    sizeof(a->refusal->tenant));
	return refuse(a, outcome, shortage);
}

static const char *key_of_floor(const struct candidate *a, uint64_t tenants)
{
	const struct settings *settings = a->admit_context->arbiter->settings;

	return floor_first(settings, tenants)->reserved_engines > 0 ? "reserved-shader-engines"
								    : "reserved-cus";
}

/* CUs do not fit. Would they without the floors of other tenants? */
static enum outcome refuse_cus_or_floor(struct candidate *a, const struct place_request *request,
					const struct place_miss *miss, const struct reserved *kept,
					enum outcome outcome)
{
	struct place_request open = *request;

	if (!kept || !kept->cus_of)
		return refuse_cus(a, request, miss, outcome);
	cuset_add(&open.avail, &kept->cus);
	if (!place_fits(&a->gpu->info.geometry, &open))
		return refuse_cus(a, request, miss, outcome);
	refusal_set_fits(a->refusal, RESOURCE_CUS, miss->below, miss->above);
	return refuse_floor(a, outcome, key_of_floor(a, kept->cus_of), kept->cus_of,
			    cuset_count(&kept->cus),
			    of_cus(a, REASON_FLOOR, a->aim, cuset_count(&request->avail)));
}

/* Would the CUs fit if the GPU were empty, or do they now but for
 * a barrier? OUTCOME_FITS, or OUTCOME_NEVER with the refusal. */
static enum outcome admit_cus_ever(struct candidate *a)
{
	struct candidate open = *a;
	struct place_request request;
	struct place_miss miss = { 0 };
	struct placement placement;
	struct reserved kept = { 0 };

	open.confined = false;
	prepare(&open, &request);
	if (a->floor && place_fits(&a->gpu->info.geometry, &request))
		return OUTCOME_FITS; /* beside tenants that hold their floors */
	if (a->floor)
		floor_find_ever(a->admit_context->arbiter->settings, a->gpu,
				a->admit_context->tenant, &kept);
	request.avail = a->gpu->all;
	cuset_remove(&request.avail, &kept.cus);
	open.held = (struct share){ 0 };
	open.own = false;
	request.limit = limit_cus(&open);
	if (place_fits(&a->gpu->info.geometry, &request) ||
	    place(&a->gpu->info.geometry, &request, &placement, &miss) == 0)
		return OUTCOME_FITS;
	forget_facts(a->refusal);
	return refuse_cus_or_floor(a, &request, &miss, &kept, OUTCOME_NEVER);
}

/* CUs do not fit: so many are free. Would they without the queues that cover them? */
static bool refuse_outside(struct candidate *a, unsigned free)
{
	struct candidate open = *a;
	struct place_request request;

	if (cuset_empty(&a->outside))
		return false;
	open.outside = (struct cuset){ 0 };
	prepare(&open, &request);
	if (!place_fits(&a->gpu->info.geometry, &request))
		return false;
	forget_facts(a->refusal);
	cover_name(a->admit_context->arbiter, a->index, a->admit_context->self, &a->gpu->all,
		   a->refusal);
	refuse(a, OUTCOME_NOT_NOW, of_cus(a, REASON_UNMASKED, a->aim, free));
	return true;
}

/* Quotas, beside what leases of the user return and what the lease has before a resize, do not hold the request. */
static enum outcome refuse_own(struct candidate *a, unsigned fit)
{
	const struct tenant *tenant = a->admit_context->tenant;
	struct cuset own, held;
	bool fixed;

	own_cus(a, &own, &held);
	fixed = fixed_cus_left(a) < max_cus_left(a, &held);
	refusal_set_fits(a->refusal, RESOURCE_CUS, fit, 0);
	return refuse_quota(
		a, fixed ? "max-fixed-cus" : "max-cus",
		limit_of(fixed ? &tenant->max_fixed_cus : &tenant->max_cus, a->gpu->cus),
		fixed ? a->held.fixed_cus : cuset_count(&a->held.cus),
		of_cus(a, REASON_QUOTA, a->aim, fit));
}

/* CUs of leases that do not return them in time are taken only if no others will do. */
static bool place_in_time(const struct candidate *a, const struct place_request *request,
			  struct placement *placement, struct place_miss *miss)
{
	struct place_request others = *request;

	cuset_remove(&others.avail, &a->gpu->lend.late);
	return (cuset_overlap(&request->avail, &a->gpu->lend.late) &&
		place_beside_own(a, &others, placement, miss)) ||
	       place_beside_own(a, request, placement, miss);
}

/* The most CUs that it can take so. */
static unsigned most_beside_own(const struct candidate *a, const struct place_request *request)
{
	struct place_request fewer = *request;
	struct placement placement;

	fewer.floor = 1;
	fewer.exact = false;
	fewer.limit = fewer.ceiling = min_u(request->limit, request->aim);
	return place_beside_own(a, &fewer, &placement, NULL) ? placement.count : 0;
}

/* Engines of the other leases of the user, and those that a fixed lease may leave. */
static uint32_t held_engines(const struct candidate *a)
{
	const struct partition *had = had_fixed(a);

	return a->held.engines | (had ? cuset_engines(&had->occupied) : 0);
}

/* The same within the engines that max-shader-engines leaves; of a resize, in those that count already, too. */
static enum outcome place_within_engines(struct candidate *a, const struct place_request *request,
					 struct placement *placement)
{
	const struct tenant *tenant = a->admit_context->tenant;
	uint32_t engines = held_engines(a);
	unsigned has = (unsigned)__builtin_popcount(engines);
	uint64_t most = limit_of(&tenant->max_engines, a->gpu->info.geometry.engines);
	struct place_request within = *request;
	struct place_miss miss = { 0 };

	quota_keep_engines(tenant, a->gpu, engines, &within.avail);
	if (place_beside_own(a, &within, placement, &miss))
		return OUTCOME_FITS;
	refusal_set_fits(a->refusal, RESOURCE_CUS, miss.below, 0);
	return refuse_quota(a, "max-shader-engines", most, has,
			    of_engines(a, REASON_QUOTA, engines_for(a), beyond(most, has)));
}

static bool has_too_many_engines(const struct candidate *a, const struct placement *placement)
{
	const struct limit *limit = &a->admit_context->tenant->max_engines;
	uint32_t engines = cuset_engines(&placement->cus) | held_engines(a);

	return limit->kind != LIMIT_NONE && (unsigned)__builtin_popcount(engines) >
						    limit_of(limit, a->gpu->info.geometry.engines);
}

/* Finds the CUs. Everything else has been judged. */
static enum outcome admit_cus(struct candidate *a, struct partition *partition)
{
	struct place_request request;
	struct place_miss miss = { 0 };
	struct placement placement;

	prepare(a, &request);
	if (!place_in_time(a, &request, &placement, &miss)) {
		if (admit_cus_ever(a) != OUTCOME_FITS)
			return OUTCOME_NEVER;
		if (refuse_outside(a, cuset_count(&request.avail)))
			return OUTCOME_NOT_NOW;
		if (a->own || (had_fixed(a) && place_fits(&a->gpu->info.geometry, &request)))
			return refuse_own(a, most_beside_own(a, &request));
		if (a->confined)
			a->refusal->behind = a->gpu->barrier.rank.id;
		return refuse_cus_or_floor(a, &request, &miss, a->floor ? &a->floor->now : NULL,
					   OUTCOME_NOT_NOW);
	}
	place_preferred(a, &request, &placement);
	if (has_too_many_engines(a, &placement) &&
	    place_within_engines(a, &request, &placement) != OUTCOME_FITS)
		return OUTCOME_QUOTA;
	partition->cus = partition->occupied = placement.cus;
	partition->count = placement.count;
	partition->effective = placement.effective;
	return OUTCOME_FITS;
}

/* ---- budgets --------------------------------------------------------------------- */

/* With oversubscribe-besteffort a best-effort lease may take more slots than the GPU has, unless a floor
 * keeps slots there. A realtime lease on the GPU forbids it only until that lease ends. */
static bool may_oversubscribe_ever(const struct candidate *a)
{
	const uint64_t *kept = a->floor ? a->floor->ever.of : NULL;

	return a->admit_context->arbiter->settings->oversubscribe_besteffort &&
	       a->admit_context->self->class == CLASS_BESTEFFORT &&
	       !(kept && (kept[RESOURCE_QUEUES] || kept[RESOURCE_PROCESSES]));
}

static bool may_oversubscribe(const struct candidate *a)
{
	return may_oversubscribe_ever(a) && a->gpu->n_realtime == 0;
}

/* Names what is in the way beside leases. Would the resource suffice without unmanaged processes? */
static enum reason name_users(const struct candidate *a, enum resource resource, uint64_t kept,
			      uint64_t total, enum reason reason)
{
	const struct gpu *gpu = a->gpu;
	uint64_t leased = gpu->charged.of[resource] + gpu->observed.excess.of[resource];

	if (a->want->budget.of[resource] + leased + kept <= total)
		reason = REASON_UNMANAGED;
	if (resource == RESOURCE_QUEUES)
		a->refusal->reserved = gpu->reserve_queues;
	if (resource == RESOURCE_QUEUES || resource == RESOURCE_PROCESSES)
		gpu_name_processes(gpu, a->refusal);
	if (resource == RESOURCE_VRAM && reason == REASON_UNMANAGED)
		gpu_name_vram_users(gpu, a->refusal);
	return reason;
}

/* has: what leases may have of a countable resource; ever: were the GPU empty. */
static enum outcome admit_budget(struct candidate *a, enum resource resource, uint64_t has,
				 bool ever)
{
	static const enum reason reasons[BUDGETS] = {
		[RESOURCE_QUEUES] = REASON_QUEUES,
		[RESOURCE_PROCESSES] = REASON_PROCESSES,
		[RESOURCE_SDMA_QUEUES] = REASON_SDMA,
		[RESOURCE_SDMA_XGMI_QUEUES] = REASON_SDMA_XGMI,
		[RESOURCE_VRAM] = REASON_VRAM,
		[RESOURCE_COOPERATIVE_QUEUES] = REASON_COOPERATIVE,
	};
	const enum outcome outcome = ever ? OUTCOME_NEVER : OUTCOME_NOT_NOW;
	const struct floor *floor = a->floor;
	uint64_t asked = a->want->budget.of[resource];
	uint64_t kept = floor ? (ever ? &floor->ever : &floor->now.slots)->budget.of[resource] : 0;
	struct shortage shortage = { reasons[resource], resource, asked, beyond(has, kept), 0 };

	if (asked <= shortage.free || (a->had && asked <= a->had->charged.of[resource]))
		return OUTCOME_FITS;
	shortage.total = gpu_for_leases(a->gpu).of[resource];
	refusal_set_fits(a->refusal, resource, shortage.free, 0);
	if (asked <= has)
		return refuse_floor(a, outcome,
				    resource == RESOURCE_QUEUES ? "reserved-queues"
								: "reserved-processes",
				    floor->ever.of[resource], kept, shortage);
	if (!ever)
		shortage.reason = name_users(a, resource, kept, shortage.total, shortage.reason);
	return refuse(a, outcome, shortage);
}

static enum outcome admit_each(struct candidate *a, const struct budget *has, bool ever)
{
	enum outcome outcome = OUTCOME_FITS;

	for (unsigned r = 0; r < BUDGETS && outcome == OUTCOME_FITS; r++)
		outcome = admit_budget(a, r, has->of[r], ever);
	return outcome;
}

/* More than the GPU has in all: checked before anything that may change. */
static enum outcome admit_total(struct candidate *a)
{
	struct budget all = gpu_for_leases(a->gpu);

	if (may_oversubscribe_ever(a))
		all.queues = all.processes = UINT64_MAX;
	return admit_each(a, &all, true);
}

static enum outcome admit_budgets(struct candidate *a)
{
	struct budget free = gpu_free_beside(a->gpu, a->had);

	if (may_oversubscribe(a))
		free.queues = free.processes = UINT64_MAX;
	return admit_each(a, &free, false);
}

/* ---- quota ----------------------------------------------------------------------- */

/* A resize that asks for no more of anything than the lease has. */
static bool only_gives(const struct candidate *a)
{
	const struct partition *had = a->had;
	const struct want *want = a->want;
	unsigned has, asks = max_u(a->aim, want->cus_max);

	if (!had)
		return false;
	has = had->count;
	if (had->adaptation) { /* borrowed CUs are not claimed */
		has = max_u(cuset_count(&had->adaptation->base), cuset_count(&had->resize));
		asks = want->cus_min;
	}
	return asks <= has && budget_within(&want->budget, &had->charged);
}

/* The most CUs that quotas leave and that a mask can have: on the GPU as it is now, or else on an empty one. */
static unsigned most_within_quota(const struct candidate *a)
{
	struct place_request request;
	unsigned most;

	if (!a->gpu->masks_known || limit_cus(a) == 0)
		return 0;
	prepare(a, &request);
	if (wants_whole_engines(a->want))
		request.engines = 0;
	most = most_beside_own(a, &request);
	if (most > 0)
		return most;
	request.avail = request.preferred = a->gpu->all;
	return most_beside_own(a, &request);
}

static enum outcome admit_quota(struct candidate *a)
{
	const struct tenant *tenant = a->admit_context->tenant;
	const struct want *want = a->want;
	/* In the order of quota_parts(). */
	const uint64_t asked[QUOTA_PARTS] = {
		least_of_quota(a), want->queues, want->processes,
		want->vram,        fixed_cus(a), want->shader_engines
	};
	struct quota_part parts[QUOTA_PARTS];

	quota_parts(a->gpu, &a->held, parts);
	parts[0].held = held_cus(a); /* max-cus */
	for (unsigned i = 0; i < QUOTA_PARTS; i++) {
		uint64_t limit = limit_of(tenant_limit(tenant, QUOTA_FIRST + i), parts[i].total);
		uint64_t left = beyond(limit, parts[i].held);
		bool memory = parts[i].resource == RESOURCE_VRAM;

		/* Memory that was never asked for counts as well. */
		if (asked[i] <= left && (!memory || parts[i].held <= limit || only_gives(a)))
			continue;
		a->refusal->by_default = memory && want->default_vram;
		refusal_set_fits(a->refusal, parts[i].resource,
				 parts[i].resource == RESOURCE_CUS ? most_within_quota(a) : left,
				 0);
		return refuse_quota(a, tenant_limits[QUOTA_FIRST + i].key, limit, parts[i].held,
				    (struct shortage){ REASON_QUOTA, parts[i].resource, asked[i],
						       left, parts[i].total });
	}
	return OUTCOME_FITS;
}

static enum outcome admit_gpu(struct candidate *a)
{
	const struct tenant *tenant = a->admit_context->tenant;

	if (tenant_allows_gpu(tenant, a->gpu->info.name))
		return OUTCOME_FITS;
	refusal_set_bound(a->refusal, "only-gpus", 0, tenant->name);
	return refuse(a, OUTCOME_NEVER, (struct shortage){ .reason = REASON_POLICY });
}

/* ---- all checks ------------------------------------------------------------------ */

/* A waiting lease that was passed LEASE_PASSES_MAX times on this GPU ranks before the request. */
static bool is_barred(const struct candidate *a)
{
	const struct admit_context *context = a->admit_context;
	struct rank rank = lease_rank(context->self);

	if (context->previous) /* a lease that is resized, behind all of its class */
		rank.turn = UINT64_MAX;
	return a->gpu->barrier.rank.id && queue_before(&a->gpu->barrier.rank, &rank);
}

static enum outcome refuse_oversubscribed(struct candidate *a)
{
	const struct gpu *gpu = a->gpu;
	uint64_t queues = max_u64(gpu->observed.used.queues, gpu_promised(gpu, RESOURCE_QUEUES));
	uint64_t processes = max_u64(gpu->observed.used.processes,
				     gpu_promised(gpu, RESOURCE_PROCESSES));
	struct shortage shortage = { REASON_OVERSUBSCRIBED, RESOURCE_QUEUES, a->want->queues, 0,
				     gpu->info.queue_slots };

	a->refusal->held = queues;
	if (queues <= gpu->info.queue_slots) {
		shortage.resource = RESOURCE_PROCESSES;
		shortage.asked = a->want->processes;
		shortage.total = gpu->info.process_slots;
		a->refusal->held = processes;
	}
	gpu_name_processes(gpu, a->refusal);
	return refuse(a, OUTCOME_NOT_NOW, shortage);
}

static enum outcome admit_exclusive(struct candidate *a)
{
	const struct admit_context *context = a->admit_context;

	if (a->had || context->adaptable || context->inactive ||
	    !exclusive_refuses(context->arbiter, a->index, NULL, context->exclusive, a->refusal))
		return OUTCOME_FITS;
	return refuse(a, OUTCOME_NOT_NOW, (struct shortage){ .reason = REASON_EXCLUSIVE });
}

static enum outcome admit_graphics(struct candidate *a)
{
	const struct admit_context *context = a->admit_context;

	if (a->had || !disturbance_draws(context->arbiter, a->index, context->self, a->refusal))
		return OUTCOME_FITS;
	return refuse(a, OUTCOME_NOT_NOW, (struct shortage){ .reason = REASON_GRAPHICS });
}

/* What the floor of its own tenant keeps can be granted at any time. */
static bool is_within_floor(const struct candidate *a)
{
	const struct reserved *own = a->floor ? &a->floor->own : NULL;

	return own && a->aim <= cuset_count(&own->cus) &&
	       budget_within(&a->want->budget, &own->slots.budget);
}

static enum outcome admit_state(struct candidate *a)
{
	const struct gpu *gpu = a->gpu;

	a->confined = is_barred(a);
	if (only_gives(a))
		return OUTCOME_FITS;
	if (gpu->draining)
		return refuse(a, OUTCOME_NOT_NOW, of_cus(a, REASON_DRAIN, a->aim, 0));
	if (gpu->reset_until_usec > 0)
		return refuse(a, OUTCOME_NOT_NOW, (struct shortage){ .reason = REASON_RESET });
	if (gpu->observed.oversubscribed && !may_oversubscribe(a))
		return refuse_oversubscribed(a);
	if (a->confined && !is_within_floor(a)) {
		a->refusal->behind = gpu->barrier.rank.id;
		return refuse(a, OUTCOME_NOT_NOW, of_cus(a, REASON_CUS, a->aim, 0));
	}
	return OUTCOME_FITS;
}

/* The engines that are asked for have fewer CUs than cus-min, or more than cus-max. */
static enum outcome refuse_bound(struct candidate *a, const char *key, unsigned value)
{
	refusal_set_bound(a->refusal, key, a->aim, "");
	refusal_set_fits(a->refusal, RESOURCE_CUS, a->aim, 0);
	return refuse(a, OUTCOME_NEVER, of_cus(a, REASON_SHAPE, value, a->aim));
}

/* It is less than one CU of this GPU. */
static enum outcome refuse_percent(struct candidate *a, unsigned percent)
{
	refusal_set_bound(a->refusal, "cus-percent", a->gpu->cus, "");
	return refuse(a, OUTCOME_NEVER, of_cus(a, REASON_SHAPE, percent, 0));
}

static enum outcome admit_aim(struct candidate *a)
{
	const struct geometry *geometry = &a->gpu->info.geometry;
	const struct want *want = a->want;

	a->aim = want->cus ? want->cus
			   : place_engines_aim(geometry, &a->gpu->all, want->shader_engines);
	if (want->shader_engines > geometry->engines) {
		refusal_set_fits(a->refusal, RESOURCE_SHADER_ENGINES, geometry->engines, 0);
		return refuse(a, OUTCOME_NEVER,
			      of_engines(a, REASON_SHADER_ENGINES, want->shader_engines,
					 geometry->engines));
	}
	if (!a->gpu->masks_known && a->aim < a->gpu->cus) {
		refusal_set_fits(a->refusal, RESOURCE_CUS, 0, a->gpu->cus);
		return refuse(a, OUTCOME_NEVER, of_cus(a, REASON_MASK, a->aim, 0));
	}
	if (want->cus_min > a->aim)
		return refuse_bound(a, "cus-min", want->cus_min);
	if (want->cus_max && want->cus_max < a->aim)
		return refuse_bound(a, "cus-max", want->cus_max);
	a->own = takes_own(a);
	return OUTCOME_FITS;
}

static void fill(const struct candidate *a, struct partition *ret)
{
	const struct want *want = a->want;
	unsigned asked = max_u(a->aim, min_u(want->cus_max, a->gpu->cus));

	*ret = (struct partition){
		.gpu = a->index,
		/* An adaptable lease borrows up to it, and no more than there is. */
		.asked = a->admit_context->adaptable ? min_u(asked, a->gpu->cus) : asked,
		.granted = want->budget,
		.streams = want->streams,
		.priority = want->priority,
		.isolation = want->isolation,
		.alone = a->admit_context->alone,
		.exclusive = a->admit_context->exclusive,
		.any_shape = want->any_shape,
	};
	ret->charged = ret->granted;
}

enum outcome admit(const struct admit_context *admit_context, const struct want *want, unsigned gpu,
		   struct partition *ret, struct refusal *ret_refusal)
{
	static enum outcome (*const steps[])(struct candidate *) = {
		admit_gpu,   admit_aim,       admit_quota,    admit_total,
		admit_state, admit_exclusive, admit_graphics, admit_budgets,
	};
	struct candidate a = {
		.admit_context = admit_context,
		.want = want,
		.gpu = &admit_context->arbiter->gpus[gpu],
		.index = gpu,
		.had = admit_context->previous ? lease_partition_on(admit_context->previous, gpu)
					       : NULL,
		.refusal = ret_refusal,
	};
	struct partition partition;
	enum outcome outcome;
	struct want whole;

	if (a.had)
		a.had_claim = partition_claim(a.had);
	*ret_refusal = (struct refusal){ 0 };
	memcpy(ret_refusal->gpu, a.gpu->info.name, sizeof(ret_refusal->gpu));
	if (want_has_percent(want)) {
		want_resolve_percent(want, a.gpu->cus, &whole);
		a.want = &whole;
		if (want->cus_percent > 0 && whole.cus == 0)
			return refuse_percent(&a, want->cus_percent);
	}
	if (admit_context->shares)
		a.held = admit_context->shares[gpu];
	if (admit_context->floors)
		a.floor = &admit_context->floors[gpu];
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		outcome = steps[i](&a);

		/* What an empty GPU would refuse as well can never be granted. */
		if (outcome == OUTCOME_NOT_NOW && admit_cus_ever(&a) != OUTCOME_FITS)
			return OUTCOME_NEVER;
		if (outcome != OUTCOME_FITS)
			return outcome;
	}
	fill(&a, &partition);
	find_outside(&a, &partition);
	outcome = admit_cus(&a, &partition);
	if (outcome == OUTCOME_FITS)
		*ret = partition;
	return outcome;
}
