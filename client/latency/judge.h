/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Evaluates a matrix: units that ran elsewhere, slow pairs and slow units. Pure. */

#include "client/latency/matrix.h"

/*
 * Marks the units that did not run at the place of their mask: XCC, shader engine and array must be
 * those of the mask. Within an array the order must be that of the mask, because the hardware
 * numbers fused-off CUs, too: the smallest set of units that disturbs the order ran elsewhere.
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
	/* For each unit the median, over its pairs with others, of the pair's latency divided by
	 * the median of the pair's class: 1 is a normal unit. */
	double *ratio;
	struct spread ratios;
	bool *slow; /* units above the fence of the ratios */
};

int summary_init(const struct matrix *matrix, const struct units *units, struct summary *ret);
void summary_done(struct summary *summary);

/* A pair above the fence of its class, of two units that are not slow themselves. */
bool summary_slow_pair(const struct summary *summary, const struct matrix *matrix,
		       const struct units *units, size_t a, size_t b);
