/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The results: a latency for each pair of units, and the place where each unit ran. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "client/latency/report.h"
#include "client/latency/unit.h"

/* The place where a unit ran. */
struct ran {
	struct place lane[CUSET_XCCS]; /* by workgroup, in its first game */
	bool known;
	bool moved;     /* it ran elsewhere in another game */
	bool elsewhere; /* not the place of its mask, or moved: judge_places() */
};

struct matrix {
	size_t n;
	double *ns;      /* n x n, one way; NAN: the two did not meet */
	struct ran *ran; /* n */
	size_t unmet;    /* pairs */
};

int matrix_init(size_t n, struct matrix *ret); /* -ENOMEM */
void matrix_done(struct matrix *matrix);

static inline double matrix_get(const struct matrix *matrix, size_t a, size_t b)
{
	return matrix->ns[a * matrix->n + b];
}

/*
 * Adds a game of units a and b. target: of the GPU, "gfx906". The latency of the pair stays unknown
 * after -ENODATA: nothing was written back; -EAGAIN: the players did not meet; -EPROTO: a player
 * did not report its end.
 */
int matrix_take(struct matrix *matrix, const struct units *units, const char *target, size_t a,
		size_t b, const struct outcome *outcome);

/* The place on an XCC; NULL: none. The dispatcher chooses the workgroup that runs there. */
const struct place *ran_on_xcc(const struct ran *ran, unsigned lanes, unsigned xcc);

/* Statistics. NAN is an unknown value and is left out. */

struct spread {
	size_t n; /* number of known values; 0: the others are NAN */
	double median;
	double scale; /* median distance from it, scaled to a normal deviation's size */
	double least, most;
};

/* Sorts the values. */
double statistic_median(double *values, size_t n);
void statistic_spread(double *values, size_t n, struct spread *ret);

/* 5 scaled median distances above the median. A distance below 1 % of the median counts as 1 %, the
 * resolution of the clock. */
double statistic_fence(const struct spread *spread);
