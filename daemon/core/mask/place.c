/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/place.h"

#include <errno.h>
#include <string.h>

#include "util/base.h"

/* ---- the engines that leave the most for later requests -------------------------------- */

/* What each engine has free, most first; engines that have as much are in any order. */
struct columns {
	unsigned n;
	unsigned free[CUSET_ENGINES];   /* units */
	unsigned kept[CUSET_ENGINES];   /* CUs of it that the lease has now */
	unsigned engine[CUSET_ENGINES]; /* what it is called */
	uint32_t closed; /* places in this order whose engine no realtime lease could have */
	uint32_t must;   /* places of engines that have to be taken */
	uint32_t same;   /* places that are as the one before */
};

/* The most free units first, then the most CUs to keep; engines that have to be taken, and closed ones,
 * before others. */
static void columns_init(struct columns *columns, unsigned n, const unsigned *free,
			 const unsigned *kept, uint32_t closed, uint32_t must)
{
	unsigned order[CUSET_ENGINES];

	for (unsigned e = 0; e < n; e++) {
		unsigned at = e;

		order[e] = free[e] << 16 | kept[e] << 2 | (must >> e & 1) << 1 | (closed >> e & 1);
		for (; at > 0 && order[e] > order[columns->engine[at - 1]]; at--)
			columns->engine[at] = columns->engine[at - 1];
		columns->engine[at] = e;
	}
	columns->n = n;
	columns->closed = columns->must = columns->same = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned e = columns->engine[i];

		columns->free[i] = free[e];
		columns->kept[i] = kept[e];
		columns->closed |= (closed >> e & 1) << i;
		columns->must |= (must >> e & 1) << i;
		if (i > 0 && order[e] == order[columns->engine[i - 1]])
			columns->same |= UINT32_C(1) << i;
	}
}

/* Scores the remainder by merging two descending lists: the engines that are taken, each with k units
 * less, and the others. */
static uint64_t score_left(const struct columns *c, uint32_t taken, unsigned k, uint32_t closed)
{
	uint32_t rest = ((UINT32_C(1) << c->n) - 1) & ~taken;
	unsigned largest = 0, realtime = 0, open = 0, squares = 0;

	for (unsigned i = 1; i <= c->n; i++) {
		unsigned r = rest ? (unsigned)__builtin_ctz(rest) : 0;
		unsigned t = taken ? (unsigned)__builtin_ctz(taken) : 0;
		bool mine = !rest || (taken && c->free[t] - k > c->free[r]);
		unsigned left = mine ? c->free[t] - k : c->free[r];

		if (left == 0)
			break;
		if (mine)
			taken &= taken - 1;
		else
			rest &= rest - 1;
		largest = max_u(largest, i * left);
		squares += left * left;
		open += !(closed >> (mine ? t : r) & 1);
		realtime = max_u(realtime, open * left);
	}
	return (uint64_t)(2 * largest + realtime) << 16 | squares;
}

/* A mask that grows around a base keeps most, and leaves each engine something: others grow, too. */
static uint64_t score(const struct columns *c, uint32_t taken, unsigned k, unsigned unit,
		      bool few_engines)
{
	unsigned kept = 0, free = 0, closes = (unsigned)__builtin_popcount(taken & ~c->closed);

	for (uint32_t left = taken; left; left &= left - 1) {
		kept += min_u(c->kept[__builtin_ctz(left)], k * unit);
		free += c->free[__builtin_ctz(left)];
	}
	if (c->must)
		return (uint64_t)kept << 40 |
		       (uint64_t)(c->n - (unsigned)__builtin_popcount(taken)) << 32 | free;
	return (uint64_t)kept << 40 | (uint64_t)(few_engines ? CUSET_ENGINES - closes : 0) << 32 |
	       score_left(c, taken, k, few_engines ? c->closed | taken : c->closed);
}

/* The next larger number with as many bits. */
static uint32_t next_set(uint32_t set)
{
	uint32_t lowest = set & (~set + 1), ripple = set + lowest;

	return ripple | ((set ^ ripple) / lowest) >> 2;
}

/*
 * The best m engines with k units free in each, as bits; 0 and no engines where fewer have
 * them. Scores of any m and k compare: the higher the better. Every set is tried, and ordered
 * by these, the first that differs decides:
 *
 * 1. CUs that a lease which is resized stays on: what it moves off stays charged;
 * 2. few_engines: few engines that are not closed to realtime leases already;
 * 3. the largest rectangle that is left, twice, and the largest one for a realtime lease;
 * 4. what is left in few engines rather than a little in each (sum of squares).
 */
static uint64_t score_engines(const struct columns *columns, unsigned m, unsigned k, unsigned unit,
			      bool few_engines, uint32_t *ret_engines)
{
	uint32_t best = 0, end = 1;
	uint64_t best_score = 0;

	for (unsigned i = 0; i < columns->n && columns->free[i] >= k; i++)
		end <<= 1;
	for (uint32_t set = (UINT32_C(1) << m) - 1; set < end; set = next_set(set)) {
		uint64_t s;

		/* Of engines that are alike, the first. */
		if (set & columns->same & ~(set << 1) || columns->must & ~set)
			continue;
		s = score(columns, set, k, unit, few_engines) + 1;
		if (s > best_score) {
			best = set;
			best_score = s;
		}
	}
	*ret_engines = 0;
	for (; best; best &= best - 1)
		*ret_engines |= UINT32_C(1) << columns->engine[__builtin_ctz(best)];
	return best_score;
}

/* ---- units --------------------------------------------------------------------------- */

/* The lowest unit of the word's shader array, as its bits; 0 if it has none. */
static uint32_t lowest_unit(uint32_t word, unsigned array, unsigned step)
{
	uint32_t half = word & (array == 0 ? UINT32_C(0x0000ffff) : UINT32_C(0xffff0000));
	uint32_t lowest = half & (~half + 1);

	return step == 2 ? half & (lowest | lowest << 1) : lowest;
}

/* Moves up to n units from *from to *to, the emptier array first; returns how many. */
static unsigned move_units(uint32_t *from, uint32_t *to, unsigned n, unsigned step)
{
	unsigned moved = 0;

	while (moved < n && *from) {
		bool second = cuset_count_word(*to & 0xffff) > cuset_count_word(*to >> 16);
		uint32_t unit = lowest_unit(*from, second ? 1 : 0, step);

		if (!unit)
			unit = lowest_unit(*from, second ? 0 : 1, step);
		*from &= ~unit;
		*to |= unit;
		moved++;
	}
	return moved;
}

void place_pick(const struct geometry *geometry, const struct place_request *request, unsigned pair,
		unsigned n, struct cuset *set)
{
	uint32_t avail = request->avail.pair[pair] & ~set->pair[pair];
	uint32_t keep = request->keep ? avail & request->keep->pair[pair] : 0;
	uint32_t preferred = avail & request->preferred.pair[pair] & ~keep;
	uint32_t rest = avail & ~keep & ~preferred;
	uint32_t *tiers[] = { &keep, &preferred, &rest };
	unsigned step = geometry_step(geometry);

	if (n == 1 && step == 1 && avail >> 16 == 0) { /* the same, sooner */
		rest = keep ?: preferred ?: rest;
		set->pair[pair] |= rest & (~rest + 1);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(tiers) && n > 0; i++)
		n -= move_units(tiers[i], &set->pair[pair], n, step);
}

/* All CUs of the GPU, however uneven its harvest, if all are available; else 0. */
static unsigned pick_whole(const struct place_request *request)
{
	if (!cuset_equal(request->all, &request->avail) ||
	    (request->engines > 0 &&
	     request->engines != (unsigned)__builtin_popcount(cuset_engines(request->all))))
		return 0;
	return cuset_count(request->all);
}

/* ---- rectangles ---------------------------------------------------------------------- */

/* Free units (CUs, or WGPs) by XCC and engine, and what each engine has on all XCCs. */
struct profile {
	unsigned xccs, engines, step;
	unsigned whole; /* CUs of the GPU, if it may be had as it is; else 0 */
	unsigned any,
		any_least; /* shape=any: the most CUs that can be had, and the fewest; 0: none */
	unsigned free[CUSET_XCCS][CUSET_ENGINES];
	unsigned column[CUSET_ENGINES];               /* the least over the XCCs */
	unsigned kept[CUSET_XCCS + 1][CUSET_ENGINES]; /* CUs to keep; in the last row of all XCCs */
	unsigned height[CUSET_ENGINES + 1]; /* [m]: units that m engines of every XCC have */
	uint32_t must[CUSET_XCCS];          /* engines of the base, as bits */
	unsigned least;                     /* units of the base in each of them */
};

/* m engines on every XCC with k units in each. */
struct rectangle {
	uint64_t score; /* 0: none yet */
	unsigned k;
	uint32_t engines[CUSET_XCCS];
};

/* CUs free in one engine of all XCCs; 0 unless every XCC has one. */
static unsigned column_free(const struct geometry *geometry, const struct place_request *request,
			    unsigned engine)
{
	unsigned n = 0;

	for (unsigned x = 0; x < geometry->xccs; x++) {
		uint32_t word = request->avail.pair[cuset_pair(x, engine)];

		if (!word)
			return 0;
		n += cuset_count_word(word);
	}
	return n;
}

/* The engines that a shape of any kind may use: all, or the freest that were asked for. */
static uint32_t allowed_engines(const struct geometry *geometry,
				const struct place_request *request)
{
	uint32_t allowed = 0;

	if (request->engines == 0)
		return UINT32_MAX;
	for (unsigned left = request->engines; left > 0; left--) {
		unsigned best = 0, most = 0;

		for (unsigned e = 0; e < geometry->engines; e++) {
			unsigned n = column_free(geometry, request, e);

			if (!(allowed & (UINT32_C(1) << e)) && n > most) {
				most = n;
				best = e;
			}
		}
		if (most > 0)
			allowed |= UINT32_C(1) << best;
	}
	return allowed;
}

/* The fewest CUs that cover every XCC and each engine that was asked for, and the most; 0: they cannot be covered. */
static void count_any(const struct geometry *geometry, const struct place_request *request,
		      struct profile *p)
{
	struct cuset avail = request->avail;

	cuset_keep_engines(&avail, allowed_engines(geometry, request));
	p->any_least = geometry->xccs * max_u(request->engines, 1) * geometry_step(geometry);
	p->any = cuset_count(&avail);
	if (!geometry_on_every_xcc(geometry, &avail) ||
	    (unsigned)__builtin_popcount(cuset_engines(&avail)) < request->engines)
		p->any = 0;
}

/* The m-th most free units on this XCC bound the height of m engines; those of the base come first. */
static void profile_lower(struct profile *p, unsigned xcc)
{
	unsigned sorted[CUSET_ENGINES], low = UINT32_MAX, width = 0;

	for (unsigned e = 0; e < p->engines; e++) {
		bool must = p->must[xcc] >> e & 1;
		unsigned at = e;

		while (at > width * !must && (must || sorted[at - 1] < p->free[xcc][e])) {
			sorted[at] = sorted[at - 1];
			at--;
		}
		sorted[at] = p->free[xcc][e];
		width += must;
	}
	for (unsigned m = 1; m <= p->engines; m++) {
		low = min_u(low, sorted[m - 1]);
		p->height[m] = m < width ? 0 : xcc == 0 ? low : min_u(p->height[m], low);
	}
}

static void profile_init(struct profile *p, const struct geometry *g,
			 const struct place_request *request)
{
	memset(p, 0, sizeof(*p));
	p->xccs = g->xccs;
	p->engines = g->engines;
	p->step = geometry_step(g);
	p->whole = pick_whole(request);
	if (request->any_shape)
		count_any(g, request, p);

	for (unsigned e = 0; e < g->engines; e++) {
		p->column[e] = UINT32_MAX;
		for (unsigned x = 0; x < g->xccs; x++) {
			unsigned pair = cuset_pair(x, e);

			if (request->base && request->base->pair[pair]) {
				p->must[x] |= UINT32_C(1) << e;
				p->least = cuset_count_word(request->base->pair[pair]) / p->step;
			}
			p->free[x][e] = cuset_count_word(request->avail.pair[pair]) / p->step;
			p->column[e] = min_u(p->column[e], p->free[x][e]);
			if (request->keep)
				p->kept[x][e] = cuset_count_word(request->keep->pair[pair] &
								 request->avail.pair[pair]);
			p->kept[CUSET_XCCS][e] += p->kept[x][e];
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

/* Scores m engines with k units each: the same engines on every XCC if there are such, else the best
 * engines of each XCC. Around a base only the best of each XCC. */
static void consider(const struct profile *p, const struct place_request *request, unsigned m,
		     unsigned k, const struct columns *common, struct rectangle *best)
{
	struct rectangle r = { .k = k };

	if (!request->base)
		r.score = score_engines(common, m, k, p->xccs * p->step, request->few_engines,
					&r.engines[0]);
	if (r.score > 0) {
		for (unsigned x = 1; x < p->xccs; x++)
			r.engines[x] = r.engines[0];
	} else {
		r.score = UINT64_MAX;
		for (unsigned x = 0; x < p->xccs; x++) {
			unsigned xcc = request->base ? x : CUSET_XCCS; /* whose CUs are kept */
			struct columns own;
			uint64_t score;

			columns_init(&own, p->engines, p->free[x], p->kept[xcc], request->closed,
				     p->must[x]);
			score = score_engines(&own, m, k, p->step * (request->base ? 1 : p->xccs),
					      request->few_engines, &r.engines[x]);
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
	unsigned any = min_u(p->any, cap / p->step * p->step);

	if (request->any_shape)
		return max_u(best, any < p->any_least ? 0 : any);
	for (unsigned m = 1; m <= p->engines; m++) {
		if (!width_allowed(request, m))
			continue;
		unsigned k = min_u(p->height[m], cap / rectangle_cus(p, m, 1));
		best = max_u(best, k < p->least ? 0 : rectangle_cus(p, m, k));
	}
	return best;
}

/* The smallest rectangle, or the whole, of more than `above` CUs; 0 if the limit allows
 * none. */
static unsigned smallest_above(const struct profile *p, const struct place_request *request,
			       unsigned above)
{
	unsigned best = p->whole > above ? p->whole : 0;
	unsigned any = max_u((above / p->step + 1) * p->step, p->any_least);

	if (request->any_shape && any <= p->any)
		best = any;
	for (unsigned m = 1; m <= p->engines; m++) {
		unsigned unit = rectangle_cus(p, m, 1);
		unsigned k = above / unit + 1;

		if (request->any_shape || !width_allowed(request, m) || k > p->height[m])
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

	columns_init(&common, p->engines, p->column, p->kept[CUSET_XCCS], request->closed, 0);
	for (unsigned m = 1; m <= p->engines; m++) {
		unsigned unit = rectangle_cus(p, m, 1);

		if (width_allowed(request, m) && cus % unit == 0 && cus / unit <= p->height[m] &&
		    cus / unit >= p->least)
			consider(p, request, m, cus / unit, &common, &best);
	}
	ret->cus = request->base ? *request->base : (struct cuset){ 0 };
	for (unsigned x = 0; x < p->xccs; x++)
		for (unsigned e = 0; e < p->engines; e++) {
			unsigned pair = cuset_pair(x, e);
			unsigned has = cuset_count_word(ret->cus.pair[pair]) / p->step;

			if (best.engines[x] & (UINT32_C(1) << e))
				place_pick(g, request, pair, best.k - has, &ret->cus);
		}
	ret->count = ret->effective = cus;
}

/* The number of CUs to take; 0: no number that fits is allowed. */
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

/* ---- any shape ----------------------------------------------------------------------- */

/* An XCC while CUs are levelled: units that are taken of it and of its engines, and the pair that is
 * next; least: their order, UINT32_MAX without a pair. */
struct level {
	unsigned taken, of_engine[CUSET_ENGINES], least, pair;
};

/* Of the engines that have more, the one with the least taken so far. */
static void find_thinnest(const struct geometry *geometry, const struct place_request *request,
			  uint32_t engines, const struct cuset *set, unsigned xcc,
			  struct level *level)
{
	level->least = UINT32_MAX;
	for (unsigned e = 0; e < geometry->engines; e++) {
		unsigned pair = cuset_pair(xcc, e), least = level->taken * 64 + level->of_engine[e];

		if (!(engines & (UINT32_C(1) << e)) || least >= level->least ||
		    !(request->avail.pair[pair] & ~set->pair[pair]))
			continue;
		level->least = least;
		level->pair = pair;
	}
}

/* Levels `cus` CUs, which can be had, over the engines. Each is of the XCC with the least taken so far. */
static void level(const struct geometry *geometry, const struct place_request *request,
		  unsigned cus, struct cuset *set)
{
	unsigned step = geometry_step(geometry);
	uint32_t engines = allowed_engines(geometry, request);
	struct level levels[CUSET_XCCS] = { 0 };

	memset(set, 0, sizeof(*set));
	for (unsigned x = 0; x < geometry->xccs; x++)
		find_thinnest(geometry, request, engines, set, x, &levels[x]);
	for (unsigned taken = 0; taken < cus; taken += step) {
		unsigned xcc = 0;

		for (unsigned x = 1; x < geometry->xccs; x++)
			xcc = levels[x].least < levels[xcc].least ? x : xcc;
		place_pick(geometry, request, levels[xcc].pair, 1, set);
		levels[xcc].taken++;
		levels[xcc].of_engine[levels[xcc].pair % CUSET_ENGINES]++;
		find_thinnest(geometry, request, engines, set, xcc, &levels[xcc]);
	}
}

/* How many engines shape=any is levelled over: for a realtime lease as few as have the CUs. 0: all. */
static unsigned engines_of_any(const struct geometry *geometry, const struct place_request *request,
			       unsigned cus)
{
	struct place_request few = *request;
	struct profile p;

	if (!request->few_engines || request->engines > 0)
		return request->engines;
	for (few.engines = 1; few.engines < geometry->engines; few.engines++) {
		count_any(geometry, &few, &p);
		if (cus >= p.any_least && cus <= p.any)
			return few.engines;
	}
	return 0;
}

static void take_any(const struct geometry *geometry, const struct place_request *request,
		     unsigned cus, struct placement *ret)
{
	struct place_request levelled = *request;

	levelled.engines = engines_of_any(geometry, request, cus);
	level(geometry, &levelled, cus, &ret->cus);
	ret->count = cus;
	ret->effective = geometry_effective(geometry, &ret->cus);
}

/* ---- all of it ----------------------------------------------------------------------- */

int place(const struct geometry *geometry, const struct place_request *request,
	  struct placement *ret, struct place_miss *ret_miss)
{
	struct profile profile;
	unsigned cus;

	profile_init(&profile, geometry, request);
	cus = choose(&profile, request);
	if (cus == 0 && !ret_miss)
		return -ENOSPC;
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
	if (request->any_shape)
		take_any(geometry, request, cus, ret);
	else
		take_rectangle(geometry, &profile, request, cus, ret);
	return 0;
}

void place_around(const struct geometry *geometry, const struct place_request *asked,
		  struct cuset *ret)
{
	struct place_request request = *asked;
	struct placement placement;
	struct profile profile;
	unsigned cus;

	cuset_add(&request.avail, request.base);
	profile_init(&profile, geometry, &request);
	cus = largest_below(&profile, &request, request.ceiling);
	*ret = *request.base;
	if (cus <= cuset_count(request.base))
		return;
	*ret = request.avail;
	if (cus == profile.whole)
		return;
	take_rectangle(geometry, &profile, &request, cus, &placement);
	*ret = placement.cus;
}

bool place_fits(const struct geometry *geometry, const struct place_request *request)
{
	struct profile profile;

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
