/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/layout/columns.h"

#include <string.h>

#include "core/mask/place.h"
#include "util/base.h"

static unsigned units_in(const struct geometry *geometry, const struct cuset *set, unsigned xcc,
			 unsigned engine)
{
	return cuset_count_word(set->pair[cuset_pair(xcc, engine)]) / geometry_step(geometry);
}

/* Units of leases in this engine that are in the column on the first XCC, too. */
static unsigned held_in(const struct columns *columns, const struct cuset **held, size_t n,
			unsigned xcc, unsigned engine, unsigned column)
{
	unsigned units = 0;

	for (size_t i = 0; xcc > 0 && i < n; i++)
		units += min_u(units_in(columns->geometry, held[i], 0, columns->engine[0][column]),
			       units_in(columns->geometry, held[i], xcc, engine));
	return units;
}

static unsigned rank_of(const struct columns *columns, const struct column_order *order, unsigned x,
			unsigned e, unsigned c)
{
	unsigned own = units_in(columns->geometry, order->own, x, e);
	unsigned pool = units_in(columns->geometry, order->pool, x, e);
	unsigned held = held_in(columns, order->held, order->n_held, x, e, c);
	unsigned bases = held_in(columns, order->bases, order->n_bases, x, e, c);

	switch (order->match) {
	case MATCH_HELD: return bases << 24 | held << 16 | own << 8 | pool;
	case MATCH_OWN: return bases << 24 | own << 16 | pool << 8 | held;
	default: return units_in(columns->geometry, order->all, x, e);
	}
}

void columns_init(struct columns *columns, const struct geometry *geometry,
		  const struct column_order *order)
{
	*columns = (struct columns){ .geometry = geometry, .n = geometry->engines };
	for (unsigned x = 0; x < geometry->xccs; x++)
		for (unsigned c = 0, taken = 0; c < columns->n; c++) {
			unsigned best = CUSET_ENGINES, best_rank = 0;

			for (unsigned e = 0; e < columns->n; e++) {
				unsigned rank = rank_of(columns, order, x, e, c);

				if ((taken >> e & 1) || (best < CUSET_ENGINES && rank <= best_rank))
					continue;
				best = e;
				best_rank = rank;
			}
			columns->engine[x][c] = (uint8_t)best;
			taken |= 1U << best;
		}
}

void columns_count_each(const struct columns *columns, const struct cuset *set,
			uint8_t ret[static CUSET_XCCS][LAYOUT_COLUMNS])
{
	memset(ret, 0, CUSET_XCCS * sizeof(*ret));
	for (unsigned x = 0; x < columns->geometry->xccs; x++)
		for (size_t c = 0; c < columns->n; c++)
			ret[x][c] = (uint8_t)units_in(columns->geometry, set, x,
						      columns->engine[x][c]);
}

void columns_count(const struct columns *columns, const struct cuset *set,
		   unsigned ret[static LAYOUT_COLUMNS])
{
	uint8_t counts[CUSET_XCCS][LAYOUT_COLUMNS];

	columns_count_each(columns, set, counts);
	memset(ret, 0, LAYOUT_COLUMNS * sizeof(*ret));
	for (size_t c = 0; c < columns->n; c++) {
		ret[c] = counts[0][c];
		for (unsigned x = 1; x < columns->geometry->xccs; x++)
			ret[c] = min_u(ret[c], counts[x][c]);
	}
}

unsigned columns_unit(const struct columns *columns)
{
	return columns->geometry->xccs * geometry_step(columns->geometry);
}

void columns_pick(const struct columns *columns, const struct rect *rect, const struct cuset *avail,
		  const struct cuset *preferred, struct cuset *mask)
{
	const struct place_request request = { .avail = *avail, .preferred = *preferred };

	for (unsigned x = 0; x < columns->geometry->xccs; x++)
		for (size_t c = 0; c < columns->n; c++) {
			unsigned engine = columns->engine[x][c], pair = cuset_pair(x, engine);
			unsigned has = units_in(columns->geometry, mask, x, engine);
			uint32_t more = avail->pair[pair] & ~mask->pair[pair];
			unsigned units = cuset_count_word(more) / geometry_step(columns->geometry);

			if ((rect->columns >> c & 1) && has < rect->height)
				place_pick(columns->geometry, &request, pair,
					   min_u(rect->height - has, units), mask);
		}
}
