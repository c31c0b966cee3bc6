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

/* Engines of several XCCs become a column by their size, so that masks stay side by side. Where leases lie across
 * such columns: by bases that have to be rectangles, and then by what leases hold, or by what nobody lends. */
enum column_match { MATCH_SIZE, MATCH_HELD, MATCH_OWN, MATCHES };

struct column_order {
	enum column_match match;
	const struct cuset *all, *own, *pool;
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
