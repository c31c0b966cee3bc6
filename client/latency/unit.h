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
