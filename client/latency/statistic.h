/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers about numbers. NAN stands for what is not known and is left out. Pure. */

#include <stddef.h>

struct spread {
	size_t n; /* values that are known; without one the others are NAN */
	double median;
	double scale; /* median distance from it, scaled to a normal deviation's size */
	double least, most;
};

/* Sorts the values. */
double statistic_median(double *values, size_t n);
void statistic_spread(double *values, size_t n, struct spread *ret);

/* 5 scaled median distances above the median. A distance below 1 % of the median
 * counts as that much: the clock is no finer. */
double statistic_fence(const struct spread *spread);
