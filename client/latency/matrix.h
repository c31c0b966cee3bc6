/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The results: a latency for each pair of units, and the place where each unit ran. What follows from them finds
 * gpuarb-figures. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "client/latency/device.h"
#include "client/latency/unit.h"

/* The place where a unit ran. */
struct ran {
	struct place lane[CUSET_XCCS]; /* by workgroup, in its first game */
	bool known;
	bool moved; /* it ran elsewhere in another game */
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

struct measurement {
	const struct device *device;
	const struct stop *stop;
	const struct units *units;
	const char *target;                       /* "gfx906" */
	unsigned rules;                           /* enum game_rules */
	void (*progress)(size_t done, size_t of); /* may be NULL */
};

/*
 * Plays all games, two streams at a time, and fills an initialised matrix. Errors are those of the
 * device and of the stop, and -ENODATA: the kernel did not run; -EAGAIN: players did not meet
 * several times in a row; -EPROTO: a player did not report its end. The message is in buf. Destroys
 * all its streams.
 */
int matrix_measure(const struct measurement *measurement, struct matrix *matrix, char *buf,
		   size_t size);

/* Of at least one value. Sorts the values. */
double statistic_median(double *values, size_t n);

/* How far from the median a value is an outlier: 5 scaled median distances. A distance below 1 % of the median counts as 1 %,
 * the resolution of the clock. Overwrites the values, of which there is at least one. */
double statistic_fence(double *values, size_t n);
