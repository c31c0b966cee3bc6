/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shape of one GPU: XCCs x shader engines x shader arrays x compute units, with the
 * CUs that were fused off taken out. A plain value.
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

/* Fills active[] with `cus` CUs dealt as evenly as whole units allow: what is assumed
 * where a harvest map is not known. Returns -EINVAL where they do not fit, are not whole
 * WGPs, or the shape itself is out of range. */
int geometry_spread(struct geometry *geometry, unsigned cus);

/* Returns 0, or -EINVAL and in buf a sentence that says what is wrong with it: a count
 * out of range, no CU at all, an XCC without a CU, an odd array on a part with WGPs,
 * more CUs in an array than it has places, WGPs together with several XCCs (no such
 * part is known, and the kernel's dealing would overlap). An engine without a CU is
 * fine: the kernel skips it. */
int geometry_check(const struct geometry *geometry, char *buf, size_t size);

unsigned geometry_cus(const struct geometry *geometry);
unsigned geometry_engine_cus(const struct geometry *geometry, unsigned xcc, unsigned engine);
unsigned geometry_step(const struct geometry *geometry); /* CUs per unit: 2 with WGPs */
void geometry_all(const struct geometry *geometry, struct cuset *ret);

/* E of a set: (XCC, engine) pairs with any CU x the least CUs in such a pair. A large
 * kernel's time goes as 1/E (measured on gfx906: Otterness, Anderson, RTNS 2021). */
unsigned geometry_effective(const struct geometry *geometry, const struct cuset *set);
