/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is made of tables of measurements, good and bad. */

#include "kfdsim/timing/timing-rows.h"

#include <errno.h>
#include <math.h>

#include "kfdsim/timing/timing-compare.h"
#include "check.h"
#include "scratch.h"

/* 40 fields. */
#define TOO_MANY "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n"

TEST(fields_are_found_by_column_name)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	_cleanup_(rows_freep) struct rows *rows = NULL;

	scratch_write(&scratch, "t",
		      "# a\tcomment\n\nname\tms\tnote\nx\t1.5\t\n# more\ny\tn/a\t2z\n");
	CHECK(rows_read(scratch.path, "t", &rows) == 0);
	CHECK(rows_count(rows) == 2);
	CHECK(strcmp(rows_text(rows, 0, "name"), "x") == 0);
	CHECK(rows_number(rows, 0, "ms") == 1.5);
	CHECK(strcmp(rows_text(rows, 0, "note"), "") == 0 && isnan(rows_number(rows, 0, "note")));
	CHECK(isnan(rows_number(rows, 1, "ms")) && isnan(rows_number(rows, 1, "note")));
	CHECK(strcmp(rows_text(rows, 1, "none"), "") == 0);
}

TEST(invalid_tables_are_refused)
{
	static const char *const bad[] = {
		"", "# only comments\n", "a\tb\n1\n", "a\tb\n1\t2\t3\n", TOO_MANY, ("a\n" TOO_MANY),
	};
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	struct rows *rows = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		scratch_write(&scratch, "t", bad[i]);
		CHECK(rows_read(scratch.path, "t", &rows) == -EINVAL && !rows);
	}
	CHECK(rows_read(scratch.path, "none", &rows) == -ENOENT && !rows);
	CHECK(!rows_free(NULL));
}

static int compare_text(const char *text, const char *file,
			int (*how)(const char *dir, struct comparisons *ret),
			struct comparisons *ret)
{
	struct scratch scratch = scratch_new();
	int r;

	scratch_write(&scratch, file, text);
	r = how(scratch.path, ret);
	scratch_done(&scratch);
	return r;
}

#define SLICES "gpu\tmode\tmpi\tranks\tcompute_queues\ttotal_s\tdriver_msg\n"
#define SPX "version\tranks\tgpu_max_hw_queues\ttotal_s\n"
#define SHARING "commit\tmeasured\tcompetitor\tpartitioning\tmask\tcompetitor_mask\tmed\n"
#define MASKS "active_cus\tmask_hex\tse0\tse1\tse2\tse3\tmed\n"

TEST(invalid_rows_are_refused)
{
	static const struct {
		int (*how)(const char *dir, struct comparisons *ret);
		const char *file, *text;
	} bad[] = {
		{ compare_masks, "cu_mask_distributed.tsv", MASKS "1\tnone\t1\t0\t0\t0\t1\n" },
		{ compare_masks, "cu_mask_distributed.tsv", MASKS "1\t0x1\t1\t0\t0\t0\t-\n" },
		{ compare_sharing, "sharing.tsv", SHARING "c\tMM64\t-\tp\t0x1\t-\t1\n" },
		{ compare_sharing, "sharing.tsv", SHARING "c\tMM256\tMM\tp\t0x1\t0x1\t1\n" },
		{ compare_sharing, "sharing.tsv", SHARING "c\tMM256\t-\tp\t0x0\t-\t1\n" },
		{ compare_sharing, "sharing.tsv", SHARING "c\tMM256\t-\tp\t0x1\t-\tx\n" },
		{ compare_slices, "oversubscription.tsv", SLICES "g\tm\tm\t0\t0\t1\tnone\n" },
		{ compare_slices, "oversubscription.tsv", SLICES "g\tm\tm\t65\t65\t1\tnone\n" },
		{ compare_slices, "oversubscription.tsv", SLICES "g\tm\tm\t2\t1\t1\tnone\n" },
		{ compare_slices, "oversubscription.tsv", SLICES "g\tm\tm\t2\t2000\t1\tnone\n" },
		{ compare_slices, "oversubscription.tsv", SLICES "g\tm\tm\t2\t2\thang\tnone\n" },
		{ compare_spx, "oversubscription_spx.tsv", SPX "v\t0\t1\t1\n" },
		{ compare_spx, "oversubscription_spx.tsv", SPX "v\t1\t17\t1\n" },
		{ compare_spx, "oversubscription_spx.tsv", SPX "v\t1\t1\t-\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(comparisons_clear) struct comparisons c = { 0 };

		CHECK(compare_text(bad[i].text, bad[i].file, bad[i].how, &c) == -EINVAL);
	}
}

TEST(rows_that_hung_have_no_error)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	CHECK(compare_text(SLICES "MI300A\tSPX\tm\t2\t4\t0.5\tnone\n"
				  "MI300A\tSPX\tm\t2\t26\thang\tqueues\n"
				  "MI300A\tSPX\tm\t2\t28\t1.0\tqueues\n",
			   "oversubscription.tsv", compare_slices, &c) == 0);
	CHECK(c.n == 3 && c.rows[0].apart && isnan(c.rows[1].measured));
	CHECK(c.rows[2].measured == 2.0);
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 1);
	CHECK(summary.median == summary.worst);
	CHECK(summary.worst == fabs(comparison_error(&c.rows[2])));
}

TEST(empty_tables_have_no_errors)
{
	_cleanup_(comparisons_clear) struct comparisons c = { 0 };
	struct summary summary;

	CHECK(compare_text(MASKS, "cu_mask_distributed.tsv", compare_masks, &c) == 0);
	comparisons_summary(&c, &summary);
	CHECK(summary.rows == 0 && isnan(summary.median) && isnan(summary.worst));
}
