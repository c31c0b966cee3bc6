/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Layouts of leases on the columns of all profiles and of random ones, beside the best that there is. */

#include "core/layout/layout.h"

#include <math.h>
#include <string.h>

#include "best-layout.h"
#include "check.h"
#include "core/layout/columns.h"
#include "core/mask/gpu-info.h"
#include "seed.h"
#include "shipped-gpus.h"

#define TERMS 5U

/* Leases with the columns of a GPU. */
struct puzzle {
	struct layout layout;
	struct layout_term terms[TERMS];
	struct best_lease leases[TERMS];
};

static unsigned units_of(const struct puzzle *p)
{
	unsigned units = 0;

	for (size_t c = 0; c < p->layout.n_columns; c++)
		units += p->layout.free[c];
	return units;
}

static void puzzle_init(struct puzzle *p, const unsigned *columns, size_t n_columns, size_t n)
{
	memset(p, 0, sizeof(*p));
	p->layout = (struct layout){ .n_columns = n_columns, .n_xccs = 1, .n = n };
	memcpy(p->layout.free, columns, n_columns * sizeof(*columns));
	memset(p->terms, 0xff, sizeof(p->terms)); /* own: a least can be anywhere */
	for (size_t i = 0; i < n; i++)
		memset(p->terms[i].held, 0, sizeof(p->terms[i].held));
	for (size_t i = 0; i < n; i++)
		p->leases[i] = (struct best_lease){
			.least = 1, .most = units_of(p), .weight = 1, .account = (unsigned)i
		};
}

/* Lays out the leases with their fair shares. */
static int find(struct puzzle *p)
{
	p->layout.terms = p->terms;
	best_fair(p->leases, p->layout.n, units_of(p));
	for (size_t i = 0; i < p->layout.n; i++) {
		p->terms[i].least = p->leases[i].least;
		p->terms[i].most = p->leases[i].most;
		p->terms[i].share = (unsigned)(p->leases[i].fair * LAYOUT_UNIT);
	}
	return layout_find(&p->layout);
}

/* Each has a rectangle between its least and its most, and no unit belongs to two. */
static void check_sound(const struct puzzle *p)
{
	unsigned used[LAYOUT_COLUMNS] = { 0 };

	for (size_t i = 0; i < p->layout.n; i++) {
		const struct rect *rect = &p->terms[i].rect;

		CHECK(rect_area(rect) >= p->leases[i].least);
		CHECK(rect_area(rect) <= p->leases[i].most ||
		      rect_area(rect) == p->leases[i].least);
		CHECK(rect->columns >> p->layout.n_columns == 0);
		CHECK(layout_has_least(&p->layout, &p->terms[i], rect));
		for (size_t c = 0; c < p->layout.n_columns; c++)
			used[c] += rect->columns >> c & 1 ? rect->height : 0;
	}
	for (size_t c = 0; c < p->layout.n_columns; c++)
		CHECK(used[c] <= p->layout.free[c]);
}

static double worst_of(const struct puzzle *p)
{
	double worst = 1;

	for (size_t i = 0; i < p->layout.n; i++)
		worst = fmin(worst, rect_area(&p->terms[i].rect) / p->leases[i].fair);
	return worst;
}

static double best_of(const struct puzzle *p)
{
	struct best_column columns[BEST_COLUMNS];

	for (size_t c = 0; c < p->layout.n_columns; c++)
		columns[c] = (struct best_column){ .own = p->layout.free[c] };
	return best_level(columns, p->layout.n_columns, p->leases, p->layout.n);
}

/* Is it as good as the best one? Both find nothing, or neither. */
static bool is_best(struct puzzle *p)
{
	int r = find(p);
	double best = best_of(p);

	CHECK(r >= 0);
	if (r == 0)
		return best <= 0;
	check_sound(p);
	return best < 0 || worst_of(p) > best - 0.005;
}

TEST(equal_leases_on_every_gpu_have_the_best_that_there_is)
{
	struct gpu_info infos[SHIPPED_GPUS_MAX];
	char names[SHIPPED_GPUS_MAX][64];
	size_t n_infos = load_shipped_gpus(infos, names);
	const struct cuset none = { 0 };

	for (size_t i = 0; i < n_infos; i++)
		for (size_t n = 1; n <= TERMS; n++) {
			struct best_column columns[BEST_COLUMNS];
			unsigned units[LAYOUT_COLUMNS] = { 0 };
			struct puzzle p;
			size_t k = best_columns(&infos[i].geometry, &none, &none, columns);

			for (size_t c = 0; c < k; c++)
				units[c] = columns[c].own;
			puzzle_init(&p, units, k, n);
			if (!is_best(&p))
				printf("%s: %zu leases: %.3f of %.3f\n", names[i], n, worst_of(&p),
				       best_of(&p));
			CHECK(worst_of(&p) > best_of(&p) - 0.005);
		}
}

static unsigned below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static void random_puzzle(struct puzzle *p, unsigned *seed, bool mixed)
{
	unsigned height = 2 + below(seed, 14), lowest = height, columns[LAYOUT_COLUMNS];
	size_t n_columns = 1 + below(seed, height > 9 ? 4 : 6);

	for (size_t c = 0; c < n_columns; c++) {
		columns[c] = below(seed, 3) ? height : below(seed, height + 1);
		lowest = columns[c] < lowest ? columns[c] : lowest;
	}
	puzzle_init(p, columns, n_columns, 1 + below(seed, TERMS));
	for (size_t i = 0; mixed && i < p->layout.n; i++) {
		unsigned units = units_of(p), account = below(seed, TERMS);
		struct best_lease *lease = &p->leases[i];

		/* A base has exactly the least. */
		lease->least = below(seed, 2) ? 1 : 1 + below(seed, lowest / 2 + 1);
		lease->most = below(seed, 2) ? units : 1 + below(seed, units + 1);
		lease->most = lease->most < lease->least ? lease->least : lease->most;
		lease->weight = below(seed, 2) ? 1 : 3;
		lease->account = account < i ? p->leases[account].account : (unsigned)i;
	}
}

/* Returns how many layouts are not the best. */
static unsigned count_misses(bool mixed, unsigned runs)
{
	unsigned misses = 0, seed = seed_nth(SEED_OF_RUN("SEED"), mixed);

	for (unsigned run = 0; run < runs; run++) {
		struct puzzle p;

		random_puzzle(&p, &seed, mixed);
		misses += !is_best(&p);
	}
	printf("%u of %u are not the best\n", misses, runs);
	fflush(stdout);
	return misses;
}

TEST(leases_on_random_columns_rarely_have_less_than_the_best)
{
	unsigned runs = check_rounds(1500, 30000);

	CHECK_REACHED(count_misses(false, runs) <= runs / 200);
	CHECK_REACHED(count_misses(true, runs) <= runs / 50);
}

/* An MI300X in units of 8 CUs: a fixed lease has 9, three leases have the other columns, and another one begins. Three of
 * 7 leave 3 x 2 for the fourth. */
TEST(leases_that_are_not_the_worst_off_have_the_best_that_there_is)
{
	unsigned areas[TERMS];
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 9, 10, 9, 9 }, 4, 5);
	p.leases[0].least = p.leases[0].most = 9;
	for (size_t i = 0; i < 4; i++) {
		memset(p.terms[i].own, 0, sizeof(p.terms[i].own));
		p.terms[i].own[0][i] = (uint8_t)p.layout.free[i];
		p.terms[i].held[i] = p.layout.free[i];
	}
	CHECK(find(&p) == 1);
	check_sound(&p);
	for (size_t i = 0; i < TERMS; i++)
		areas[i] = rect_area(&p.terms[i].rect);
	layout_sort_levels(areas, TERMS);
	CHECK(areas[0] == 6 && areas[1] == 7 && areas[2] == 7);
}

/* A least of 11 is in one column, so more of it is 2 x 11: 2 x 7 has no room for it. */
TEST(columns_of_a_lease_are_as_high_as_its_least)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 11, 11, 11, 11 }, 4, 2);
	p.leases[0].least = 11;
	p.leases[1].most = 20;
	CHECK(find(&p) == 1);
	check_sound(&p);
	CHECK(rect_area(&p.terms[0].rect) == 22 && rect_area(&p.terms[1].rect) == 20);
}

TEST(lease_keeps_the_columns_that_it_has)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 15, 15, 15, 15 }, 4, 2);
	p.terms[0].held[2] = p.terms[0].held[3] = 15;
	CHECK(find(&p) == 1);
	CHECK(p.terms[0].rect.columns == 0xc && p.terms[0].rect.height == 15);
	CHECK(p.terms[1].rect.columns == 0x3 && p.terms[1].rect.height == 15);
}

/* Four of 30 units beside 4 x 10, 4 x 10 and 8 x 5: each of the three leaves a quarter. */
TEST(leases_shrink_within_what_they_have_for_a_new_one)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 15, 15, 15, 15, 15, 15, 15, 15 }, 8, 4);
	for (size_t c = 0; c < 8; c++) {
		p.terms[c < 4 ? 0 : 1].held[c] = 10;
		p.terms[2].held[c] = 5;
	}
	CHECK(find(&p) == 1);
	check_sound(&p);
	for (size_t i = 0; i < 3; i++)
		for (size_t c = 0; c < 8; c++)
			CHECK(!(p.terms[i].rect.columns >> c & 1) ||
			      p.terms[i].held[c] >= p.terms[i].rect.height);
	CHECK(worst_of(&p) > 1 - 1.0 / LAYOUT_CLEARLY);
}

/* Of 30 CUs in the columns 0 to 2, where the first two leases have their leasts in column 0 only. */
TEST(rectangle_contains_a_least_where_it_can_be)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 10, 10, 10 }, 3, 3);
	for (size_t i = 0; i < 2; i++) {
		memset(p.terms[i].own, 0, sizeof(p.terms[i].own));
		p.terms[i].own[0][0] = 6;
	}
	p.leases[0].least = 4;
	p.leases[1].least = 6;
	CHECK(find(&p) == 1);
	check_sound(&p);
	CHECK((p.terms[0].rect.columns & 1) && p.terms[0].rect.height >= 4);
	CHECK((p.terms[1].rect.columns & 1) && p.terms[1].rect.height >= 6);
	p.leases[0].least = 5;
	CHECK(find(&p) == 0);
}

/* A least of one unit on each of two XCCs, in other columns of them. */
TEST(least_is_in_other_columns_of_each_xcc)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 4, 4, 4, 4 }, 4, 2);
	p.layout.n_xccs = 2;
	memset(p.terms[0].own, 0, sizeof(p.terms[0].own));
	p.terms[0].own[0][1] = p.terms[0].own[1][2] = 1;
	CHECK(find(&p) == 1);
	check_sound(&p);
	CHECK((p.terms[0].rect.columns & 0x6) == 0x6 && worst_of(&p) == 1);
}

/* Of 4 x 9, two leases have 6 units of a column and one has 3 of both: each gets 12 around them. */
TEST(leases_grow_around_what_they_have)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 9, 9, 9, 9 }, 4, 3);
	p.terms[0].held[2] = p.terms[2].held[0] = 6;
	p.terms[1].held[0] = p.terms[1].held[2] = 3;
	for (size_t i = 0; i < 3; i++)
		for (size_t c = 0; c < 4; c++)
			p.terms[i].own[0][c] = (uint8_t)p.terms[i].held[c];
	CHECK(find(&p) == 1);
	check_sound(&p);
	CHECK(worst_of(&p) == 1);
	for (size_t i = 0; i < 3; i++)
		for (size_t c = 0; c < 4; c++)
			CHECK((p.terms[i].rect.columns >> c & 1 ? p.terms[i].rect.height : 0) >=
			      p.terms[i].held[c]);
}

/* Two halves of 30, and a third lease: both shrink in place to 20. */
TEST(leases_keep_their_columns_when_they_shrink)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 15, 15, 15, 15 }, 4, 3);
	p.terms[0].held[0] = p.terms[0].held[2] = 15;
	p.terms[1].held[1] = p.terms[1].held[3] = 15;
	CHECK(find(&p) == 1);
	check_sound(&p);
	CHECK(p.terms[0].rect.columns == 0x5 && p.terms[1].rect.columns == 0xa);
	CHECK(worst_of(&p) == 1);
}

TEST(leasts_that_do_not_fit_have_no_layout)
{
	struct puzzle p;

	puzzle_init(&p, (unsigned[]){ 10, 10 }, 2, 3);
	for (size_t i = 0; i < 3; i++)
		p.leases[i].least = 6;
	CHECK(find(&p) == 1); /* 2 x 3 each */
	for (size_t i = 0; i < 3; i++)
		p.leases[i].least = p.leases[i].most = 7;
	CHECK(find(&p) == 0);
}

TEST(a_difference_of_less_than_a_seventeenth_is_none)
{
	CHECK(layout_is_clearly_better((unsigned[]){ 50, 90 }, (unsigned[]){ 40, 100 }, 2));
	CHECK(!layout_is_clearly_better((unsigned[]){ 50, 90 }, (unsigned[]){ 49, 90 }, 2));
	CHECK(layout_is_clearly_better((unsigned[]){ 50, 90 }, (unsigned[]){ 49, 80 }, 2));
	CHECK(!layout_is_clearly_better((unsigned[]){ 49, 90 }, (unsigned[]){ 50, 80 }, 2));
}

/* A lease has CUs of the first engine of one XCC and of the second one of the other. */
TEST(engines_are_a_column_by_their_size_or_by_what_leases_hold)
{
	const struct geometry geometry = { .xccs = 2, .engines = 2, .arrays = 1, .array_cus = 10 };
	struct cuset all = { 0 }, held = { 0 };
	const struct cuset *sets[] = { &held };
	struct column_order order = {
		.all = &all, .own = &all, .pool = &all, .held = sets, .n_held = 1
	};
	struct columns columns;

	for (unsigned x = 0; x < 2; x++)
		for (unsigned e = 0; e < 2; e++)
			all.pair[cuset_pair(x, e)] = 0x3ff;
	held.pair[cuset_pair(0, 0)] = held.pair[cuset_pair(1, 1)] = 0x1f;
	columns_init(&columns, &geometry, &order);
	CHECK(columns.engine[0][0] == 0 && columns.engine[1][0] == 0);
	order.match = MATCH_HELD;
	columns_init(&columns, &geometry, &order);
	CHECK(columns.engine[0][0] == 0 && columns.engine[1][0] == 1);
	all.pair[cuset_pair(1, 0)] = 0x1ff; /* the larger engine is the first column */
	order.match = MATCH_SIZE;
	columns_init(&columns, &geometry, &order);
	CHECK(columns.engine[0][0] == 0 && columns.engine[1][0] == 1);
}
