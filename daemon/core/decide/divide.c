/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/divide.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/floor.h"
#include "core/mask/extend.h"
#include "core/mask/place.h"

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
	struct extend request = { .all = &gpu->all, .cap = min_u(cus, most_of(d, grower)) };
	struct cuset base = grower->target, target;

	if (cuset_count(&base) >= request.cap || cuset_empty(&d->left))
		return;
	request.base = &base;
	request.avail = d->left;
	cuset_add(&request.avail, &base);
	request.keep = grower->p->cus;
	cuset_add(&request.keep, &grower->p->adaptation->before);
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &gpu->taken);
	extend(&gpu->info.geometry, &request, &target);
	set_target(d, grower, &target);
}

/* Begins with these masks; what is not in them is left. */
static void start(struct division *d, const struct cuset *(*mask)(const struct grower *))
{
	d->left = d->pool;
	for (size_t i = 0; i < d->n; i++) {
		d->growers[i].target = *mask(&d->growers[i]);
		d->growers[i].restored = false;
		cuset_remove(&d->left, &d->growers[i].target);
	}
}

static const struct cuset *present_mask(const struct grower *grower)
{
	return &grower->p->cus;
}

static const struct cuset *next_base(const struct grower *grower)
{
	return cuset_empty(&grower->rebase) ? &grower->p->adaptation->base : &grower->rebase;
}

static void restore(struct division *d, struct grower *grower)
{
	const struct cuset *before = &grower->p->adaptation->before;
	struct cuset avail = d->left;

	cuset_add(&avail, &grower->target);
	grower->restored = !cuset_empty(before) && cuset_within(&grower->target, before) &&
			   cuset_within(before, &avail) &&
			   cuset_count(before) <= most_of(d, grower);
	if (grower->restored)
		set_target(d, grower, before);
}

#define PARTS 16U /* of a share */

/* Extends the target to this part of the share; further if the next larger rectangle is the first with
 * which the lease is not starved. */
static void extend_to_part(struct division *d, struct grower *grower, unsigned part)
{
	do {
		extend_target(d, grower, grower->share * part / PARTS);
		part += 2;
	} while (part <= 2 * PARTS && share_is_starved(grower, cuset_count(&grower->target)));
}

/* Divides what is left: up to these parts of the shares, up to the shares, and then the rest. */
static void share_out(struct division *d, unsigned part)
{
	for (size_t i = 0; i < d->n; i++)
		if (!d->growers[i].restored)
			extend_to_part(d, &d->growers[i], part);
	for (size_t i = 0; part < PARTS && i < d->n; i++)
		if (!d->growers[i].restored)
			extend_target(d, &d->growers[i], d->growers[i].share);
	for (size_t i = 0; i < d->n; i++)
		if (!d->growers[i].restored)
			extend_target(d, &d->growers[i], d->growers[i].cap);
}

/* ---- what is better ----------------------------------------------------------------------- */

#define WHOLE 0x10000U /* a share */

/* A division with its outcomes: which part of its share each grower has, in ascending order. */
struct search {
	struct division *division;
	unsigned *kept;  /* if no lease loses CUs */
	unsigned *best;  /* of the targets that were kept as the best ones */
	unsigned *level; /* of the present targets */
};

static int by_number(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void find_levels(const struct division *d, unsigned *ret)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct grower *grower = &d->growers[i];

		ret[i] = min_u(cuset_count(&grower->target) * WHOLE / max_u(grower->share, 1),
			       WHOLE);
	}
	qsort(ret, d->n, sizeof(*ret), by_number);
}

/* Is the first number larger in which they differ? All above the limit are equal. */
static bool is_better(const unsigned *a, const unsigned *b, size_t n, unsigned limit)
{
	size_t i = 0;

	while (i < n && min_u(a[i], limit) == min_u(b[i], limit))
		i++;
	return i < n && a[i] > b[i];
}

static bool any_starves(const struct division *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (share_is_starved(&d->growers[i], cuset_count(&d->growers[i].target)))
			return true;
	return false;
}

static void keep_best(struct search *search)
{
	struct division *d = search->division;

	memcpy(search->best, search->level, d->n * sizeof(*search->best));
	for (size_t i = 0; i < d->n; i++)
		d->growers[i].best = d->growers[i].target;
}

/* ---- leases lose CUs ---------------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;
	unsigned x = a->p->count * b->weight, y = b->p->count * a->weight;

	if (x != y)
		return x < y ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

static int by_share(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

/* Keeps the present targets if they are the best ones so far, and if a starved lease has more than if
 * no lease lost CUs. */
static bool judge(struct search *search)
{
	const struct division *d = search->division;

	find_levels(d, search->level);
	if (!is_better(search->level, search->kept, d->n, share_least(WHOLE)) ||
	    !is_better(search->level, search->best, d->n, WHOLE))
		return false;
	keep_best(search);
	return true;
}

/* The rectangles of many leases leave less room beside each other than those of few. */
#define LEAST_PART 12U
#define PARTS_FOR 32U

/* Divides all CUs anew, around the next bases, in several ways. */
static bool try_all(struct search *search)
{
	static int (*const orders[])(const void *, const void *) = { by_share, by_size };
	struct division *d = search->division;
	bool better = false;

	for (size_t order = 0; order < ARRAY_SIZE(orders); order++) {
		qsort(d->growers, d->n, sizeof(*d->growers), orders[order]);
		for (unsigned part = PARTS; part >= (d->n > PARTS_FOR ? PARTS : LEAST_PART);
		     part--) {
			start(d, next_base);
			share_out(d, part);
			better |= judge(search);
		}
	}
	return better;
}

/* The engine of `set` with the fewest CUs of `room`. */
static unsigned fullest_engine(const struct cuset *set, const struct cuset *room)
{
	unsigned fullest = CUSET_ENGINES, least = UINT_MAX;

	for (unsigned e = 0; e < CUSET_ENGINES; e++) {
		unsigned n = 0;

		for (unsigned x = 0; x < CUSET_XCCS; x++)
			n += cuset_count_word(room->pair[cuset_pair(x, e)]);
		if ((cuset_engines(set) >> e & 1) && n < least) {
			least = n;
			fullest = e;
		}
	}
	return fullest;
}

static void remove_engine(struct cuset *set, unsigned engine)
{
	for (unsigned x = 0; x < CUSET_XCCS; x++)
		set->pair[cuset_pair(x, engine)] = 0;
}

/* A mask has as many CUs in each of its engines as in the one with the fewest: where other bases fill
 * an engine of its base, a lease cannot grow. So the base moves to those engines of its mask that have
 * the most room. A base on CUs that it may not claim stays. */
static void find_base(const struct division *d, struct grower *grower)
{
	const struct partition *p = grower->p;
	struct place_request request = { .all = &d->gpu->all,
					 .aim = grower->base,
					 .floor = grower->base,
					 .ceiling = grower->base,
					 .limit = grower->base,
					 .exact = true };
	struct cuset room = d->pool;
	struct placement placement;
	struct place_miss miss;

	for (size_t i = 0; i < d->n_all; i++)
		if (&d->growers[i] != grower)
			cuset_remove(&room, &d->growers[i].p->adaptation->base);
	admit_available(d->gpu, grower->lease->class, p->isolation, false, &request.avail);
	cuset_add(&request.avail, &p->adaptation->base);
	cuset_keep(&request.avail, &p->cus);
	while (!cuset_empty(&request.avail)) {
		request.preferred = request.avail;
		if (place(&d->gpu->info.geometry, &request, &placement, &miss) < 0 ||
		    placement.effective != placement.count)
			return;
		grower->rebase = placement.cus;
		remove_engine(&request.avail, fullest_engine(&request.avail, &room));
	}
}

/* Does it help to move bases? Forgets those that need not, or need not move. Floors might keep the CUs
 * of a new base. */
static int try_bases(struct search *search)
{
	struct division *d = search->division;
	bool better;
	int moves = 0;

	if (floor_configured(d->arbiter->settings))
		return 0;
	for (size_t i = 0; i < d->n; i++)
		if (d->growers[i].may_rebase)
			find_base(d, &d->growers[i]);
	better = try_all(search);
	for (size_t i = 0; i < d->n; i++) {
		struct grower *grower = &d->growers[i];

		if (!better || cuset_within(&grower->p->adaptation->base, &grower->best))
			grower->rebase = (struct cuset){ 0 };
		moves |= !cuset_empty(&grower->rebase);
	}
	return moves;
}

/* ------------------------------------------------------------------------------------------- */

/* Lets leases lose CUs for those that are starved. */
static int divide_anew(struct search *search)
{
	struct division *d = search->division;
	int moves;

	find_levels(d, search->level);
	keep_best(search);
	memcpy(search->kept, search->level, d->n * sizeof(*search->kept));
	try_all(search);
	moves = try_bases(search);
	for (size_t i = 0; i < d->n; i++)
		d->growers[i].target = d->growers[i].best;
	return moves;
}

int divide(struct division *division)
{
	_cleanup_(freep) unsigned *levels = calloc(3 * division->n + 1, sizeof(*levels));
	struct search search = { .division = division };

	if (!levels ||
	    share_divide(division->arbiter, division->growers, division->n_all, division->cus) < 0)
		return -ENOMEM;
	search.kept = levels;
	search.best = &levels[division->n];
	search.level = &levels[2 * division->n];
	qsort(division->growers, division->n, sizeof(*division->growers), by_size);
	start(division, present_mask);
	for (size_t i = 0; i < division->n; i++)
		restore(division, &division->growers[i]);
	share_out(division, PARTS);
	if (!any_starves(division))
		return 0;
	start(division, present_mask);
	share_out(division, PARTS);
	return any_starves(division) ? divide_anew(&search) : 0;
}
