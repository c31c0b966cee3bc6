/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CU masks in the form that KFD takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_WORDS 32U /* the driver reads at most 1024 bits (kfd_ioctl_set_cu_mask()) */

struct mask {
	uint32_t word[MASK_WORDS];
	size_t words; /* 0: no mask */
};

bool mask_empty(const struct mask *mask);

/* Whether both have the same bits; missing words are 0. */
bool mask_same(const struct mask *a, const struct mask *b);

/*
 * The bits of the grant that are in own, too; the whole grant if own has no words. -ERANGE: no bit
 * is left, with *ret_xcc = xccs; or none on XCC *ret_xcc, which would run unmasked.
 */
int mask_narrow(const struct mask *grant, const struct mask *own, uint32_t xccs, struct mask *ret,
		uint32_t *ret_xcc);
