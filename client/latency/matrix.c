/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- games -------------------------------------------------------------------------------- */

#define UNMET_IN_A_ROW 3U /* each takes seconds */

/* How many of the reports have this state. */
static unsigned count_state(const struct outcome *outcome, unsigned lanes, enum report_state state)
{
	unsigned n = 0;

	for (unsigned lane = 0; lane < lanes; lane++)
		for (unsigned player = 0; player < 2; player++)
			n += outcome->report[player][lane].state == state;
	return n;
}

static int judge(const struct outcome *outcome, unsigned lanes)
{
	if (count_state(outcome, lanes, REPORT_ENDED) == 2 * lanes)
		return 0;
	if (count_state(outcome, lanes, REPORT_NONE) == 2 * lanes)
		return -ENODATA;
	if (count_state(outcome, lanes, REPORT_ALONE) + count_state(outcome, lanes, REPORT_LEFT))
		return -EAGAIN;
	return -EPROTO;
}

/* The place on an XCC; NULL: none. The dispatcher chooses the workgroup that runs there. */
static const struct place *ran_on_xcc(const struct ran *ran, unsigned lanes, unsigned xcc)
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

/*
 * Adds a game of units a and b. The latency of the pair stays unknown after -ENODATA: nothing was
 * written back; -EAGAIN: the players did not meet; -EPROTO: a player did not report its end.
 */
static int take_game(struct matrix *matrix, const struct measurement *m, size_t a, size_t b,
		     const struct outcome *outcome)
{
	const struct units *units = m->units;
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
	found(&matrix->ran[a], outcome->report[0], units->lanes, m->target);
	found(&matrix->ran[b], outcome->report[1], units->lanes, m->target);
	return 0;
}

static int play(const struct measurement *m, void **streams, struct matrix *matrix, size_t a,
		size_t b, char *buf, size_t size)
{
	const struct device *device = m->device;
	struct outcome outcome;
	int r;

	r = device->calls->play(device->data, streams, m->rules, m->units->lanes, &outcome);
	if (r < 0) {
		snprintf(buf, size, "%s", device->problem);
		return r;
	}

	r = take_game(matrix, m, a, b, &outcome);
	if (r == -ENODATA)
		snprintf(buf, size,
			 "the kernel did not run: HIP reports its end, but it has written nothing "
			 "(an emulated GPU behaves like this)");
	else if (r == -EPROTO)
		snprintf(buf, size,
			 "a kernel was cut off: HIP reports its end, but not all of its workgroups "
			 "have written a report");
	return r;
}

/* Creates two streams for each pair: one stream for each unit would be too many queues. */
static int play_pair(const struct measurement *m, struct matrix *matrix, size_t a, size_t b,
		     char *buf, size_t size)
{
	const size_t units[2] = { a, b };
	void *streams[2] = { NULL, NULL };
	const struct device *device = m->device;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < 2; i++) {
		r = device->calls->create(device->data, m->units->list[units[i]].mask,
					  m->units->words, &streams[i]);
		if (r < 0)
			snprintf(buf, size, "%s", device->problem);
	}
	if (r >= 0)
		r = play(m, streams, matrix, a, b, buf, size);
	for (size_t i = 2; i-- > 0;) {
		if (streams[i])
			device->calls->destroy(device->data, streams[i]);
	}
	return r;
}

int matrix_measure(const struct measurement *m, struct matrix *matrix, char *buf, size_t size)
{
	size_t n = pairs_count(m->units->n), unmet = 0;

	for (size_t k = 0; k < n; k++) {
		size_t a, b;
		int r;

		if (m->progress)
			m->progress(k, n);
		r = m->stop->wait(m->stop->data, 0);
		pairs_get(m->units->n, k, &a, &b);
		if (r >= 0)
			r = play_pair(m, matrix, a, b, buf, size);
		if (r < 0 && r != -EAGAIN)
			return r;

		unmet = r < 0 ? unmet + 1 : 0;
		matrix->unmet += r < 0;
		if (unmet == UNMET_IN_A_ROW || unmet == n) {
			snprintf(buf, size,
				 "the two kernels did not meet: each waited for the other, %zu "
				 "times in a row; their queues may take turns (gpuarbctl status)",
				 unmet);
			return -EAGAIN;
		}
	}
	return 0;
}

/* ---- statistics ---------------------------------------------------------------------------- */

#define NORMAL 1.4826 /* deviation / median distance of a normal distribution */
#define FENCE 5.0     /* among thousands of pairs some exceed 3 by chance */
#define FINEST 0.01

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double statistic_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double statistic_fence(double *values, size_t n)
{
	double median = statistic_median(values, n);

	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - median);
	return FENCE * fmax(NORMAL * statistic_median(values, n), FINEST * median);
}
