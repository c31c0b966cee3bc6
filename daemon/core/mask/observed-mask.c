/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/observed-mask.h"

bool observed_mask_from_words(const struct geometry *geometry, const uint32_t words[CUSET_PAIRS],
			      struct cuset *ret)
{
	bool unrestricted = true;
	struct cuset set, all;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			unrestricted &= words[cuset_pair(xcc, engine)] == UINT32_MAX;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		set.pair[pair] = words[pair];
	geometry_all(geometry, &all);
	cuset_keep(&set, &all);
	*ret = set;
	return unrestricted;
}
