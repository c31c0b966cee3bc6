/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The units of a measurement: one CU each, one WGP on GPUs with WGPs, one CU on every XCC on GPUs
 * with several XCCs (the hardware runs an XCC without a CU in the mask unmasked). Pure.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/output/model.h"

#define UNIT_MIXED UINT_MAX /* its CUs are in different shader engines of their XCCs */

/* A CU, or the first CU of a WGP, by its number among the working CUs of its array. */
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

/* Splits a mask into units. CUs are left over if the XCCs have different numbers of CUs.
 * -ENOENT: the mask has no unit; -ENOMEM. */
int units_init(const struct model *model, const uint32_t *mask, size_t words, struct units *ret);
void units_done(struct units *units);

bool place_equal(const struct place *a, const struct place *b);

/* "SE0:3", "SE1.SH1:4-5"; with several XCCs the place on the first one. */
#define UNIT_NAME 48U
void unit_name(const struct model *model, const struct units *units, size_t i,
	       char buf[static UNIT_NAME]);

/*
 * The order of the pairs of n units: each pair once, including each unit with itself. Consecutive
 * pairs share no unit if possible, so that a drifting clock or a warming GPU affects all units
 * alike and makes none of them an outlier.
 */

size_t pairs_count(size_t n);
void pairs_get(size_t n, size_t k, size_t *ret_a, size_t *ret_b); /* k < count, a <= b */

/*
 * The place of a wave by its registers HW_ID (gfx8, gfx9), HW_ID1 (gfx10 and later) and XCC_ID
 * (gfx94x; 0 elsewhere). The layout of HW_ID is that of HIP's amd_device_functions.h (CU at bit 8,
 * engine at bit 13). The layout of HW_ID1, and the third bit of the engine on parts with eight, are
 * not verified.
 *
 * Engine, array and XCC are numbered as in a mask. CUs are not: a fused-off CU has a number here
 * and none in a mask.
 */

/* target: "gfx90a". With WGPs the place is that of the WGP's first CU. */
void hw_id_place(const char *target, uint32_t hw_id, uint32_t xcc_id, struct place *ret);
