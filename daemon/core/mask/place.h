/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Chooses CUs of one GPU. A good mask is a rectangle: the same number of CUs in each shader engine
 * that it uses, on every XCC. The dispatcher gives each engine that has a CU the same number of
 * work-groups, so the engine with the fewest CUs sets the time (geometry_effective()).
 *
 * On several XCCs a rectangle has the same number of engines on each XCC, because a grid
 * is spread over all XCCs evenly. Within an engine CUs are alike; where it has two shader
 * arrays both are filled alike as far as they go (that this matters is assumed).
 */

#include <stdbool.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

struct place_request {
	const struct cuset *all;  /* what the GPU has, were it empty */
	struct cuset avail;       /* what may be taken */
	struct cuset preferred;   /* of that, what to take first: no other lease shares it */
	const struct cuset *keep; /* what the lease has now and should move off little; or NULL */
	const struct cuset *base; /* a rectangle that the placement has to contain; or NULL */
	unsigned aim;             /* CUs */
	unsigned floor;           /* fewer will not do */
	unsigned ceiling;         /* as many as fit up to here; equals aim unless best effort */
	unsigned limit;           /* not one more, whatever the rounding */
	unsigned engines;         /* spread over exactly so many; 0: over any number */
	bool exact;               /* the aim or nothing */
	bool any_shape;
	bool columns;     /* the same engines on every XCC (realtime), as `engines` has it */
	bool few_engines; /* close few engines to realtime leases: they take whole engines */
	uint32_t closed;  /* engines that no realtime lease could have now: the others are
			     * kept for one as far as that costs nothing */
};

struct placement {
	struct cuset cus;
	unsigned count, effective;
};

/* The numbers of CUs that fit instead of an aim that does not: the largest up to it, and the smallest
 * above it that the limit allows; 0: none. */
struct place_miss {
	unsigned below, above;
};

/* 0, or -ENOSPC and the neighbours. ret_miss may be NULL. */
int place(const struct geometry *geometry, const struct place_request *request,
	  struct placement *ret, struct place_miss *ret_miss);

/* The largest rectangle of at most `ceiling` CUs that contains the base; the base, at the least. The whole GPU may
 * be had as it is, however uneven. This is what the mask of an adaptable lease is made of. */
void place_around(const struct geometry *geometry, const struct place_request *request,
		  struct cuset *ret);

/* Whether place() succeeds; cheaper than place(). */
bool place_fits(const struct geometry *geometry, const struct place_request *request);

/* CUs that n whole engines stand for: what `shader-engines` alone asks. 0 if there are
 * fewer engines. all: as in a request. */
unsigned place_engines_aim(const struct geometry *geometry, const struct cuset *all, unsigned n);

/* Adds n units (CUs, or WGPs) of one (XCC, engine) pair to the set: first those to keep, then those
 * that no other lease shares, both shader arrays evenly. The pair must have n available. */
void place_pick(const struct geometry *geometry, const struct place_request *request, unsigned pair,
		unsigned n, struct cuset *set);
