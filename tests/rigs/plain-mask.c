/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plain-mask.h"

#include <stdint.h>
#include <string.h>

#define BITS 1024U /* that a mask has at most */

static unsigned unit_cus(const struct geometry *g)
{
	return g->wgp ? 2 : 1;
}

unsigned plain_bit(const struct geometry *g, unsigned xcc, unsigned engine, unsigned array,
		   unsigned cu)
{
	unsigned unit = cu / unit_cus(g), before = 0;

	for (unsigned e = 0; e < g->engines; e++)
		for (unsigned a = 0; a < g->arrays; a++) {
			unsigned units = g->active[xcc][e][a] / unit_cus(g);
			unsigned ahead = unit + (a < array || (a == array && e < engine));

			before += units < ahead ? units : ahead;
		}
	return xcc + before * unit_cus(g) * g->xccs;
}

void plain_gpu_init(struct plain_gpu *gpu, const struct geometry *g)
{
	unsigned cus = 0;

	*gpu = (struct plain_gpu){ .geometry = g };
	for (unsigned x = 0; x < g->xccs; x++)
		for (unsigned e = 0; e < g->engines; e++)
			for (unsigned a = 0; a < g->arrays; a++)
				cus += g->active[x][e][a];
	for (unsigned x = 0; x < g->xccs; x++)
		for (unsigned e = 0; e < g->engines; e++)
			for (unsigned a = 0; a < g->arrays; a++)
				for (unsigned cu = 0; cu < g->active[x][e][a]; cu++) {
					unsigned bit = plain_bit(g, x, e, a, cu);
					bool reached = bit < (cus < BITS ? cus : BITS);

					gpu->all.has[8 * x + e][16 * a + cu] = reached;
					gpu->all.in[8 * x + e] += reached;
					gpu->all.n += reached;
				}
}

void plain_mask_init(struct plain_mask *mask, const struct cuset *set)
{
	*mask = (struct plain_mask){ 0 };
	for (unsigned pair = 0; pair < PLAIN_PAIRS; pair++) {
		for (unsigned cu = 0; set->pair[pair] && cu < PLAIN_CUS; cu++) {
			mask->has[pair][cu] = set->pair[pair] >> cu & 1;
			mask->in[pair] += mask->has[pair][cu];
		}
		mask->n += mask->in[pair];
	}
}

bool plain_mask_within(const struct plain_mask *inner, const struct plain_mask *outer)
{
	for (unsigned pair = 0; pair < PLAIN_PAIRS; pair++)
		for (unsigned cu = 0; inner->in[pair] > 0 && cu < PLAIN_CUS; cu++)
			if (inner->has[pair][cu] && !outer->has[pair][cu])
				return false;
	return true;
}

unsigned plain_mask_in(const struct plain_mask *mask, unsigned xcc, unsigned engine)
{
	return mask->in[8 * xcc + engine];
}

const char *plain_mask_wrong(const struct plain_gpu *gpu, const struct plain_mask *mask)
{
	const struct geometry *g = gpu->geometry;

	if (!plain_mask_within(mask, &gpu->all))
		return "a CU that the GPU does not have, or that no bit of a mask reaches";
	for (unsigned x = 0; x < g->xccs; x++) {
		unsigned n = 0;

		for (unsigned e = 0; e < g->engines; e++)
			n += plain_mask_in(mask, x, e);
		if (n == 0)
			return "an XCC without a CU";
	}
	for (unsigned pair = 0; g->wgp && pair < PLAIN_PAIRS; pair++)
		for (unsigned cu = 0; mask->in[pair] > 0 && cu < PLAIN_CUS; cu += 2)
			if (mask->has[pair][cu] != mask->has[pair][cu + 1])
				return "half a WGP";
	return NULL;
}

unsigned plain_mask_effective(const struct plain_gpu *gpu, const struct plain_mask *mask)
{
	unsigned worst = UINT32_MAX;

	for (unsigned x = 0; x < gpu->geometry->xccs; x++) {
		unsigned engines = 0, fewest = UINT32_MAX;

		for (unsigned e = 0; e < gpu->geometry->engines; e++) {
			unsigned n = plain_mask_in(mask, x, e);

			engines += n > 0;
			fewest = n > 0 && n < fewest ? n : fewest;
		}
		if (engines * fewest < worst)
			worst = engines * fewest;
	}
	return worst * gpu->geometry->xccs;
}

bool plain_mask_is_rectangle(const struct plain_gpu *gpu, const struct plain_mask *mask)
{
	unsigned height = 0, width = 0;

	for (unsigned x = 0; x < gpu->geometry->xccs; x++) {
		unsigned engines = 0;

		for (unsigned e = 0; e < gpu->geometry->engines; e++) {
			unsigned n = plain_mask_in(mask, x, e);

			height = height ? height : n;
			if (n > 0 && n != height)
				return false;
			engines += n > 0;
		}
		width = x ? width : engines;
		if (engines != width)
			return false;
	}
	return true;
}
