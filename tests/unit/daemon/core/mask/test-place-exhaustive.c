/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Small GPUs, where everything can be tried: place() against all subsets of what is free. A
 * quarter of the states, all of them under `tests/run --long`. */

#include "check.h"
#include "seed.h"
#include "util/base.h"
#include "core/mask/place.h"

#define UNITS 12U /* CUs, or WGPs, of the largest GPU that is tried */

/* Counts that some valid set has, as bits: by number of engines (0: any), then by whether
 * the engines must be the same on every XCC. */
struct counts {
	uint32_t rectangle[CUSET_ENGINES + 1][2];
	uint32_t any[CUSET_ENGINES + 1];
};

struct unit {
	unsigned pair;
	uint32_t bits;
};

struct small {
	struct geometry geometry;
	struct cuset all;
	struct unit unit[UNITS];
	unsigned n;
	struct counts counts; /* of what is free now */
	unsigned seed;
};

static void list_units(struct small *s)
{
	unsigned step = geometry_step(&s->geometry);

	s->n = 0;
	geometry_all(&s->geometry, &s->all);
	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned bit = 0; bit < 32; bit += step)
			if (s->all.pair[pair] & (UINT32_C(1) << bit)) {
				CHECK(s->n < UNITS);
				s->unit[s->n++] = (struct unit){ pair, ((1U << step) - 1) << bit };
			}
}

static void set_of(const struct small *s, uint32_t units, struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < s->n; i++)
		if (units & (UINT32_C(1) << i))
			ret->pair[s->unit[i].pair] |= s->unit[i].bits;
}

/* ---- the definitions of core/mask/place.h, said again ---------------------------------------- */

struct traits {
	bool on_every_xcc, same_engines, as_many_engines, level;
	unsigned engines, count;
};

static struct traits traits_of(const struct geometry *g, const struct cuset *set)
{
	struct traits t = {
		.on_every_xcc = true, .same_engines = true, .as_many_engines = true, .level = true
	};
	unsigned height = 0, all = 0, first = 0;

	for (unsigned x = 0; x < g->xccs; x++) {
		unsigned mine = 0;

		for (unsigned e = 0; e < g->engines; e++) {
			unsigned n = (unsigned)__builtin_popcount(set->pair[cuset_pair(x, e)]);

			if (n == 0)
				continue;
			mine |= 1U << e;
			t.level &= height == 0 || n == height;
			height = n;
			t.count += n;
		}
		if (x == 0)
			first = mine;
		all |= mine;
		t.on_every_xcc &= mine != 0;
		t.same_engines &= mine == first;
		t.as_many_engines &= __builtin_popcount(mine) == __builtin_popcount(first);
	}
	t.engines = (unsigned)__builtin_popcount(all);
	return t;
}

static void count_set(struct small *s, const struct cuset *set)
{
	struct traits t = traits_of(&s->geometry, set);
	bool rectangle = t.level && t.as_many_engines, whole = cuset_equal(set, &s->all);
	uint32_t bit = UINT32_C(1) << t.count;

	if (t.on_every_xcc)
		s->counts.any[0] |= bit;
	if (t.on_every_xcc && (t.same_engines || whole))
		s->counts.any[t.engines] |= bit;
	if (!t.on_every_xcc || !(rectangle || whole))
		return;
	s->counts.rectangle[0][0] |= bit;
	if (!t.same_engines && !whole)
		return;
	s->counts.rectangle[0][1] |= bit;
	s->counts.rectangle[t.engines][0] |= bit;
	s->counts.rectangle[t.engines][1] |= bit;
}

static void count_subsets(struct small *s, uint32_t free)
{
	memset(&s->counts, 0, sizeof(s->counts));
	for (uint32_t units = free; units; units = (units - 1) & free) {
		struct cuset set;

		set_of(s, units, &set);
		count_set(s, &set);
	}
}

/* ---- one request ------------------------------------------------------------------------ */

static unsigned most_within(uint32_t counts, unsigned low, unsigned high)
{
	for (unsigned c = high < 31 ? high : 31; c >= low && c > 0; c--)
		if (counts & (UINT32_C(1) << c))
			return c;
	return 0;
}

static unsigned least_within(uint32_t counts, unsigned low, unsigned high)
{
	for (unsigned c = low; c <= high && c < 32; c++)
		if (counts & (UINT32_C(1) << c))
			return c;
	return 0;
}

static uint32_t counts_for(const struct small *s, const struct place_request *r)
{
	return r->any_shape ? s->counts.any[r->engines]
			    : s->counts.rectangle[r->engines][r->columns];
}

static unsigned expected(uint32_t counts, const struct place_request *r)
{
	unsigned cap = min_u(r->ceiling, r->limit), best;

	if (r->exact)
		return most_within(counts, r->aim, r->aim);
	best = most_within(counts, r->floor, cap);
	return best ? best : least_within(counts, r->aim + 1, r->limit);
}

static void check_placement(const struct small *s, const struct place_request *r,
			    const struct placement *p)
{
	struct traits t = traits_of(&s->geometry, &p->cus);

	CHECK(cuset_within(&p->cus, &r->avail) && t.count == p->count && t.on_every_xcc);
	CHECK(geometry_effective(&s->geometry, &p->cus) == p->effective);
	CHECK(r->engines == 0 || t.engines == r->engines);
	if (s->geometry.wgp)
		for (unsigned i = 0; i < CUSET_PAIRS; i++)
			CHECK(!((p->cus.pair[i] ^ p->cus.pair[i] >> 1) & UINT32_C(0x55555555)));
	if (r->any_shape || cuset_equal(&p->cus, &s->all))
		return;
	CHECK(t.level && t.as_many_engines && p->effective == p->count);
	CHECK(t.same_engines || !(r->columns || r->engines));
}

static void check_request(const struct small *s, const struct place_request *r)
{
	uint32_t counts = counts_for(s, r);
	unsigned want = expected(counts, r);
	struct place_miss miss = { 0 };
	struct placement p;

	if (place(&s->geometry, r, &p, &miss) == 0) {
		CHECK(p.count == want);
		check_placement(s, r, &p);
		CHECK(place_fits(&s->geometry, r));
		return;
	}
	CHECK(want == 0 && !place_fits(&s->geometry, r));
	CHECK(miss.below == most_within(counts, 1, r->aim));
	CHECK(miss.above == least_within(counts, r->aim + 1, r->limit));
}

static void check_bounds(const struct small *s, struct place_request *r)
{
	unsigned cus = cuset_count(&s->all);

	for (r->aim = 1; r->aim <= cus + 1; r->aim++) {
		r->exact = true;
		r->ceiling = r->limit = r->aim;
		r->floor = 1;
		check_request(s, r);
		r->exact = false;
		for (r->floor = 1; r->floor <= r->aim; r->floor++)
			for (r->limit = r->aim; r->limit <= cus + 3; r->limit += 3)
				for (r->ceiling = r->aim; r->ceiling <= r->limit; r->ceiling += 3)
					check_request(s, r);
	}
}

static void check_all_requests(const struct small *s, const struct cuset *avail)
{
	struct place_request r = { .all = &s->all, .avail = *avail, .preferred = *avail };

	for (unsigned kind = 0; kind < 4; kind++)
		for (r.engines = 0; r.engines <= s->geometry.engines; r.engines++) {
			r.any_shape = kind & 1;
			r.columns = r.few_engines = kind & 2;
			check_bounds(s, &r);
		}
}

static void check_some_request(struct small *s, const struct cuset *avail)
{
	unsigned cus = cuset_count(&s->all), kind = (unsigned)rand_r(&s->seed) % 8;
	struct place_request r = { .all = &s->all, .avail = *avail, .preferred = *avail };
	struct cuset keep;

	set_of(s, (uint32_t)rand_r(&s->seed), &keep);
	r.keep = kind & 4 ? &keep : NULL;
	r.any_shape = kind & 1;
	r.columns = r.few_engines = kind & 2;
	r.engines = (unsigned)rand_r(&s->seed) % (s->geometry.engines + 1);
	r.aim = 1 + (unsigned)rand_r(&s->seed) % (cus + 1);
	r.floor = 1 + (unsigned)rand_r(&s->seed) % r.aim;
	r.ceiling = r.aim + (unsigned)rand_r(&s->seed) % 4;
	r.limit = r.aim + (unsigned)rand_r(&s->seed) % 4;
	check_request(s, &r);
}

/* Each array's CUs are alike: the free ones at its beginning stand for any as many. */
static bool is_canonical(const struct small *s, uint32_t free)
{
	for (unsigned i = 1; i < s->n; i++)
		if (s->unit[i].pair == s->unit[i - 1].pair &&
		    (s->unit[i].bits > 0xffff) == (s->unit[i - 1].bits > 0xffff) &&
		    (free >> i & 1) && !(free >> (i - 1) & 1))
			return false;
	return true;
}

TEST(place_finds_the_best_of_all_subsets)
{
	static const struct geometry shapes[] = {
		{ 1, 4, 1, 4, false, { { { 3 }, { 3 }, { 3 }, { 3 } } } },
		{ 1, 4, 1, 4, false, { { { 4 }, { 3 }, { 0 }, { 1 } } } },
		{ 1, 3, 1, 4, false, { { { 4 }, { 4 }, { 4 } } } },
		{ 1, 2, 2, 4, true, { { { 4, 4 }, { 4, 2 } } } },
		{ 1, 1, 2, 4, false, { { { 4, 3 } } } },
		{ 2, 2, 1, 2, false, { { { 2 }, { 2 } }, { { 2 }, { 2 } } } },
		{ 2, 2, 1, 4, false, { { { 4 }, { 1 } }, { { 2 }, { 2 } } } },
		{ 2, 3, 1, 2, false, { { { 2 }, { 1 }, { 0 } }, { { 0 }, { 2 }, { 2 } } } },
		{ 3, 2, 1, 2, false, { { { 2 }, { 1 } }, { { 1 }, { 2 } }, { { 2 }, { 0 } } } },
	};
	struct small s = { .seed = seed_nth(SEED_OF_RUN("SEED"), 0) };
	unsigned one_in = check_one_in(12, 1); /* states */

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		s.geometry = shapes[i];
		list_units(&s);
		for (uint32_t free = 0; free < UINT32_C(1) << s.n; free++) {
			struct cuset avail;

			if ((unsigned)rand_r(&s.seed) % one_in != 0)
				continue;
			count_subsets(&s, free);
			set_of(&s, free, &avail);
			if (is_canonical(&s, free))
				check_all_requests(&s, &avail);
			for (unsigned j = 0; j < 8; j++)
				check_some_request(&s, &avail);
		}
	}
}
