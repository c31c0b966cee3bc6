/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Divides the units of a GPU (CUs, or WGPs) among leases as if masks had no shape: weighted max-min.
 * First among accounts, then among the leases of each account: the worst-off has as much for each unit
 * of weight as possible, then the next one. No layout of rectangles gives the worst-off more.
 */

#include <stddef.h>
#include <stdint.h>

#define FLUID_BITS 16U
#define FLUID_UNITS_MAX 65535U
#define FLUID_WEIGHT_MAX 10000U

struct fluid_term {
	unsigned least, most; /* units; the least counts where it is above the most */
	unsigned weight; /* 1 to FLUID_WEIGHT_MAX; an account has the largest one of its terms */
	size_t account;  /* the index of the first term of the same account */

	uint64_t share; /* set by fluid(): in 2^-FLUID_BITS units, down */

	/* Used by fluid(), in the first term of an account. */
	struct {
		uint64_t least, most, amount, level, sum;
		unsigned weight;
	} own;
};

/* Whole units of a share: 2^-8 of a unit is more than what fluid() rounds down. */
static inline unsigned fluid_units(uint64_t share)
{
	return (unsigned)((share + (1U << (FLUID_BITS - 8))) >> FLUID_BITS);
}

/* Sets the shares. Their sum is at most `units`, unless that of the leasts is above. */
void fluid(struct fluid_term *terms, size_t n, unsigned units);
