/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/extend.h"

#include <string.h>

#include "util/base.h"
#include "core/mask/place.h"

/* One XCC: units (CUs, or WGPs) by engine. */
struct row {
	uint32_t must; /* engines of the base, as bits */
	unsigned free[CUSET_ENGINES], kept[CUSET_ENGINES];
};

struct rows {
	unsigned xccs, engines, step;
	unsigned width, height; /* of the base: engines on each XCC, units in each */
	struct row row[CUSET_XCCS];
};

static void rows_init(struct rows *rows, const struct geometry *g, const struct extend *request)
{
	memset(rows, 0, sizeof(*rows));
	rows->xccs = g->xccs;
	rows->engines = g->engines;
	rows->step = geometry_step(g);
	for (unsigned x = 0; x < g->xccs; x++) {
		struct row *row = &rows->row[x];

		for (unsigned e = 0; e < g->engines; e++) {
			unsigned pair = cuset_pair(x, e);
			uint32_t base = request->base->pair[pair];

			row->free[e] = cuset_count_word(request->avail.pair[pair]) / rows->step;
			row->kept[e] = cuset_count_word(request->keep.pair[pair] &
							request->avail.pair[pair]) /
				       rows->step;
			if (!base)
				continue;
			row->must |= UINT32_C(1) << e;
			rows->height = cuset_count_word(base) / rows->step;
		}
	}
	rows->width = (unsigned)__builtin_popcount(rows->row[0].must);
}

/* The engine to take next: of those with `least` units, the one that keeps most, then the
 * freest; CUSET_ENGINES if there is none. */
static unsigned next_engine(const struct rows *rows, const struct row *row, uint32_t taken,
			    unsigned least)
{
	unsigned best = CUSET_ENGINES;

	for (unsigned e = 0; e < rows->engines; e++) {
		if ((taken & (UINT32_C(1) << e)) || row->free[e] < max_u(least, 1))
			continue;
		if (best == CUSET_ENGINES || row->kept[e] > row->kept[best] ||
		    (row->kept[e] == row->kept[best] && row->free[e] > row->free[best]))
			best = e;
	}
	return best;
}

/* Units that m engines on this XCC can all have, those of the base among them; 0: there are no
 * m. */
static unsigned row_height(const struct rows *rows, const struct row *row, unsigned m)
{
	unsigned height = UINT32_MAX, n = 0;
	uint32_t taken = row->must;

	for (unsigned e = 0; e < rows->engines; e++)
		if (row->must & (UINT32_C(1) << e)) {
			height = min_u(height, row->free[e]);
			n++;
		}
	for (; n < m; n++) {
		unsigned freest = CUSET_ENGINES;

		for (unsigned e = 0; e < rows->engines; e++)
			if (!(taken & (UINT32_C(1) << e)) && row->free[e] > 0 &&
			    (freest == CUSET_ENGINES || row->free[e] > row->free[freest]))
				freest = e;
		if (freest == CUSET_ENGINES)
			return 0;
		taken |= UINT32_C(1) << freest;
		height = min_u(height, row->free[freest]);
	}
	return height;
}

/* m engines on every XCC with k units in each. Returns how many of them are kept. */
static unsigned choose_engines(const struct rows *rows, unsigned m, unsigned k,
			       uint32_t ret[static CUSET_XCCS])
{
	unsigned kept = 0;

	for (unsigned x = 0; x < rows->xccs; x++) {
		const struct row *row = &rows->row[x];

		ret[x] = row->must;
		for (unsigned n = rows->width; n < m; n++)
			ret[x] |= UINT32_C(1) << next_engine(rows, row, ret[x], k);
		for (unsigned e = 0; e < rows->engines; e++)
			if (ret[x] & (UINT32_C(1) << e))
				kept += min_u(row->kept[e], k);
	}
	return kept;
}

static void take(const struct geometry *g, const struct rows *rows, const struct extend *request,
		 const uint32_t engines[static CUSET_XCCS], unsigned k, struct cuset *ret)
{
	struct place_request pick = { .avail = request->avail,
				      .preferred = request->preferred,
				      .keep = &request->keep };

	*ret = *request->base;
	for (unsigned x = 0; x < rows->xccs; x++)
		for (unsigned e = 0; e < rows->engines; e++) {
			unsigned pair = cuset_pair(x, e);
			unsigned has = cuset_count_word(ret->pair[pair]) / rows->step;

			if ((engines[x] & (UINT32_C(1) << e)) && has < k)
				place_pick(g, &pick, pair, k - has, ret);
		}
}

/* What m engines can have on every XCC within the cap; less than the base: 0. */
static unsigned best_height(const struct rows *rows, unsigned m, unsigned cap)
{
	unsigned k = cap / (rows->xccs * m * rows->step);

	for (unsigned x = 0; x < rows->xccs; x++)
		k = min_u(k, row_height(rows, &rows->row[x], m));
	return k < rows->height ? 0 : k;
}

unsigned extend(const struct geometry *geometry, const struct extend *asked, struct cuset *ret)
{
	struct extend request = *asked;
	unsigned best = cuset_count(asked->base), best_kept = 0, whole;
	uint32_t engines[CUSET_XCCS];
	struct rows rows;

	cuset_add(&request.avail, asked->base);
	rows_init(&rows, geometry, &request);
	*ret = *asked->base;
	for (unsigned m = rows.width; m <= rows.engines; m++) {
		unsigned k = best_height(&rows, m, request.cap);
		unsigned count = rows.xccs * m * k * rows.step, kept;

		if (k == 0 || count < best)
			continue;
		kept = choose_engines(&rows, m, k, engines);
		if (count == best && kept <= best_kept)
			continue;
		best = count;
		best_kept = kept;
		take(geometry, &rows, &request, engines, k, ret);
	}
	whole = cuset_count(asked->all);
	if (whole > best && whole <= request.cap && cuset_within(asked->all, &request.avail)) {
		*ret = *asked->all;
		best = whole;
	}
	return best;
}
