/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The best that rectangles can give to the adaptable leases of a GPU, found by trying all of them: an
 * oracle for tests and benchmarks, which shares no code with core.
 *
 * A column is a shader engine: on a GPU with several XCCs, the i-th largest of each. A lease has as many
 * units (CUs, or WGPs) in each of its columns. Its least has to be a rectangle of own units, which no
 * inactive lease lends.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

#define BEST_COLUMNS 8U
#define BEST_LEASES 6U  /* of best_level() */
#define BEST_SHARES 16U /* of best_fair() */

struct best_column {
	unsigned own, lent; /* units */
};

struct best_lease {
	unsigned least, most; /* units */
	double weight;
	unsigned account;
	double fair; /* units: set by best_fair() */
};

/* Weighted max-min without rectangles, first among accounts, then within each. */
void best_fair(struct best_lease *leases, size_t n, double units);

/* The largest part of its fair share, up to 1, that each lease can have at once; 0: the leasts do not
 * fit; -1: the search was given up. */
double best_level(const struct best_column *columns, size_t n_columns,
		  const struct best_lease *leases, size_t n);

/* The columns of a GPU without these CUs; those that are lent are counted apart. Returns how many. */
size_t best_columns(const struct geometry *geometry, const struct cuset *blocked,
		    const struct cuset *lent, struct best_column ret[static BEST_COLUMNS]);
