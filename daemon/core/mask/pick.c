/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/pick.h"

#include <errno.h>
#include <string.h>

#include "util/base.h"

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

void pick_units(const struct geometry *geometry, const struct place_request *request, unsigned pair,
		unsigned n, struct cuset *set)
{
	uint32_t avail = request->avail.pair[pair] & ~set->pair[pair];
	uint32_t keep = request->keep ? avail & request->keep->pair[pair] : 0;
	uint32_t preferred = avail & request->preferred.pair[pair] & ~keep;
	uint32_t rest = avail & ~keep & ~preferred;
	uint32_t *tiers[] = { &keep, &preferred, &rest };
	unsigned step = geometry_step(geometry);

	for (size_t i = 0; i < ARRAY_SIZE(tiers) && n > 0; i++)
		n -= move_units(tiers[i], &set->pair[pair], n, step);
}

unsigned pick_whole(const struct place_request *request)
{
	if (!cuset_equal(request->all, &request->avail) ||
	    (request->engines > 0 &&
	     request->engines != (unsigned)__builtin_popcount(cuset_engines(request->all))))
		return 0;
	return cuset_count(request->all);
}

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

/* The allowed pair with the fewest CUs so far on the XCC with the fewest; -1: none left. */
static int thinnest(const struct geometry *geometry, const struct place_request *request,
		    uint32_t engines, const struct cuset *set)
{
	unsigned least = UINT32_MAX;
	int best = -1;

	for (unsigned x = 0; x < geometry->xccs; x++) {
		unsigned on_xcc = 0;

		for (unsigned e = 0; e < geometry->engines; e++)
			on_xcc += cuset_count_word(set->pair[cuset_pair(x, e)]);
		for (unsigned e = 0; e < geometry->engines; e++) {
			unsigned pair = cuset_pair(x, e);
			unsigned level = on_xcc * 64 + cuset_count_word(set->pair[pair]);

			if (!(engines & (UINT32_C(1) << e)) || level >= least ||
			    !(request->avail.pair[pair] & ~set->pair[pair]))
				continue;
			least = level;
			best = (int)pair;
		}
	}
	return best;
}

/* Levels `cus` CUs over the engines; fewer where there are no more. */
static unsigned level(const struct geometry *geometry, const struct place_request *request,
		      unsigned cus, struct cuset *set)
{
	unsigned step = geometry_step(geometry), taken = 0;
	uint32_t engines = allowed_engines(geometry, request);

	memset(set, 0, sizeof(*set));
	while (taken + step <= cus) {
		int pair = thinnest(geometry, request, engines, set);

		if (pair < 0)
			break;
		pick_units(geometry, request, (unsigned)pair, 1, set);
		taken += step;
	}
	return taken;
}

static bool on_every_xcc(const struct geometry *geometry, const struct cuset *set)
{
	for (unsigned x = 0; x < geometry->xccs; x++) {
		uint32_t any = 0;

		for (unsigned e = 0; e < geometry->engines; e++)
			any |= set->pair[cuset_pair(x, e)];
		if (!any)
			return false;
	}
	return true;
}

/* The least that is on every XCC, in each engine that was asked for. */
static unsigned least(const struct geometry *geometry, const struct place_request *request)
{
	return geometry->xccs * max_u(request->engines, 1) * geometry_step(geometry);
}

/* Levels; how many CUs that were, 0 if they are not where they must be. */
static unsigned level_well(const struct geometry *geometry, const struct place_request *request,
			   unsigned cus, struct cuset *set)
{
	unsigned taken = level(geometry, request, cus, set);
	unsigned engines = (unsigned)__builtin_popcount(cuset_engines(set));

	if (taken < least(geometry, request) ||
	    (request->engines > 0 && engines != request->engines))
		return 0;
	return on_every_xcc(geometry, set) ? taken : 0;
}

/* For a realtime lease: as many CUs on as few engines as have them. */
static void gather(const struct geometry *geometry, const struct place_request *request,
		   struct placement *placement)
{
	struct place_request few = *request;

	for (few.engines = 1; few.engines < geometry->engines; few.engines++) {
		struct cuset set;

		if (level_well(geometry, &few, placement->count, &set) != placement->count)
			continue;
		placement->cus = set;
		return;
	}
}

/* The same, or the whole GPU where that is more and has at most `cus`. */
static unsigned level_or_whole(const struct geometry *geometry, const struct place_request *request,
			       unsigned cus, struct cuset *set)
{
	unsigned taken = level_well(geometry, request, cus, set), whole = pick_whole(request);

	if (whole > cus || whole <= taken)
		return taken;
	*set = request->avail;
	return whole;
}

/* The least above the aim, which may be no whole unit, or less than one for each XCC (and
 * engine that was asked for); 0 where the limit or what is free does not reach it. */
static unsigned least_above(const struct geometry *geometry, const struct place_request *request)
{
	unsigned step = geometry_step(geometry);
	unsigned above = max_u((request->aim / step + 1) * step, least(geometry, request));
	struct cuset unused;

	if (request->aim < request->limit && above <= request->limit &&
	    level_well(geometry, request, above, &unused) == above)
		return above;
	above = pick_whole(request);
	return above > request->aim && above <= request->limit ? above : 0;
}

int pick_any_shape(const struct geometry *geometry, const struct place_request *request,
		   struct placement *ret, struct place_miss *ret_miss)
{
	unsigned cap = min_u(request->ceiling, request->limit);
	unsigned above = least_above(geometry, request);
	const unsigned tries[] = { cap, above };
	struct placement placement;
	struct cuset unused;

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		placement.count = level_or_whole(geometry, request, tries[i], &placement.cus);
		if (placement.count < request->floor || placement.count == 0 ||
		    (request->exact && placement.count != request->aim))
			continue;
		if (request->few_engines && request->engines == 0)
			gather(geometry, request, &placement);
		placement.effective = geometry_effective(geometry, &placement.cus);
		*ret = placement;
		return 0;
	}
	ret_miss->below = level_or_whole(geometry, request, request->aim, &unused);
	ret_miss->above = above;
	return -ENOSPC;
}
