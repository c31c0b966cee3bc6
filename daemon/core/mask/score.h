/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses the shader engines of a rectangle so that the most is left for later requests. */

#include <stdbool.h>
#include <stdint.h>

#include "core/mask/cuset.h"

/* What each engine has free, most first; engines that have as much are in any order. */
struct columns {
	unsigned n;
	unsigned free[CUSET_ENGINES];   /* units */
	unsigned kept[CUSET_ENGINES];   /* CUs of it that the lease has now */
	unsigned engine[CUSET_ENGINES]; /* what it is called */
	uint32_t closed; /* places in this order whose engine no realtime lease could have */
	uint32_t same;   /* places that are as the one before */
};

void columns_init(struct columns *columns, unsigned n, const unsigned *free, const unsigned *kept,
		  uint32_t closed);

/*
 * The best m engines with k units free in each, as bits; 0 and no engines where fewer have
 * them. Scores of any m and k compare: the higher the better. Every set is tried, and ordered
 * by these, the first that differs decides:
 *
 * 1. CUs that a lease which is resized stays on: what it moves off stays charged;
 * 2. realtime: few engines, since it closes them to others;
 * 3. the largest rectangle that is left, twice, and the largest one for a realtime lease;
 * 4. what is left in few engines rather than a little in each (sum of squares).
 */
uint64_t score_engines(const struct columns *columns, unsigned m, unsigned k, unsigned unit,
		       bool realtime, uint32_t *ret_engines);
