/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lays out the adaptable leases of a GPU as rectangles: as many units (CUs, or WGPs) in each of its
 * columns. A column is a shader engine of each XCC: columns.h. The worst-off lease has as much of its
 * fair share as a bounded search finds room for, then the next one, then the sum is as large as possible;
 * of layouts that are as good, leases keep the units that they have.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/cuset.h"

#define LAYOUT_COLUMNS CUSET_ENGINES
#define LAYOUT_WHOLE 0x10000U /* a share */
#define LAYOUT_UNIT 0x100U

struct rect {
	uint32_t columns; /* bits */
	unsigned height;  /* units in each */
};

static inline unsigned rect_area(const struct rect *rect)
{
	return (unsigned)__builtin_popcount(rect->columns) * rect->height;
}

/* A lease. */
struct layout_term {
	unsigned least, most; /* units; a rectangle of the least may have more than the most */
	unsigned share;       /* in 1 / LAYOUT_UNIT units */
	uint8_t own[CUSET_XCCS][LAYOUT_COLUMNS]; /* units that a rectangle of its least can be of */
	unsigned held[LAYOUT_COLUMNS];           /* units that it has */
	struct rect rect;                        /* set by layout_find() */
};

struct layout {
	size_t n_columns, n_xccs;
	unsigned free[LAYOUT_COLUMNS]; /* units of each column that the leases may have */
	struct layout_term *terms;
	size_t n;
};

/* Contains the rectangle one of exactly the least, of units that this can be of? Its columns need not be the same on
 * each XCC. */
bool layout_has_least(const struct layout *layout, const struct layout_term *term,
		      const struct rect *rect);

/* 1: each lease has a rectangle of its least at least. 0: no such layout was found. -ENOMEM. */
int layout_find(struct layout *layout);

/* Sorts levels, parts of shares in 1 / LAYOUT_WHOLE: the worst-off first. */
void layout_sort_levels(unsigned *levels, size_t n);

/* A difference of less than this part of a level is none. */
#define LAYOUT_CLEARLY 17U

/* Is the worst-off lease better off by that, or the first one in which they differ so much? */
bool layout_is_clearly_better(const unsigned *a, const unsigned *b, size_t n);
