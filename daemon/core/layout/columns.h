/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The columns of a GPU: each is a shader engine of every XCC, but not the same one everywhere.
 */

#include "core/layout/layout.h"
#include "core/mask/geometry.h"

struct columns {
	const struct geometry *geometry;
	size_t n;
	uint8_t engine[CUSET_XCCS][LAYOUT_COLUMNS];
};

/* What engines are matched by: bases that have to be rectangles; then units that nobody lends, all units,
 * and masks. sticky: masks before units. */
struct column_order {
	bool sticky;
	const struct cuset *own, *pool;
	const struct cuset **bases, **held;
	size_t n_bases, n_held;
};

void columns_init(struct columns *columns, const struct geometry *geometry,
		  const struct column_order *order);

/* Units of the set in each column: of the XCC with the fewest. */
void columns_count(const struct columns *columns, const struct cuset *set,
		   unsigned ret[static LAYOUT_COLUMNS]);

/* The same of each XCC. */
void columns_count_each(const struct columns *columns, const struct cuset *set,
			uint8_t ret[static CUSET_XCCS][LAYOUT_COLUMNS]);

/* CUs of one unit of a column. */
unsigned columns_unit(const struct columns *columns);

/* Adds CUs of `avail` to the mask until it has the height in each column of the rectangle, as far as there
 * are; the preferred ones first. */
void columns_pick(const struct columns *columns, const struct rect *rect, const struct cuset *avail,
		  const struct cuset *preferred, struct cuset *mask);
