/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the games came to: a latency for each pair of units, and where each unit ran. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "client/latency/report.h"
#include "client/latency/unit.h"

/* Where a unit was found. */
struct ran {
	struct place lane[CUSET_XCCS]; /* by workgroup, in its first game */
	bool known;
	bool moved;     /* another game found it elsewhere */
	bool elsewhere; /* not where its mask says, or moved: judge() */
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
 * Takes in a game of units a and b, target being the GPU's ("gfx906"). -ENODATA: nothing was
 * written back; -EAGAIN: the players did not meet; -EPROTO: a player was never seen to end.
 * The pair's figure is then unknown.
 */
int matrix_take(struct matrix *matrix, const struct units *units, const char *target, size_t a,
		size_t b, const struct outcome *outcome);

/* The place on an XCC; NULL for none. Which workgroup gets there is the dispatcher's choice. */
const struct place *ran_on_xcc(const struct ran *ran, unsigned lanes, unsigned xcc);

/* Numbers about numbers. NAN stands for what is not known and is left out. Pure. */

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
