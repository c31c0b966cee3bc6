/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The timing model against what was measured on real GPUs: how far off it may be. The numbers
 * are those of kfdsim-timing, rounded up. */

#include <errno.h>
#include <math.h>

#include "check.h"
#include "kfdsim/timing/timing-compare.h"

/* 1: there, 0: the tables are not. */
static int load(int (*how)(const char *dir, struct comparisons *ret), struct comparisons *ret)
{
	const char *shared = getenv("GPUARB_SHARED");
	char dir[4096];
	int r;

	snprintf(dir, sizeof(dir), "%s/data", shared ? shared : "");
	r = how(dir, ret);
	CHECK(r == 0 || r == -ENOENT);
	return r == 0;
}

static void show(const struct comparisons *c)
{
	struct summary summary;

	comparisons_summary(c, &summary);
	printf("%s: %zu rows, median error %.1f %%, worst %.1f %%\n", c->file, summary.rows,
	       summary.median * 100, summary.worst * 100);
}

TEST(masks_fit_within_nine_percent_and_three_in_the_median)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	if (!load(compare_masks, &c))
		SKIP("GPUARB_SHARED does not say where the measurements are");
	show(&c);
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 60);
	CHECK(summary.median <= 0.03 && summary.worst <= 0.09);
}

TEST(shared_gpus_fit_within_fifteen_percent_but_for_one_that_is_told)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;
	unsigned apart = 0;

	if (!load(compare_sharing, &c))
		SKIP("GPUARB_SHARED does not say where the measurements are");
	show(&c);
	comparisons_summary(&c, &summary);
	for (size_t i = 0; i < c.n; i++)
		if (c.rows[i].apart) {
			CHECK(strstr(c.rows[i].what, "MM256  beside -"));
			apart++;
		}
	CHECK(summary.rows == 48 && apart == 2);
	CHECK(summary.median <= 0.07 && summary.worst <= 0.15);
}

/* Rows that no simple rule explains stay in: what is asked is the side they are on. */
TEST(within_its_limits_nothing_is_slower_and_beyond_them_all_is)
{
	static int (*const each[])(const char *dir, struct comparisons *ret) = {
		compare_slices,
		compare_spx,
	};

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		_cleanup_(comparisons_clear) struct comparisons c = { 0 };
		unsigned beyond = 0;

		if (!load(each[i], &c))
			SKIP("GPUARB_SHARED does not say where the measurements are");
		show(&c);
		for (size_t j = 0; j < c.n; j++) {
			const struct comparison *row = &c.rows[j];

			beyond += !row->apart;
			CHECK(row->apart ? fabs(row->model - 1) < 0.001 : row->model > 1.5);
			CHECK(row->apart ? row->measured < 1.1 : !(row->measured < 1.5));
		}
		CHECK(beyond >= 12);
	}
}

TEST(half_of_the_oversubscribed_rows_of_one_machine_fit_within_a_third)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	if (!load(compare_spx, &c))
		SKIP("GPUARB_SHARED does not say where the measurements are");
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 15 && summary.median <= 0.33);
}
