/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The timing model against what was measured on real GPUs: how far off it may be. */

#include <math.h>

#include "check.h"
#include "measured.h"
#include "kfdsim/timing/timing-compare.h"

static void load(int (*how)(const char *dir, struct comparisons *ret), struct comparisons *ret)
{
	char dir[4096];

	CHECK(how(measured_dir(dir, sizeof(dir)), ret) == 0);
}

static void show(const struct comparisons *c)
{
	struct summary summary;

	comparisons_summary(c, &summary);
	printf("%s: %zu rows, median error %.1f %%, worst %.1f %%\n", c->file, summary.rows,
	       summary.median * 100, summary.worst * 100);
}

TEST(model_of_masks_errs_at_most_nine_percent_and_three_in_the_median)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	load(compare_masks, &c);
	show(&c);
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 60);
	CHECK(summary.median <= 0.03 && summary.worst <= 0.09);
}

TEST(model_of_shared_gpus_errs_at_most_fifteen_percent_except_mm256_alone)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;
	unsigned apart = 0;

	load(compare_sharing, &c);
	show(&c);
	comparisons_summary(&c, &summary);
	for (size_t i = 0; i < c.n; i++)
		apart += c.rows[i].apart; /* MM256 alone */
	CHECK(summary.rows == 48 && apart == 2);
	CHECK(summary.median <= 0.07 && summary.worst <= 0.15);
}

/* Rows that no simple rule explains stay in: what is asked is the side they are on. */
TEST(model_slows_down_exactly_the_rows_beyond_the_queue_limits)
{
	static int (*const each[])(const char *dir, struct comparisons *ret) = {
		compare_slices,
		compare_spx,
	};

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		_cleanup_(comparisons_clear) struct comparisons c = { 0 };
		unsigned beyond = 0;

		load(each[i], &c);
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

TEST(median_error_of_oversubscribed_spx_rows_is_at_most_a_third)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	load(compare_spx, &c);
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 15 && summary.median <= 0.33);
}
