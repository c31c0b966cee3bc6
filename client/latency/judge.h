/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the figures say: which units ran elsewhere, and which pairs and units are slow. Pure. */

#include "client/latency/matrix.h"

/*
 * Says of each unit whether it ran where its mask says: XCC, shader engine and array must be
 * the mask's. Within an array it is the order that must be the mask's, as the hardware also
 * numbers the CUs that were fused off: the fewest units that disturb it ran elsewhere.
 */
void judge_places(struct matrix *matrix, const struct units *units);

enum pair_class {
	PAIR_SAME_UNIT,
	PAIR_SAME_ENGINE,
	PAIR_ACROSS,
	PAIR_CLASSES,
};

enum pair_class pair_class(const struct units *units, size_t a, size_t b);

struct summary {
	struct spread pairs[PAIR_CLASSES]; /* ns */
	/* Of each unit the median, over its pairs with others, of the pair's figure divided by
	 * its class's median: 1 is a unit like the others. */
	double *ratio;
	struct spread ratios;
	bool *slow; /* units beyond the fence of the ratios */
};

int summary_init(const struct matrix *matrix, const struct units *units, struct summary *ret);
void summary_done(struct summary *summary);

/* A pair beyond its class's fence, and not for one of its units that is slow with all. */
bool summary_slow_pair(const struct summary *summary, const struct matrix *matrix,
		       const struct units *units, size_t a, size_t b);
