/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The law of masks: the time of a large kernel is a/E + b, where E is the effective CUs of its mask
 * (geometry_effective()). a and b belong to the kernel and the card.
 */

#include <stddef.h>

#define LAW_SOURCE_MAX 64U

enum law_basis {
	LAW_ASSUMED,
	LAW_DERIVED,  /* from a GPU of the same generation that was measured */
	LAW_MEASURED, /* on this target */
};

struct law {
	enum law_basis basis;
	char source[LAW_SOURCE_MAX]; /* who measured it; "": nobody */

	/* b in percent of the time on the whole GPU: the median of the kernels that were measured.
	 * 0: unknown. */
	unsigned constant;
};

/* assumed derived measured, by enum law_basis; NULL after the last. */
extern const char *const law_names[];

/* What is known of a gfx target as KFD numbers it: 90006 is gfx906. */
struct law law_of_target(unsigned gfx_target);

/* One mask, and the time that a kernel took with it. */
struct law_point {
	unsigned effective;
	double usec;
};

struct law_fit {
	double a_usec, b_usec;
	double constant; /* b in percent of the time with the most effective CUs; 0: b is negative */
	double median_error, worst_error; /* percent */
};

/* Fits a and b: least squares of the relative errors. Sorts the points by their error. -EINVAL: fewer than
 * two different E, or no a above 0 fits. */
int law_fit(struct law_point *points, size_t n, struct law_fit *ret);

/* Sets the errors of a fit to those at these points, at least one, and sorts them. */
void law_judge(struct law_point *points, size_t n, struct law_fit *fit);

/* What the neighbours of a lease use most. */
enum neighbours {
	NEIGHBOURS_MEMORY, /* memory bandwidth, or it is not known */
	NEIGHBOURS_COMPUTE,
};

extern const char *const neighbours_names[]; /* NULL after the last */

/* How much longer a job took beside so many leases. */
struct slowdown {
	enum neighbours kind;
	unsigned neighbours;
	unsigned percent; /* of the time alone */
};
