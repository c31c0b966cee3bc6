/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/place.h"

#include <errno.h>
#include <string.h>

#include "util/base.h"
#include "core/mask/pick.h"
#include "core/mask/score.h"

/* Free units (CUs, or WGPs) by XCC and engine, and what each engine has on all XCCs. */
struct profile {
	unsigned xccs, engines, step;
	unsigned whole; /* CUs of the GPU, if it may be had as it is; else 0 */
	unsigned free[CUSET_XCCS][CUSET_ENGINES];
	unsigned column[CUSET_ENGINES];     /* the least over the XCCs */
	unsigned kept[CUSET_ENGINES];       /* CUs to keep */
	unsigned height[CUSET_ENGINES + 1]; /* [m]: units that m engines of every XCC have */
};

/* m engines on every XCC with k units in each. */
struct rectangle {
	uint64_t score; /* 0: none yet */
	unsigned k;
	uint32_t engines[CUSET_XCCS];
};

/* The m-th most free units on this XCC bound the height of m engines. */
static void profile_lower(struct profile *p, unsigned xcc)
{
	unsigned sorted[CUSET_ENGINES];

	for (unsigned e = 0; e < p->engines; e++) {
		unsigned at = e;

		while (at > 0 && sorted[at - 1] < p->free[xcc][e]) {
			sorted[at] = sorted[at - 1];
			at--;
		}
		sorted[at] = p->free[xcc][e];
	}
	for (unsigned m = 1; m <= p->engines; m++)
		p->height[m] = xcc == 0 ? sorted[m - 1] : min_u(p->height[m], sorted[m - 1]);
}

static void profile_init(struct profile *p, const struct geometry *g,
			 const struct place_request *request)
{
	memset(p, 0, sizeof(*p));
	p->xccs = g->xccs;
	p->engines = g->engines;
	p->step = geometry_step(g);
	p->whole = pick_whole(request);

	for (unsigned e = 0; e < g->engines; e++) {
		p->column[e] = UINT32_MAX;
		for (unsigned x = 0; x < g->xccs; x++) {
			unsigned pair = cuset_pair(x, e);

			p->free[x][e] = cuset_count_word(request->avail.pair[pair]) / p->step;
			p->column[e] = min_u(p->column[e], p->free[x][e]);
			if (request->keep)
				p->kept[e] += cuset_count_word(request->keep->pair[pair] &
							       request->avail.pair[pair]);
		}
	}
	if (request->columns || request->engines > 0)
		for (unsigned x = 0; x < g->xccs; x++)
			memcpy(p->free[x], p->column, sizeof(p->column));
	for (unsigned x = 0; x < g->xccs; x++)
		profile_lower(p, x);
}

static unsigned rectangle_cus(const struct profile *p, unsigned m, unsigned k)
{
	return p->xccs * m * k * p->step;
}

/* The same engines on every XCC if there are such; else each XCC's own best. */
static void consider(const struct profile *p, const struct place_request *request, unsigned m,
		     unsigned k, const struct columns *common, struct rectangle *best)
{
	struct rectangle r = { .k = k };

	r.score = score_engines(common, m, k, p->xccs * p->step, request->few_engines,
				&r.engines[0]);
	if (r.score > 0) {
		for (unsigned x = 1; x < p->xccs; x++)
			r.engines[x] = r.engines[0];
	} else {
		r.score = UINT64_MAX;
		for (unsigned x = 0; x < p->xccs; x++) {
			struct columns own;
			uint64_t score;

			columns_init(&own, p->engines, p->free[x], p->kept, request->closed);
			score = score_engines(&own, m, k, p->xccs * p->step, request->few_engines,
					      &r.engines[x]);
			r.score = score < r.score ? score : r.score;
		}
	}
	if (r.score > best->score)
		*best = r;
}

static bool width_allowed(const struct place_request *request, unsigned m)
{
	return request->engines == 0 || request->engines == m;
}

/* The largest rectangle, or the whole, of at most cap CUs; 0 if there is none. */
static unsigned largest_below(const struct profile *p, const struct place_request *request,
			      unsigned cap)
{
	unsigned best = p->whole <= cap ? p->whole : 0;

	for (unsigned m = 1; m <= p->engines; m++) {
		if (!width_allowed(request, m))
			continue;
		unsigned k = min_u(p->height[m], cap / rectangle_cus(p, m, 1));
		best = max_u(best, rectangle_cus(p, m, k));
	}
	return best;
}

/* The smallest rectangle, or the whole, of more than `above` CUs; 0 if the limit allows
 * none. */
static unsigned smallest_above(const struct profile *p, const struct place_request *request,
			       unsigned above)
{
	unsigned best = p->whole > above ? p->whole : 0;

	for (unsigned m = 1; m <= p->engines; m++) {
		unsigned unit = rectangle_cus(p, m, 1);
		unsigned k = above / unit + 1;

		if (!width_allowed(request, m) || k > p->height[m])
			continue;
		if (best == 0 || k * unit < best)
			best = k * unit;
	}
	return best <= request->limit ? best : 0;
}

/* Takes exactly `cus` CUs, which a rectangle is known to have. */
static void take_rectangle(const struct geometry *g, const struct profile *p,
			   const struct place_request *request, unsigned cus, struct placement *ret)
{
	struct rectangle best = { 0 };
	struct columns common;

	columns_init(&common, p->engines, p->column, p->kept, request->closed);
	for (unsigned m = 1; m <= p->engines; m++) {
		unsigned unit = rectangle_cus(p, m, 1);

		if (width_allowed(request, m) && cus % unit == 0 && cus / unit <= p->height[m])
			consider(p, request, m, cus / unit, &common, &best);
	}
	memset(ret, 0, sizeof(*ret));
	for (unsigned x = 0; x < p->xccs; x++)
		for (unsigned e = 0; e < p->engines; e++)
			if (best.engines[x] & (UINT32_C(1) << e))
				pick_units(g, request, cuset_pair(x, e), best.k, &ret->cus);
	ret->count = ret->effective = cus;
}

/* How many CUs it shall be; 0: none will do. */
static unsigned choose(const struct profile *p, const struct place_request *request)
{
	unsigned cap = min_u(request->ceiling, request->limit);
	unsigned cus = largest_below(p, request, cap);

	if (request->exact)
		return cus == request->aim ? cus : 0;
	if (cus >= request->floor)
		return cus;
	return smallest_above(p, request, request->aim);
}

int place(const struct geometry *geometry, const struct place_request *request,
	  struct placement *ret, struct place_miss *ret_miss)
{
	struct profile profile;
	unsigned cus;

	if (request->any_shape)
		return pick_any_shape(geometry, request, ret, ret_miss);

	profile_init(&profile, geometry, request);
	cus = choose(&profile, request);
	if (cus == 0) {
		ret_miss->below = largest_below(&profile, request, request->aim);
		ret_miss->above = smallest_above(&profile, request, request->aim);
		return -ENOSPC;
	}
	if (cus == profile.whole) {
		ret->cus = request->avail;
		ret->count = cus;
		ret->effective = geometry_effective(geometry, &ret->cus);
		return 0;
	}
	take_rectangle(geometry, &profile, request, cus, ret);
	return 0;
}

bool place_fits(const struct geometry *geometry, const struct place_request *request)
{
	struct placement placement;
	struct place_miss miss;
	struct profile profile;

	if (request->any_shape)
		return place(geometry, request, &placement, &miss) == 0;
	profile_init(&profile, geometry, request);
	return choose(&profile, request) > 0;
}

unsigned place_engines_aim(const struct geometry *geometry, const struct cuset *all, unsigned n)
{
	struct place_request empty = { .all = all, .avail = *all, .columns = true };
	struct profile profile;

	if (n == 0 || n > geometry->engines)
		return 0;
	profile_init(&profile, geometry, &empty);
	return rectangle_cus(&profile, n, profile.height[n]);
}
