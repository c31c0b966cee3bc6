/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/pairs.h"

size_t pairs_count(size_t n)
{
	return n * (n + 1) / 2;
}

/* By distance: all units with themselves, all with their next, and so on. */
void pairs_get(size_t n, size_t k, size_t *ret_a, size_t *ret_b)
{
	size_t distance = 0;

	while (k >= n - distance) {
		k -= n - distance;
		distance++;
	}
	*ret_a = k;
	*ret_b = k + distance;
}
