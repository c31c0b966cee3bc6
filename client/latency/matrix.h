/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The results: a latency for each pair of units, and the place where each unit ran. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "client/latency/device.h"
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

/* Evaluation: units that ran elsewhere, slow pairs and slow units. */

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
