/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the margins of `rt plan` with the measurements in interference.tsv. */

#include "client/rt/margin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

#include "check.h"
#include "measured.h"

enum { CARD, TENANTS = 2, MASKS, NEIGHBOURS = 5, KIND, SLOWDOWN, COLUMNS };

/* Whether a row is about leases with own CUs, and not about the host side of one process. */
static bool counts(char *const *cell)
{
	return strcmp(cell[MASKS], "disjoint") == 0 && !strstr(cell[KIND], "beside CogVideoX") &&
	       *cell[SLOWDOWN];
}

static enum neighbours kind_of(const char *text)
{
	return strcmp(text, "compute") == 0 ? NEIGHBOURS_COMPUTE : NEIGHBOURS_MEMORY;
}

/* The largest slowdown of a card, in percent rounded up; 0: no row. */
static unsigned worst_of(const char *card, enum neighbours kind, unsigned neighbours)
{
	FILE *f = measured_open("interference.tsv");
	char line[1024], *cell[COLUMNS];
	double worst = 0;

	while (fgets(line, sizeof(line), f)) {
		char *rest = line;

		for (size_t i = 0; i < COLUMNS; i++)
			cell[i] = rest ? strsep(&rest, "\t") : line;
		if (line[0] == '#' || strcmp(cell[CARD], card) != 0 || !counts(cell) ||
		    kind_of(cell[KIND]) != kind ||
		    strtoul(cell[NEIGHBOURS], NULL, 10) != neighbours)
			continue;
		worst = fmax(worst, strtod(cell[SLOWDOWN], NULL));
	}
	fclose(f);
	return (unsigned)ceil(worst * 100 - 1e-6);
}

TEST(each_margin_is_the_largest_measured_slowdown_of_its_card)
{
	unsigned neighbours, slowdown, compared = 0;
	enum neighbours kind;
	const char *card;

	for (size_t i = 0; margin_row(i, &card, &kind, &neighbours, &slowdown); i++) {
		unsigned worst = worst_of(card, kind, neighbours);

		printf("  %s, %s, %u: %u %%, measured %u %%\n", card, neighbours_names[kind],
		       neighbours, slowdown, worst);
		if (strcmp(card, "Radeon VII") == 0)
			continue; /* the worst single run, not a row of this table */
		CHECK(slowdown == worst);
		compared++;
	}
	CHECK(compared >= 10);
}

TEST(margins_grow_with_the_number_of_neighbours_and_with_their_use_of_memory)
{
	static const unsigned targets[] = { 80003,  90006,  90010,  90402, 90500,
					    100300, 110001, 120001, 120500 };
	struct margin before, memory, compute;

	for (size_t t = 0; t < ARRAY_SIZE(targets); t++) {
		margin_find(&(struct gpu_info){ .gfx_target = targets[t] }, NEIGHBOURS_MEMORY, 0,
			    &before);
		CHECK(before.slowdown == 100 && before.percent == MARGIN_LAW);
		for (unsigned n = 1; n < 40; n++) {
			margin_find(&(struct gpu_info){ .gfx_target = targets[t] },
				    NEIGHBOURS_MEMORY, n, &memory);
			margin_find(&(struct gpu_info){ .gfx_target = targets[t] },
				    NEIGHBOURS_COMPUTE, n, &compute);
			CHECK(memory.slowdown >= before.slowdown && *memory.row);
			CHECK(compute.slowdown <= memory.slowdown);
			CHECK(memory.percent + 100 >= memory.slowdown);
			before = memory;
		}
	}
}

TEST(a_gpu_that_was_not_measured_gets_the_worst_of_all_cards)
{
	struct margin unknown, r9700;

	margin_find(&(struct gpu_info){ .gfx_target = 100300 }, NEIGHBOURS_MEMORY, 7, &unknown);
	margin_find(&(struct gpu_info){ .gfx_target = 120001 }, NEIGHBOURS_MEMORY, 7, &r9700);
	CHECK(unknown.slowdown == r9700.slowdown && !unknown.measured);
	CHECK(r9700.measured);
	CHECK(strcmp(unknown.row, r9700.row) != 0);
}

TEST(a_calibrated_gpu_gets_what_was_measured_on_it)
{
	struct gpu_info gpu = { .gfx_target = 120001 };
	struct margin margin;

	snprintf(gpu.calibrated.date, sizeof(gpu.calibrated.date), "2026-11-23");
	gpu.calibrated.slowdowns[0] = (struct slowdown){ NEIGHBOURS_MEMORY, 1, 130 };
	gpu.calibrated.slowdowns[1] = (struct slowdown){ NEIGHBOURS_MEMORY, 3, 180 };
	gpu.calibrated.n_slowdowns = 2;
	margin_find(&gpu, NEIGHBOURS_MEMORY, 1, &margin);
	CHECK(margin.slowdown == 130 && strstr(margin.row, "calibrated 2026-11-23"));
	margin_find(&gpu, NEIGHBOURS_COMPUTE, 2, &margin);
	CHECK(margin.slowdown == 180 && margin.measured);
	margin_find(&gpu, NEIGHBOURS_MEMORY, 6, &margin);
	CHECK(margin.slowdown == 260 && !margin.measured);
}
