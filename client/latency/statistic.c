/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/statistic.h"

#include <math.h>
#include <stdlib.h>

#define NORMAL 1.4826 /* of a normal distribution: deviation / median distance */
#define FENCE 5.0     /* thousands of pairs have some beyond 3 by chance */
#define FINEST 0.01

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The known ones to the front. */
static size_t drop_unknown(double *values, size_t n)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(values[i]))
			values[known++] = values[i];
	}
	return known;
}

double statistic_median(double *values, size_t n)
{
	n = drop_unknown(values, n);
	if (n == 0)
		return NAN;
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void statistic_spread(double *values, size_t n, struct spread *ret)
{
	struct spread spread = { .median = NAN, .scale = NAN, .least = NAN, .most = NAN };

	spread.n = drop_unknown(values, n);
	if (spread.n > 0) {
		spread.median = statistic_median(values, spread.n);
		spread.least = values[0];
		spread.most = values[spread.n - 1];
		for (size_t i = 0; i < spread.n; i++)
			values[i] = fabs(values[i] - spread.median);
		spread.scale = NORMAL * statistic_median(values, spread.n);
	}
	*ret = spread;
}

double statistic_fence(const struct spread *spread)
{
	return spread->median + FENCE * fmax(spread->scale, FINEST * spread->median);
}
