/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The oracle of the layout tests, on divisions that are small enough to find on paper. */

#include "best-layout.h"

#include <math.h>

#include "check.h"

/* The units of the worst-off of n equal leases. */
static double equal(size_t n_columns, unsigned height, size_t n, unsigned least, unsigned most)
{
	struct best_column columns[BEST_COLUMNS];
	struct best_lease leases[BEST_LEASES];
	double units = (double)n_columns * height, level;

	for (size_t c = 0; c < n_columns; c++)
		columns[c] = (struct best_column){ .own = height };
	for (size_t i = 0; i < n; i++)
		leases[i] = (struct best_lease){
			.least = least, .most = most, .weight = 1, .account = (unsigned)i
		};
	best_fair(leases, n, units);
	level = best_level(columns, n_columns, leases, n);
	CHECK(level >= 0);
	return round(level * leases[0].fair * 1000) / 1000;
}

TEST(equal_leases_on_equal_engines)
{
	/* Two halves; a column each; 3 of 4 x 9: 4 x 3. */
	CHECK(equal(4, 15, 2, 1, 60) == 30);
	CHECK(equal(4, 15, 4, 1, 60) == 15);
	CHECK(equal(4, 9, 3, 1, 36) == 12);
	/* Four of 1 x 7 leave 4 x 2; five of 8 would need 40 units. */
	CHECK(equal(4, 9, 5, 1, 36) == 7);
	/* One engine: what is left over is lost. */
	CHECK(equal(1, 7, 3, 1, 7) == 2);
	CHECK(equal(2, 1, 3, 1, 2) == 0);
}

TEST(a_lease_has_no_rectangle_above_its_most)
{
	/* 7 of 2 x 4 is 1 x 7, which no column has, or 2 x 4, which is more than 7. */
	CHECK(equal(2, 4, 1, 1, 7) == 6);
	CHECK(equal(2, 4, 1, 1, 8) == 8);
}

TEST(a_least_is_kept_out_of_lent_units)
{
	struct best_column columns[] = { { .own = 2, .lent = 4 }, { .own = 2, .lent = 0 } };
	struct best_lease lease = { .least = 3, .most = 6, .weight = 1 };

	best_fair(&lease, 1, 8);
	/* 1 x 6 has a rectangle of 2 own units, and 2 x 2 has one of 4. */
	CHECK(round(best_level(columns, 2, &lease, 1) * lease.fair) == 4);
	lease.least = 2;
	CHECK(round(best_level(columns, 2, &lease, 1) * lease.fair) == 6);
	lease.least = 5;
	CHECK(best_level(columns, 2, &lease, 1) == 0);
}

TEST(leases_that_do_not_fit_have_no_level)
{
	CHECK(equal(2, 4, 5, 2, 8) == 0);
}

TEST(fair_shares_are_those_of_users_first)
{
	struct best_lease leases[] = {
		{ .least = 1, .most = 60, .weight = 1, .account = 1 },
		{ .least = 1, .most = 60, .weight = 1, .account = 1 },
		{ .least = 1, .most = 20, .weight = 1, .account = 2 },
	};

	best_fair(leases, 3, 60);
	CHECK(round(leases[0].fair) == 20 && round(leases[2].fair) == 20);
	leases[2].most = 60;
	best_fair(leases, 3, 60);
	CHECK(round(leases[0].fair) == 15 && round(leases[2].fair) == 30);
}

TEST(columns_are_the_largest_engines_of_each_xcc)
{
	struct geometry geometry = { .xccs = 2,
				     .engines = 2,
				     .arrays = 1,
				     .array_cus = 10,
				     .active = { { { 10 }, { 9 } }, { { 9 }, { 10 } } } };
	struct cuset none = { 0 }, lent = { .pair = { [0] = 3, [8] = 1 } };
	struct best_column columns[BEST_COLUMNS];

	CHECK(best_columns(&geometry, &none, &none, columns) == 2);
	CHECK(columns[0].own == 10 && columns[1].own == 9);
	CHECK(best_columns(&geometry, &none, &lent, columns) == 2);
	CHECK(columns[0].own == 9 && columns[0].lent == 0);
	CHECK(columns[1].own == 8 && columns[1].lent == 1);
}
