/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "best-layout.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

/* ---- fair shares ------------------------------------------------------------------------ */

struct part {
	double least, most, weight, has;
};

static void fill(struct part *parts, size_t n, double amount)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < n; i++)
		high = fmax(high, fmax(parts[i].most, parts[i].least) / parts[i].weight);
	for (unsigned round = 0; round < 80; round++) {
		double level = (low + high) / 2, sum = 0;

		for (size_t i = 0; i < n; i++) {
			struct part *p = &parts[i];

			p->has = fmax(fmin(level * p->weight, p->most), p->least);
			sum += p->has;
		}
		*(sum < amount ? &low : &high) = level;
	}
}

static size_t leases_of(const struct best_lease *leases, size_t n, unsigned account,
			struct part ret[static BEST_SHARES])
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (leases[i].account == account)
			ret[found++] = (struct part){ leases[i].least, leases[i].most,
						      leases[i].weight, 0 };
	return found;
}

static struct part account_of(const struct best_lease *leases, size_t n, unsigned account,
			      double units)
{
	struct part own[BEST_SHARES], ret = { 0 };
	size_t found = leases_of(leases, n, account, own);

	for (size_t i = 0; i < found; i++) {
		ret.least += own[i].least;
		ret.most += fmax(own[i].least, own[i].most);
		ret.weight = fmax(ret.weight, own[i].weight);
	}
	ret.most = fmin(ret.most, units);
	return ret;
}

void best_fair(struct best_lease *leases, size_t n, double units)
{
	struct part accounts[BEST_SHARES];
	unsigned name[BEST_SHARES];
	size_t n_accounts = 0;

	CHECK(n <= BEST_SHARES);
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < i && leases[j].account != leases[i].account)
			j++;
		if (j < i)
			continue;
		name[n_accounts] = leases[i].account;
		accounts[n_accounts++] = account_of(leases, n, leases[i].account, units);
	}
	fill(accounts, n_accounts, units);
	for (size_t a = 0; a < n_accounts; a++) {
		struct part own[BEST_SHARES];
		size_t k = 0;

		fill(own, leases_of(leases, n, name[a], own), accounts[a].has);
		for (size_t i = 0; i < n; i++)
			if (leases[i].account == name[a])
				leases[i].fair = own[k++].has;
	}
}

/* ---- do rectangles of so many units fit? ------------------------------------------------- */

#define STATES (1U << 18)
#define NODES_MAX 20000000U

/* Columns, in descending order, in which the leases from one on do not fit. */
struct state {
	uint64_t key[2];
	uint32_t search;
};

static struct state states[STATES];
static uint32_t search_number;

struct search {
	struct best_lease leases[BEST_LEASES];
	unsigned want[BEST_LEASES]; /* units, in descending order */
	size_t n, n_columns, n_states;
	unsigned nodes;
};

static int by_size(const void *left, const void *right)
{
	const struct best_column *a = left, *b = right;

	return a->own != b->own ? (a->own < b->own) - (a->own > b->own)
				: (a->lent < b->lent) - (a->lent > b->lent);
}

static struct state *find_state(const struct best_column *columns, size_t n, size_t lease)
{
	uint64_t key[2] = { lease, 1 };
	size_t at;

	for (size_t c = 0; c < n; c++)
		key[c / 4] = key[c / 4] << 12 | columns[c].own << 6 | columns[c].lent;
	at = (key[0] * UINT64_C(0x9e3779b97f4a7c15) ^ key[1] * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 46;
	while (states[at].search == search_number &&
	       (states[at].key[0] != key[0] || states[at].key[1] != key[1]))
		at = (at + 1) % STATES;
	if (states[at].search != search_number)
		memcpy(states[at].key, key, sizeof(key));
	return &states[at];
}

static bool fit_from(struct search *s, size_t i, const struct best_column *columns);

/* Takes h units of each of these columns, h_own of them own ones in those of `solid`. */
static bool take(struct search *s, size_t i, const struct best_column *columns, unsigned picked,
		 unsigned h, unsigned solid, unsigned h_own)
{
	struct best_column left[BEST_COLUMNS];

	memcpy(left, columns, sizeof(left));
	for (size_t c = 0; c < s->n_columns; c++) {
		unsigned own = solid >> c & 1 ? h_own : 0;

		if (!(picked >> c & 1))
			continue;
		if (h > columns[c].lent + own)
			own = h - columns[c].lent;
		if (own > columns[c].own)
			return false;
		left[c].own -= own;
		left[c].lent -= h - own;
	}
	qsort(left, s->n_columns, sizeof(*left), by_size);
	return fit_from(s, i + 1, left);
}

/* With its least in any of the columns. */
static bool take_solid(struct search *s, size_t i, const struct best_column *columns,
		       unsigned picked, unsigned h)
{
	for (unsigned solid = picked; solid; solid = (solid - 1) & picked) {
		unsigned k = (unsigned)__builtin_popcount(solid);
		unsigned h_own = (s->leases[i].least + k - 1) / k;

		if (h_own <= h && take(s, i, columns, picked, h, solid, h_own))
			return true;
	}
	return false;
}

/* Are the columns the first ones of those that are alike, all with h units? */
static bool is_pick(const struct search *s, const struct best_column *columns, unsigned picked,
		    unsigned h)
{
	for (size_t c = 0; c < s->n_columns; c++) {
		if (!(picked >> c & 1))
			continue;
		if (columns[c].own + columns[c].lent < h)
			return false;
		if (c > 0 && !(picked >> (c - 1) & 1) && by_size(&columns[c], &columns[c - 1]) == 0)
			return false;
	}
	return true;
}

static bool enough(const struct search *s, size_t i, const struct best_column *columns)
{
	unsigned wanted = 0, has = 0;

	for (; i < s->n; i++)
		wanted += s->want[i];
	for (size_t c = 0; c < s->n_columns; c++)
		has += columns[c].own + columns[c].lent;
	return wanted <= has;
}

static bool try_all(struct search *s, size_t i, const struct best_column *columns)
{
	for (unsigned picked = 1; picked < 1U << s->n_columns; picked++) {
		unsigned k = (unsigned)__builtin_popcount(picked), h = (s->want[i] + k - 1) / k;
		bool lent = false;

		if (k * h > s->leases[i].most || !is_pick(s, columns, picked, h))
			continue;
		for (size_t c = 0; c < s->n_columns; c++)
			lent |= picked >> c & 1 && columns[c].lent > 0;
		if (lent ? take_solid(s, i, columns, picked, h)
			 : take(s, i, columns, picked, h, picked, h))
			return true;
	}
	return false;
}

static bool fit_from(struct search *s, size_t i, const struct best_column *columns)
{
	struct state *state;

	if (i == s->n)
		return true;
	if (!enough(s, i, columns) || s->nodes == 0)
		return false;
	s->nodes--;
	state = find_state(columns, s->n_columns, i);
	if (state->search == search_number)
		return false;
	if (try_all(s, i, columns))
		return true;
	state = find_state(columns, s->n_columns, i);
	if (s->n_states < STATES / 2) {
		state->search = search_number;
		s->n_states++;
	}
	return false;
}

static int by_want(const void *left, const void *right)
{
	const struct best_lease *a = left, *b = right;

	return (a->fair < b->fair) - (a->fair > b->fair);
}

/* Can each lease have this part of its fair share? -1: the search was given up. */
static int fits(const struct best_column *columns, size_t n_columns,
		const struct best_lease *leases, size_t n, double part)
{
	struct search s = { .n = n, .n_columns = n_columns, .nodes = NODES_MAX };
	struct best_column sorted[BEST_COLUMNS] = { 0 };

	memcpy(sorted, columns, n_columns * sizeof(*columns));
	qsort(sorted, n_columns, sizeof(*sorted), by_size);
	memcpy(s.leases, leases, n * sizeof(*leases));
	for (size_t i = 0; i < n; i++)
		s.leases[i].fair = fmax(leases[i].least, ceil(leases[i].fair * part - 1e-6));
	qsort(s.leases, n, sizeof(*s.leases), by_want);
	for (size_t i = 0; i < n; i++)
		s.want[i] = (unsigned)s.leases[i].fair;
	search_number++;
	if (fit_from(&s, 0, sorted))
		return 1;
	return s.nodes > 0 ? 0 : -1;
}

/* ---- levels ------------------------------------------------------------------------------ */

static int by_number(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Every part of a fair share that is a whole number of units. */
static size_t find_parts(const struct best_lease *leases, size_t n, double *ret)
{
	size_t found = 0;

	ret[found++] = 0;
	for (size_t i = 0; i < n; i++)
		for (unsigned units = 1; units <= (unsigned)leases[i].fair + 1; units++)
			ret[found++] = fmin(1, units / leases[i].fair);
	qsort(ret, found, sizeof(*ret), by_number);
	return found;
}

double best_level(const struct best_column *columns, size_t n_columns,
		  const struct best_lease *leases, size_t n)
{
	double parts[BEST_LEASES * (BEST_COLUMNS * CUSET_ARRAY_CUS * CUSET_ARRAYS + 2) + 1];
	size_t low = 0, high;
	int r;

	CHECK(n > 0 && n <= BEST_LEASES && n_columns <= BEST_COLUMNS);
	high = find_parts(leases, n, parts) - 1;
	while (low < high) {
		size_t middle = high - (high - low) / 2;

		r = fits(columns, n_columns, leases, n, parts[middle]);
		if (r < 0)
			return -1;
		low = r > 0 ? middle : low;
		high = r > 0 ? high : middle - 1;
	}
	r = fits(columns, n_columns, leases, n, parts[low]);
	return r > 0 ? parts[low] : r;
}

/* ---- columns ----------------------------------------------------------------------------- */

static unsigned bits_of(uint32_t word)
{
	unsigned n = 0;

	for (; word; word &= word - 1)
		n++;
	return n;
}

size_t best_columns(const struct geometry *geometry, const struct cuset *blocked,
		    const struct cuset *lent, struct best_column ret[static BEST_COLUMNS])
{
	unsigned step = geometry->wgp ? 2 : 1;

	for (unsigned x = 0; x < geometry->xccs; x++) {
		struct best_column row[BEST_COLUMNS] = { 0 };

		for (unsigned e = 0; e < geometry->engines; e++) {
			unsigned pair = 8 * x + e;

			for (unsigned a = 0; a < geometry->arrays; a++) {
				uint32_t all = ((UINT32_C(1) << geometry->active[x][e][a]) - 1)
					       << 16 * a;
				uint32_t free = all & ~blocked->pair[pair];

				row[e].own += bits_of(free & ~lent->pair[pair]) / step;
				row[e].lent += bits_of(free & lent->pair[pair]) / step;
			}
		}
		qsort(row, geometry->engines, sizeof(*row), by_size);
		for (unsigned e = 0; e < geometry->engines; e++) {
			unsigned all = row[e].own + row[e].lent;

			if (x > 0 && ret[e].own + ret[e].lent < all)
				all = ret[e].own + ret[e].lent;
			if (x == 0 || row[e].own < ret[e].own)
				ret[e].own = row[e].own;
			ret[e].lent = all - ret[e].own;
		}
	}
	return geometry->engines;
}
