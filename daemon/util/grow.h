/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Arrays that grow by one element. */

#include <stddef.h>
#include <stdlib.h>

/* list: points to the pointer to the first of *n elements of this size, which only this function has allocated.
 * Returns the new last element; NULL: out of memory, and nothing changes. The array doubles. */
static inline void *grow(void *list, size_t *n, size_t size)
{
	void **array = list;

	if ((*n & (*n - 1)) == 0) {
		void *more = reallocarray(*array, *n ? 2 * *n : 1, size);

		if (!more)
			return NULL;
		*array = more;
	}
	return (char *)*array + (*n)++ * size;
}
