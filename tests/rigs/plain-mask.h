/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CU masks as arrays of bool, for checks that share no code with core: read anew from the layout of
 * struct cuset, struct geometry, and the kernel's order of bits.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/mask/cuset.h"
#include "core/mask/geometry.h"

#define PLAIN_PAIRS 64U /* (XCC, shader engine): xcc * 8 + engine */
#define PLAIN_CUS 32U   /* of a pair: 0 to 15 in shader array 0, 16 to 31 in array 1 */

struct plain_mask {
	bool has[PLAIN_PAIRS][PLAIN_CUS];
	unsigned in[PLAIN_PAIRS], n; /* how many */
};

/* A GPU: the CUs that it has and that a bit of a mask stands for. */
struct plain_gpu {
	const struct geometry *geometry;
	struct plain_mask all;
};

void plain_gpu_init(struct plain_gpu *gpu, const struct geometry *geometry);

void plain_mask_init(struct plain_mask *mask, const struct cuset *set);

bool plain_mask_within(const struct plain_mask *inner, const struct plain_mask *outer);

/* CUs of the mask in this engine of this XCC. */
unsigned plain_mask_in(const struct plain_mask *mask, unsigned xcc, unsigned engine);

/* The number of a bit of a mask: the place of a unit (CU, or WGP) in the order of its XCC is the number
 * of units before it, counted array by array. */
unsigned plain_bit(const struct geometry *geometry, unsigned xcc, unsigned engine, unsigned array,
		   unsigned cu);

/* Why the hardware would not run a queue on exactly these CUs; NULL: it would. */
const char *plain_mask_wrong(const struct plain_gpu *gpu, const struct plain_mask *mask);

/* As many CUs in each engine that it uses, and as many such engines on each XCC. */
bool plain_mask_is_rectangle(const struct plain_gpu *gpu, const struct plain_mask *mask);

/* XCCs x the fewest CUs of any XCC: its engines in use x the fewest CUs of one. Of a mask with CUs on
 * each XCC. */
unsigned plain_mask_effective(const struct plain_gpu *gpu, const struct plain_mask *mask);
