/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Masks as the driver takes them: plain values, and what a queue gets of two of them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_WORDS 32U /* the driver looks at 1024 bits at most (kfd_ioctl_set_cu_mask()) */

struct mask {
	uint32_t word[MASK_WORDS];
	size_t words; /* 0: none */
};

bool mask_empty(const struct mask *mask);

/* Whether they have the same bits; missing words are 0. */
bool mask_same(const struct mask *a, const struct mask *b);

/* The XCC that has no bit in the mask, bit i being XCC i % xccs, or xccs. */
uint32_t mask_idle_xcc(const struct mask *mask, uint32_t xccs);

/*
 * What the grant has in common with the own mask, as wide as the grant; all of it where own is
 * none. -ERANGE: nothing, and *ret_xcc is xccs; or nothing on that XCC, where what is dispatched
 * would never end.
 */
int mask_narrow(const struct mask *grant, const struct mask *own, uint32_t xccs, struct mask *ret,
		uint32_t *ret_xcc);
