/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "random-geometry.h"

unsigned below(unsigned n)
{
	return (unsigned)lrand48() % n;
}

/* CUs of one array: most have lost up to `harvest` units, some any number. */
static uint8_t random_array(const struct geometry *geometry, unsigned harvest)
{
	unsigned step = geometry_step(geometry), n = geometry->array_cus / step;
	unsigned less = below(12) == 0 ? below(n + 1) : below(harvest + 1);

	return (uint8_t)((n - (less < n ? less : n)) * step);
}

struct geometry random_geometry(void)
{
	struct geometry geometry;

	do {
		bool wgp = below(3) == 0;
		unsigned harvest = below(4);

		geometry = (struct geometry){
			.xccs = wgp || below(2) ? 1 : 1 + below(8),
			.engines = 1 + below(8),
			.arrays = 1 + below(2),
			.array_cus = 1 + below(16),
			.wgp = wgp,
		};
		for (unsigned xcc = 0; xcc < geometry.xccs; xcc++)
			for (unsigned e = 0; e < geometry.engines; e++)
				for (unsigned a = 0; a < geometry.arrays; a++)
					geometry.active[xcc][e][a] = random_array(&geometry,
										  harvest);
	} while (geometry_check(&geometry, NULL, 0) < 0);
	return geometry;
}
