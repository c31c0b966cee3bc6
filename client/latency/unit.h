/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is measured against what: one CU each, one WGP where CUs come in pairs, one CU on
 * every XCC where there are several (a mask that leaves an XCC without one never ends).
 * Pure.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/output/model.h"

#define UNIT_MIXED UINT_MAX /* its CUs are in different shader engines of their XCCs */

/* A CU, or the first of a WGP's two, counted among those that work in its array. */
struct place {
	unsigned xcc, engine, array, cu;
};

struct unit {
	struct place lane[CUSET_XCCS]; /* one on each XCC */
	unsigned engine;
	uint32_t mask[CODEC_WORDS];
};

struct units {
	struct unit *list; /* by shader engine, array, CU */
	size_t n;
	unsigned lanes; /* XCCs */
	unsigned step;  /* CUs of a lane: 2 with WGPs */
	size_t words;   /* of a mask */
};

/* Cuts a mask up. CUs are left over where XCCs have different numbers of them. -ENOENT: the
 * mask has not even one unit; -ENOMEM. */
int units_init(const struct model *model, const uint32_t *mask, size_t words, struct units *ret);
void units_done(struct units *units);

bool place_equal(const struct place *a, const struct place *b);

/* "SE0:3", "SE1.SH1:4-5"; of several XCCs the first's, which is where it differs if any. */
#define UNIT_NAME 48U
void unit_name(const struct model *model, const struct units *units, size_t i,
	       char buf[static UNIT_NAME]);

/* "CU", "WGP" */
const char *unit_kind(const struct units *units);

/*
 * The order in which pairs of n units are played: each pair once, each unit with itself
 * too. Neighbours in the order share no unit where that can be, so that a clock that drifts
 * or a GPU that grows warm falls on all units alike and makes none an outlier. Pure.
 */

size_t pairs_count(size_t n);
void pairs_get(size_t n, size_t k, size_t *ret_a, size_t *ret_b); /* k < count, a <= b */

/*
 * Where a wave says that it runs: the registers HW_ID (gfx8, gfx9), HW_ID1 (gfx10 and
 * later) and XCC_ID (gfx94x, 0 elsewhere). Pure. The layout of HW_ID is that of HIP's
 * amd_device_functions.h (CU at 8, engine at 13); that of HW_ID1, and the third bit of the engine
 * on parts with eight, are general knowledge, not verified.
 *
 * Engine, array and XCC are numbered as in a mask. CUs are not: a CU that was fused off
 * keeps its number here and has none in a mask.
 */

/* target: "gfx90a". With WGPs the place is that of the WGP's first CU. */
void hw_id_place(const char *target, uint32_t hw_id, uint32_t xcc_id, struct place *ret);
