/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Fields of structures that a table describes: numbers of 1, 4 or 8 bytes, as bool, unsigned or an enum, and
 * uint64_t. */

#include <stddef.h>
#include <stdint.h>

static inline uint64_t field_get(const void *field, size_t size)
{
	if (size == sizeof(uint64_t))
		return *(const uint64_t *)field;
	return size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const uint8_t *)field;
}

static inline void field_set(void *field, size_t size, uint64_t number)
{
	if (size == sizeof(uint64_t))
		*(uint64_t *)field = number;
	else if (size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint8_t *)field = (uint8_t)number;
}
