/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/counters.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

TEST(tenants_beyond_the_bound_are_counted_together)
{
	struct counters counters = { 0 };
	char name[16];

	for (unsigned i = 0; i < 2 * COUNTERS_TENANTS; i++) {
		snprintf(name, sizeof(name), "tenant-%u", i);
		counters_add(&counters, name, COUNTER_GRANTS);
	}
	CHECK(counters.n == COUNTERS_TENANTS + 1);
	CHECK(counters_row(&counters, "tenant-255")->events[COUNTER_GRANTS] == 1);
	CHECK(counters_row(&counters, "tenant-256") == counters_row(&counters, ""));
	CHECK(counters_row(&counters, "")->events[COUNTER_GRANTS] == COUNTERS_TENANTS);
}

TEST(a_duration_is_counted_in_the_first_bucket_that_has_it)
{
	struct counters counters = { 0 };
	const struct histogram *histogram = &counters.histograms[DURATION_WAIT];
	uint64_t last = duration_bounds[DURATION_WAIT][COUNTERS_BOUNDS - 1];

	counters_took(&counters, DURATION_WAIT, 0);
	counters_took(&counters, DURATION_WAIT, duration_bounds[DURATION_WAIT][0]);
	counters_took(&counters, DURATION_WAIT, duration_bounds[DURATION_WAIT][0] + 1);
	counters_took(&counters, DURATION_WAIT, last);
	counters_took(&counters, DURATION_WAIT, last + 1);
	CHECK(histogram->counts[0] == 2 && histogram->counts[1] == 1);
	CHECK(histogram->counts[COUNTERS_BOUNDS - 1] == 1 &&
	      histogram->counts[COUNTERS_BOUNDS] == 1);
	CHECK(histogram->sum_usec == 2 * duration_bounds[DURATION_WAIT][0] + 2 + 2 * last);
}

TEST(bounds_ascend)
{
	for (size_t i = 0; i < DURATIONS; i++)
		for (size_t k = 1; k < COUNTERS_BOUNDS; k++)
			CHECK(duration_bounds[i][k] > duration_bounds[i][k - 1]);
}
