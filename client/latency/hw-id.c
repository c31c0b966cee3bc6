/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/hw-id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t field(uint32_t value, unsigned offset, unsigned size)
{
	return value >> offset & ((UINT32_C(1) << size) - 1);
}

/* "gfx1030" is 10, "gfx90a" 9: the last two digits, of which one may be a letter, are the
 * minor number and the stepping. */
static unsigned long major_of(const char *target)
{
	size_t n = strlen(target);
	char digits[16] = "";

	if (n > 5)
		snprintf(digits, sizeof(digits), "%.*s", (int)n - 5, target + 3);
	return strtoul(digits, NULL, 10);
}

void hw_id_place(const char *target, uint32_t hw_id, uint32_t xcc_id, struct place *ret)
{
	unsigned long major = major_of(target);
	bool eight = strcmp(target, "gfx908") == 0 || strcmp(target, "gfx90a") == 0;

	ret->xcc = field(xcc_id, 0, 4);
	if (major >= 10) {
		ret->cu = field(hw_id, 10, 4) * 2;
		ret->array = field(hw_id, 16, 1);
		ret->engine = field(hw_id, 18, major >= 11 ? 3 : 2);
	} else {
		ret->cu = field(hw_id, 8, 4);
		ret->array = field(hw_id, 12, 1);
		ret->engine = field(hw_id, 13, eight ? 3 : 2);
	}
}
