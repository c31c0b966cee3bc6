/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The geometry of one GPU: XCCs x shader engines x shader arrays x compute units, without the CUs
 * that were harvested (fused off). A plain value.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/cuset.h"

struct geometry {
	unsigned xccs;      /* 1..8: those of this KFD node, so 1 in CPX mode */
	unsigned engines;   /* 1..8 per XCC */
	unsigned arrays;    /* 1..2 per engine */
	unsigned array_cus; /* 1..16 per array before harvesting */
	bool wgp;           /* gfx10 and later: CUs come in pairs */
	/* CUs that work, by XCC, engine, array. */
	uint8_t active[CUSET_XCCS][CUSET_ENGINES][CUSET_ARRAYS];
};

/* Spreads `cus` CUs over active[] as evenly as whole units (CUs, or WGPs) allow, for a GPU whose
 * harvest is not known. Returns -EINVAL where they do not fit, are not whole WGPs, or the geometry
 * is out of range. */
int geometry_spread(struct geometry *geometry, unsigned cus);

/* Returns 0, or -EINVAL with a sentence in buf: a count out of range, no CU, an XCC without a CU,
 * an odd number of CUs in an array of a GPU with WGPs, more CUs in an array than array_cus, or WGPs
 * together with several XCCs (no such GPU is known, and the bits of the kernel would overlap). An
 * engine without a CU is allowed: the kernel skips it. */
int geometry_check(const struct geometry *geometry, char *buf, size_t size);

unsigned geometry_cus(const struct geometry *geometry);
unsigned geometry_engine_cus(const struct geometry *geometry, unsigned xcc, unsigned engine);
unsigned geometry_step(const struct geometry *geometry); /* CUs per unit: 2 with WGPs */
void geometry_all(const struct geometry *geometry, struct cuset *ret);

/* Has the set a CU on this XCC? On every XCC? */
bool geometry_xcc_used(const struct geometry *geometry, const struct cuset *set, unsigned xcc);
bool geometry_on_every_xcc(const struct geometry *geometry, const struct cuset *set);

/* The CUs that the hardware uses with the mask of this set: an XCC without a CU in the set runs
 * unmasked. (Read on gfx942 with all masks that leave XCCs out: tests/data/measured,
 * mi300x_occupied.tsv.) An empty set stays empty. */
void geometry_occupied(const struct geometry *geometry, const struct cuset *set, struct cuset *ret);

/* E of a set: XCCs x the least of any XCC of (engines in use x the least CUs of such an engine), on
 * the CUs that the set occupies. The arrays of an engine count together. Each XCC has the same share
 * of a large kernel, and so has each engine in use of an XCC: law.h. 0: the set is empty. */
unsigned geometry_effective(const struct geometry *geometry, const struct cuset *set);
