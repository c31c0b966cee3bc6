/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/score.h"

#include "util/base.h"

static bool comes_before(const struct columns *c, uint32_t closed, unsigned a, unsigned b)
{
	if (c->free[a] != c->free[b])
		return c->free[a] > c->free[b];
	if (c->kept[a] != c->kept[b])
		return c->kept[a] > c->kept[b];
	return (closed >> a & 1) > (closed >> b & 1);
}

void columns_init(struct columns *columns, unsigned n, const unsigned *free, const unsigned *kept,
		  uint32_t closed)
{
	struct columns by_engine = { .n = n };

	for (unsigned e = 0; e < n; e++) {
		unsigned at = e;

		by_engine.free[e] = free[e];
		by_engine.kept[e] = kept[e];
		while (at > 0 && comes_before(&by_engine, closed, e, columns->engine[at - 1])) {
			columns->engine[at] = columns->engine[at - 1];
			at--;
		}
		columns->engine[at] = e;
	}
	columns->n = n;
	columns->closed = columns->same = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned e = columns->engine[i];

		columns->free[i] = free[e];
		columns->kept[i] = kept[e];
		columns->closed |= (closed >> e & 1) << i;
		if (i > 0 && !comes_before(&by_engine, closed, columns->engine[i - 1], e))
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

static uint64_t score(const struct columns *c, uint32_t taken, unsigned m, unsigned k,
		      unsigned unit, bool realtime)
{
	unsigned kept = 0;

	for (uint32_t left = taken; left; left &= left - 1)
		kept += min_u(c->kept[__builtin_ctz(left)], k * unit);
	return (uint64_t)kept << 40 | (uint64_t)(realtime ? CUSET_ENGINES - m : 0) << 32 |
	       score_left(c, taken, k, realtime ? c->closed | taken : c->closed);
}

/* The next larger number with as many bits. */
static uint32_t next_set(uint32_t set)
{
	uint32_t lowest = set & (~set + 1), ripple = set + lowest;

	return ripple | ((set ^ ripple) / lowest) >> 2;
}

uint64_t score_engines(const struct columns *columns, unsigned m, unsigned k, unsigned unit,
		       bool realtime, uint32_t *ret_engines)
{
	uint32_t best = 0, end = 1;
	uint64_t best_score = 0;

	for (unsigned i = 0; i < columns->n && columns->free[i] >= k; i++)
		end <<= 1;
	for (uint32_t set = (UINT32_C(1) << m) - 1; set < end; set = next_set(set)) {
		uint64_t s;

		/* Of engines that are alike, the first. */
		if (set & columns->same & ~(set << 1))
			continue;
		s = score(columns, set, m, k, unit, realtime) + 1;
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
