/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int matrix_init(size_t n, struct matrix *ret)
{
	struct matrix matrix = { .n = n };

	matrix.ns = calloc(n * n, sizeof(*matrix.ns));
	matrix.ran = calloc(n, sizeof(*matrix.ran));
	if (!matrix.ns || !matrix.ran) {
		matrix_done(&matrix);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n * n; i++)
		matrix.ns[i] = NAN;
	*ret = matrix;
	return 0;
}

void matrix_done(struct matrix *matrix)
{
	free(matrix->ns);
	free(matrix->ran);
	*matrix = (struct matrix){ 0 };
}

static bool all_are(const struct outcome *outcome, unsigned lanes, enum report_state state)
{
	for (unsigned lane = 0; lane < lanes; lane++) {
		if (outcome->report[0][lane].state != state ||
		    outcome->report[1][lane].state != state)
			return false;
	}
	return true;
}

static bool any_is(const struct outcome *outcome, unsigned lanes, enum report_state state)
{
	for (unsigned lane = 0; lane < lanes; lane++) {
		if (outcome->report[0][lane].state == state ||
		    outcome->report[1][lane].state == state)
			return true;
	}
	return false;
}

static int judge(const struct outcome *outcome, unsigned lanes)
{
	if (all_are(outcome, lanes, REPORT_ENDED))
		return 0;
	if (all_are(outcome, lanes, REPORT_NONE))
		return -ENODATA;
	if (any_is(outcome, lanes, REPORT_ALONE) || any_is(outcome, lanes, REPORT_LEFT))
		return -EAGAIN;
	return -EPROTO;
}

const struct place *ran_on_xcc(const struct ran *ran, unsigned lanes, unsigned xcc)
{
	for (unsigned i = 0; i < lanes; i++) {
		if (ran->lane[i].xcc == xcc)
			return &ran->lane[i];
	}
	return NULL;
}

static void found(struct ran *ran, const struct report *reports, unsigned lanes, const char *target)
{
	for (unsigned lane = 0; lane < lanes; lane++) {
		const struct place *before;
		struct place place;

		hw_id_place(target, reports[lane].hw_id, reports[lane].xcc_id, &place);
		if (!ran->known) {
			ran->lane[lane] = place;
			continue;
		}
		before = ran_on_xcc(ran, lanes, place.xcc);
		ran->moved |= !before || !place_equal(&place, before);
	}
	ran->known = true;
}

int matrix_take(struct matrix *matrix, const struct units *units, const char *target, size_t a,
		size_t b, const struct outcome *outcome)
{
	double ns[CUSET_XCCS * GAME_ROUNDS], median;
	int r = judge(outcome, units->lanes);

	if (r < 0)
		return r;

	for (unsigned lane = 0; lane < units->lanes; lane++) {
		for (unsigned round = 0; round < GAME_ROUNDS; round++)
			ns[lane * GAME_ROUNDS + round] =
				(double)outcome->report[0][lane].ticks[round] * outcome->tick_ns /
				(2 * GAME_TRIPS);
	}
	median = statistic_median(ns, units->lanes * GAME_ROUNDS);
	matrix->ns[a * matrix->n + b] = median;
	matrix->ns[b * matrix->n + a] = median;
	found(&matrix->ran[a], outcome->report[0], units->lanes, target);
	found(&matrix->ran[b], outcome->report[1], units->lanes, target);
	return 0;
}

#define NORMAL 1.4826 /* deviation / median distance of a normal distribution */
#define FENCE 5.0     /* among thousands of pairs some exceed 3 by chance */
#define FINEST 0.01

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Moves the known values to the front. */
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
