/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/divide.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/decide/exclusive.h"
#include "core/decide/floor.h"
#include "core/layout/columns.h"
#include "core/ledger/lease.h"
#include "core/mask/place.h"

/* Layouts until no base may move any more. */
#define TRIES 6U

/* ---- targets ------------------------------------------------------------------------------ */

static void set_target(struct division *d, struct grower *grower, const struct cuset *target)
{
	cuset_add(&d->left, &grower->target);
	cuset_remove(&d->left, target);
	grower->target = *target;
}

/* What the quota leaves to the lease beside the targets of the other leases of its user. */
static unsigned most_of(const struct division *d, const struct grower *grower)
{
	uint64_t most = grower->quota;

	if (grower->quota == UINT_MAX)
		return grower->cap;
	for (size_t i = 0; i < d->n; i++)
		if (&d->growers[i] != grower && share_quota_is_common(&d->growers[i], grower)) {
			unsigned target = cuset_count(&d->growers[i].target);

			most += d->growers[i].held;
			most = most > target ? most - target : 0;
		}
	return most < grower->cap ? (unsigned)most : grower->cap;
}

static void extend_target(struct division *d, struct grower *grower, unsigned cus)
{
	const struct gpu *gpu = d->gpu;
	struct place_request request = { .all = &gpu->all,
					 .base = &grower->target,
					 .avail = d->left,
					 .preferred = d->left,
					 .keep = &grower->p->adaptation->before,
					 .ceiling = min_u(cus, most_of(d, grower)) };
	struct cuset target;

	if (cuset_count(&grower->target) >= request.ceiling || cuset_empty(&d->left))
		return;
	cuset_remove(&request.preferred, &gpu->taken);
	place_around(&gpu->info.geometry, &request, &target);
	set_target(d, grower, &target);
}

/* Gives a lease exactly what it had before it shrank, if that is free. */
static bool restore(struct division *d, struct grower *grower)
{
	const struct cuset *before = &grower->p->adaptation->before;
	struct cuset avail = d->left;

	cuset_add(&avail, &grower->target);
	if (cuset_empty(before) || !cuset_within(&grower->target, before) ||
	    !cuset_within(before, &avail) || cuset_count(before) > most_of(d, grower))
		return false;
	set_target(d, grower, before);
	return true;
}

static int by_level(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;
	uint64_t x = (uint64_t)cuset_count(&a->has) * max_u(b->share, 1);
	uint64_t y = (uint64_t)cuset_count(&b->has) * max_u(a->share, 1);

	if (x != y)
		return x < y ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

/* No lease loses CUs: first all have their shares, if they can; then the rest is given away. */
static void extend_all(struct division *d)
{
	d->left = d->pool;
	qsort(d->growers, d->n, sizeof(*d->growers), by_level);
	for (size_t i = 0; i < d->n; i++) {
		d->growers[i].target = d->growers[i].has;
		cuset_remove(&d->left, &d->growers[i].has);
	}
	for (size_t i = 0; i < d->n; i++)
		d->growers[i].restored = restore(d, &d->growers[i]);
	for (size_t i = 0; i < 2 * d->n; i++) {
		struct grower *grower = &d->growers[i % d->n];

		if (!grower->restored && !grower->keeps)
			extend_target(d, grower, i < d->n ? grower->share : grower->cap);
	}
}

/* ---- all leases anew ---------------------------------------------------------------------- */

/* A layout of the growers that take part in it. */
struct plan {
	struct division *division;
	const struct cuset *spare;
	struct cuset own, pool, idle; /* CUs that nobody lends; all; those that no grower has */
	bool may_rebase, may_gain;    /* bases on idle CUs, too */
	enum column_match match;
	struct columns columns;
	struct layout layout;
	struct grower **growers;            /* of the terms */
	const struct cuset **held, **bases; /* bases: of leases whose bases do not move */
};

/* A shader engine where no base moves to, with the fewest claimed CUs: policy has realtime leases, which
 * take whole engines. */
static void find_spare(const struct division *d, struct cuset *ret)
{
	const struct geometry *geometry = &d->gpu->info.geometry;
	const struct settings *settings = d->arbiter->settings;
	unsigned best = 0, fewest = UINT_MAX;
	size_t i = 0;

	*ret = (struct cuset){ 0 };
	while (i < settings->n_tenants && settings->tenants[i].class != CLASS_REALTIME)
		i++;
	if (i == settings->n_tenants || geometry->engines == 1)
		return;
	for (unsigned e = 0; e < geometry->engines; e++) {
		struct cuset taken = d->gpu->taken;
		unsigned claimed;

		cuset_keep_engines(&taken, UINT32_C(1) << e);
		claimed = cuset_count(&taken);
		if (claimed < fewest)
			best = e;
		fewest = min_u(claimed, fewest);
	}
	*ret = d->gpu->all;
	cuset_keep_engines(ret, UINT32_C(1) << best);
}

/* Does max-shader-engines, which counts the engines of the base, allow fewer than the GPU has? Then the base stays within
 * them. */
static bool counts_engines(const struct division *d, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(d->arbiter->settings, lease->tenant);
	unsigned engines = d->gpu->info.geometry.engines;

	return tenant && limit_of(&tenant->max_engines, engines) < engines;
}

/* Where the base of a lease may be: within the CUs that it has now, and with may_gain on idle ones. */
static void find_base_room(const struct plan *plan, const struct grower *grower, struct cuset *ret)
{
	struct cuset within = grower->begins ? plan->pool : grower->has;

	*ret = grower->p->adaptation->base;
	if (!plan->may_rebase || grower->anchored)
		return;
	admit_available(plan->division->gpu, grower->lease->class, grower->p->isolation, false,
			ret);
	cuset_remove(ret, plan->spare);
	cuset_remove(ret, &plan->division->kept);
	if (counts_engines(plan->division, grower->lease))
		cuset_keep_engines(ret, cuset_engines(&grower->p->adaptation->base));
	cuset_add(ret, &grower->p->adaptation->base);
	if (plan->may_gain && grower->grows)
		cuset_add(&within, &plan->idle);
	cuset_keep(ret, &within);
}

/* May its base be on CUs that it gets? It keeps the CUs of the present one until then. */
static bool may_gain_base(const struct plan *plan, const struct grower *grower)
{
	if (!grower->grows || cuset_count(&grower->target) <= grower->p->count)
		return false;
	for (size_t i = 0; i < plan->layout.n; i++)
		if (plan->growers[i] != grower &&
		    cuset_overlap(&plan->growers[i]->target, &grower->p->adaptation->base))
			return false;
	return true;
}

/* Finds a base within the target, on CUs that the lease has if there is room. false: there is none. */
static bool find_base(const struct plan *plan, struct grower *grower)
{
	const struct gpu *gpu = plan->division->gpu;
	struct place_request request = { .all = &gpu->all,
					 .aim = grower->base,
					 .floor = grower->base,
					 .ceiling = grower->base,
					 .limit = grower->base,
					 .exact = true };
	struct placement placement;

	grower->rebase = (struct cuset){ 0 };
	if (cuset_within(&grower->p->adaptation->base, &grower->target))
		return true;
	find_base_room(plan, grower, &request.avail);
	cuset_keep(&request.avail, &grower->target);
	request.preferred = request.avail;
	if (!grower->begins)
		cuset_keep(&request.preferred, &grower->has);
	if (!may_gain_base(plan, grower))
		request.avail = request.preferred;
	if (place(&gpu->info.geometry, &request, &placement, NULL) < 0 ||
	    placement.effective != placement.count)
		return false;
	grower->rebase = placement.cus;
	return true;
}

/* Leases that cannot be laid out keep their masks. */
static void find_room(struct plan *plan)
{
	struct division *d = plan->division;
	struct column_order order = { .match = plan->match,
				      .all = &d->gpu->all,
				      .own = &plan->own,
				      .pool = &plan->pool,
				      .bases = plan->bases,
				      .held = plan->held };
	struct cuset lent = d->gpu->taken;
	size_t n = 0;

	plan->pool = d->pool;
	for (size_t i = 0; i < d->n; i++) {
		struct grower *grower = &d->growers[i];

		grower->target = grower->has;
		grower->rebase = (struct cuset){ 0 };
		cuset_remove(&lent, &grower->p->adaptation->base);
		if (grower->fixed) {
			cuset_remove(&plan->pool, &grower->has);
			continue;
		}
		if (grower->anchored)
			plan->bases[order.n_bases++] = &grower->p->adaptation->base;
		plan->held[order.n_held++] = &grower->has;
		plan->growers[n++] = grower;
	}
	plan->layout.n = n;
	plan->idle = plan->pool;
	for (size_t i = 0; i < n; i++)
		cuset_remove(&plan->idle, &plan->growers[i]->has);
	plan->own = plan->pool;
	cuset_remove(&plan->own, &lent);
	cuset_remove(&plan->own, plan->spare);
	columns_init(&plan->columns, &d->gpu->info.geometry, &order);
	plan->layout.n_columns = plan->columns.n;
	plan->layout.n_xccs = d->gpu->info.geometry.xccs;
	columns_count(&plan->columns, &plan->pool, plan->layout.free);
}

/* false: a lease cannot be laid out. */
static bool set_terms(struct plan *plan)
{
	const struct rect whole = { UINT32_MAX, UINT_MAX };
	unsigned unit = columns_unit(&plan->columns);
	struct cuset room;
	bool all = true;

	for (size_t i = 0; i < plan->layout.n; i++) {
		struct grower *grower = plan->growers[i];
		struct layout_term *term = &plan->layout.terms[i];

		*term = (struct layout_term){
			.least = grower->base / unit,
			.most = min_u(grower->cap, plan->division->gpu->cus) / unit,
			.share = grower->share * LAYOUT_UNIT / unit,
		};
		if (!grower->begins)
			columns_count(&plan->columns, &grower->has, term->held);
		find_base_room(plan, grower, &room);
		columns_count_each(&plan->columns, &room, term->own);
		grower->fixed = grower->base % unit != 0 ||
				!layout_has_least(&plan->layout, term, &whole);
		all &= !grower->fixed;
	}
	return all;
}

/* Each lease first keeps what it has, its base before all, and what nobody lends; then it has what it had; then
 * what is free; then what others leave. */
static void pick(struct plan *plan)
{
	enum { BASE, OWN, MASK, BEFORE, ANY, TIERS };
	struct cuset left = plan->pool, idle = plan->idle;

	for (size_t i = 0; i < plan->layout.n; i++)
		plan->growers[i]->target = (struct cuset){ 0 };
	cuset_remove(&idle, &plan->division->gpu->taken);
	for (unsigned tier = BASE; tier < TIERS; tier++)
		for (size_t i = 0; i < plan->layout.n; i++) {
			struct grower *grower = plan->growers[i];
			const struct cuset *tiers[] = { &grower->p->adaptation->base, &grower->has,
							&grower->has,
							&grower->p->adaptation->before, &left };
			struct cuset avail = *tiers[tier];

			if (tier == BASE && grower->begins && !grower->anchored)
				continue;
			if (tier == OWN)
				cuset_remove(&avail, &plan->division->gpu->taken);
			cuset_keep(&avail, &left);
			columns_pick(&plan->columns, &plan->layout.terms[i].rect, &avail, &idle,
				     &grower->target);
			cuset_remove(&left, &grower->target);
		}
}

/* Leases whose bases do not get into their targets stay around them. true: there are any. */
static bool anchor(struct plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < plan->layout.n; i++)
		if (!find_base(plan, plan->growers[i])) {
			plan->growers[i]->fixed = plan->growers[i]->anchored;
			plan->growers[i]->anchored = true;
			any = true;
		}
	return any;
}

/* 1: the growers have targets and bases. 0: there is no layout. */
static int find_layout(struct plan *plan)
{
	int r;

	for (unsigned tries = 0;; tries++) {
		plan->may_rebase &= tries < TRIES;
		find_room(plan);
		if (!set_terms(plan))
			continue;
		r = layout_find(&plan->layout);
		if (r <= 0)
			return r;
		pick(plan);
		if (!anchor(plan))
			return 1;
	}
}

static int divide_anew(struct division *division, const struct cuset *spare,
		       enum column_match match, bool may_gain)
{
	size_t n = division->n;
	_cleanup_(freep) struct layout_term *terms = calloc(n + 1, sizeof(*terms));
	_cleanup_(freep) struct grower **growers = calloc(n + 1, sizeof(*growers));
	_cleanup_(freep) const struct cuset **held = calloc(2 * n + 1, sizeof(*held));
	struct plan plan = { .division = division,
			     .spare = spare,
			     .match = match,
			     .layout.terms = terms,
			     .growers = growers,
			     .held = held,
			     .may_rebase = true,
			     .may_gain = may_gain };

	if (!terms || !growers || !held)
		return -ENOMEM;
	plan.bases = &held[n];
	for (size_t i = 0; i < n; i++) {
		struct grower *grower = &division->growers[i];

		grower->anchored = false;
		grower->fixed = grower->keeps || grower->lease->lend.unbound ||
				grower->p->isolation == ISOLATION_SHARED;
	}
	return find_layout(&plan);
}

/* ---- what is better ----------------------------------------------------------------------- */

/* Which part of its share each grower has, in ascending order. */
static void find_levels(const struct division *d, unsigned *ret)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct grower *grower = &d->growers[i];

		ret[i] =
			min_u(cuset_count(&grower->target) * LAYOUT_WHOLE / max_u(grower->share, 1),
			      LAYOUT_WHOLE);
	}
	layout_sort_levels(ret, d->n);
}

/* Keeps the targets as the best ones so far. */
static void keep(struct division *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct grower *grower = &d->growers[i];

		grower->best = grower->target;
		grower->best_rebase = grower->rebase;
	}
}

static int try_anew(struct division *d, const struct cuset *spare, enum column_match match,
		    bool may_gain, unsigned *best, unsigned *levels)
{
	int r = divide_anew(d, spare, match, may_gain);

	find_levels(d, levels);
	if (r > 0 && layout_is_clearly_better(levels, best, d->n)) {
		memcpy(best, levels, d->n * sizeof(*best));
		keep(d);
	}
	return r < 0 ? r : 0;
}

/* Lays out all leases with bases outside of the spare engine, and then anywhere; where the worst-off one is clearly
 * below its share, with columns that match the leases, too, and with bases that move to idle CUs. */
static int choose(struct division *d, unsigned *best, unsigned *levels)
{
	const unsigned enough = LAYOUT_WHOLE - LAYOUT_WHOLE / LAYOUT_CLEARLY;
	bool several = d->n > 0 && d->gpu->info.geometry.xccs > 1;
	const enum column_match first = several ? MATCH_SIZE : MATCH_OWN;
	struct cuset spare, none = { 0 };
	int r = 0;

	extend_all(d);
	find_levels(d, best);
	keep(d);
	find_spare(d, &spare);
	if (!cuset_empty(&spare))
		r = try_anew(d, &spare, first, false, best, levels);
	if (r == 0 && (cuset_empty(&spare) || best[0] < enough))
		r = try_anew(d, &none, first, false, best, levels);
	for (enum column_match i = MATCH_HELD; several && i < MATCHES && r == 0 && best[0] < enough;
	     i++)
		r = try_anew(d, &none, i, false, best, levels);
	if (r == 0 && best[0] < enough)
		r = try_anew(d, &none, first, true, best, levels);
	for (size_t i = 0; i < d->n; i++) {
		d->growers[i].target = d->growers[i].best;
		d->growers[i].rebase = d->growers[i].best_rebase;
	}
	return r;
}

/* ---- one GPU ------------------------------------------------------------------------------ */

static void find_growers(struct division *d, struct lease *proposal, bool settled)
{
	unsigned gpu = (unsigned)(d->gpu - d->arbiter->gpus);
	struct cuset claims;

	d->n = share_find(d->arbiter, gpu, proposal, d->growers, &claims, &d->pool);
	if (proposal)
		d->growers[d->n++] = share_grower(d->arbiter, proposal,
						  lease_partition_on(proposal, gpu));
	for (size_t i = 0; i < d->n; i++)
		cuset_add(&claims, &d->growers[i].p->adaptation->base);
	for (size_t i = 0; i < d->n; i++) {
		struct grower *grower = &d->growers[i];
		const struct partition *p = grower->p;
		bool begins = grower->lease == proposal || grower->lease->lend.never_granted;

		grower->grows = !begins;
		/* Without room in the quota, its base stays on CUs that other leases of its user return. */
		grower->begins = begins && grower->quota >= grower->base;
		grower->keeps = settled && !lease_is_settled(grower->lease, p);
		if (grower->keeps)
			cuset_remove(&d->pool, &p->occupied);
		grower->has = begins && !grower->keeps ? p->adaptation->base : p->cus;
		borrow_shrink(d->gpu, &p->adaptation->base, &grower->has, &claims, &grower->has);
	}
	for (size_t i = 0; i < d->n; i++)
		cuset_add(&d->pool, &d->growers[i].has);
}

int divide(const struct arbiter *arbiter, unsigned gpu, struct lease *proposal, bool settled,
	   struct division *ret)
{
	_cleanup_(freep) unsigned *levels = calloc(2 * arbiter->n_leases + 2, sizeof(*levels));
	struct floor floor;

	*ret = (struct division){ .arbiter = arbiter, .gpu = &arbiter->gpus[gpu] };
	ret->growers = calloc(arbiter->n_leases + 1, sizeof(*ret->growers));
	if (!levels || !ret->growers)
		return -ENOMEM;
	if (floor_configured(arbiter->settings)) {
		if (floor_find(arbiter, gpu, NULL, NULL, &floor) < 0)
			return -ENOMEM;
		ret->kept = floor.now.cus;
	}
	find_growers(ret, proposal, settled);
	if (share_divide(arbiter, ret->growers, ret->n, cuset_count(&ret->pool)) < 0)
		return -ENOMEM;
	return choose(ret, levels, &levels[ret->n]);
}

void division_done(struct division *division)
{
	free(division->growers);
}

/* ---- a lease that begins ------------------------------------------------------------------ */

static void set_target_of(const struct arbiter *arbiter, struct lease *proposal,
			  struct partition *p)
{
	_cleanup_(division_done) struct division division;

	p->adaptation->promised = p->adaptation->base;
	if (divide(arbiter, p->gpu, proposal, false, &division) < 0)
		return;
	for (size_t i = 0; i < division.n; i++) {
		const struct grower *grower = &division.growers[i];

		if (grower->lease != proposal)
			continue;
		p->adaptation->promised = grower->target;
		if (!cuset_empty(&grower->rebase))
			p->adaptation->base = grower->rebase;
	}
}

void divide_begin(const struct arbiter *arbiter, const struct lease *lease, struct partition *p,
		  bool waits)
{
	struct cuset occupied, cus = partition_is_promised(p) ? p->adaptation->promised : p->cus;

	borrow_others(arbiter, p->gpu, lease, BORROW_OCCUPIED, &occupied);
	if (!waits && cuset_count(&cus) > quota_cus_left(arbiter, lease, p->gpu))
		cus = p->adaptation->base;
	else if (!waits && !borrow_shrink(&arbiter->gpus[p->gpu], &p->adaptation->base, &cus,
					  &occupied, &cus))
		p->adaptation->promised = (struct cuset){ 0 };
	partition_set_mask(p, &arbiter->gpus[p->gpu].info.geometry, &cus);
	p->occupied = cus;
}

void divide_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive)
{
	struct ledger_view view;

	proposal->state = inactive ? STATE_INACTIVE : STATE_GRANTED;
	if (inactive)
		return;
	ledger_view(arbiter, &view);
	FOR_EACH_PARTITION(p, proposal)
		if (p->adaptation)
			set_target_of(ledger_on(&view, p->gpu), proposal, p);
	if (borrow_contested(arbiter, proposal)) {
		proposal->state = STATE_ACTIVATING;
		proposal->lend.never_granted = true;
	}
	FOR_EACH_PARTITION(p, proposal) {
		if (!p->adaptation)
			break;
		divide_begin(ledger_on(&view, p->gpu), proposal, p, proposal->lend.never_granted);
		p->paused = p->stopped = exclusive_on(arbiter, p->gpu, proposal);
	}
	free(view.leases);
}
