/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The model beside what was measured, row by row. */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"

struct comparison {
	double measured; /* NAN: it hung */
	double model;
	bool apart; /* left out of the summary */
};

struct comparisons {
	const char *file;
	struct comparison *rows;
	size_t n;
};

void comparisons_clear(struct comparisons *c);

/* From the tables in dir; *ret is to be cleared whatever they return. -errno as rows_read(),
 * -EINVAL: rows that are not understood. */
int compare_masks(const char *dir, struct comparisons *ret);
int compare_sharing(const char *dir, struct comparisons *ret);
int compare_slices(const char *dir, struct comparisons *ret); /* oversubscription.tsv */
int compare_spx(const char *dir, struct comparisons *ret);    /* oversubscription_spx.tsv */

/* model / measured - 1. */
double comparison_error(const struct comparison *c);

struct summary {
	size_t rows;
	double median, worst; /* of the errors' absolute values */
};
void comparisons_summary(const struct comparisons *c, struct summary *ret);
