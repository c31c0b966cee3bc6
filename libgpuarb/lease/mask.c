/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/mask.h"

#include <errno.h>

static uint32_t word_of(const struct mask *mask, size_t i)
{
	return i < mask->words ? mask->word[i] : 0;
}

bool mask_empty(const struct mask *mask)
{
	for (size_t i = 0; i < mask->words; i++)
		if (mask->word[i])
			return false;
	return true;
}

bool mask_same(const struct mask *a, const struct mask *b)
{
	for (size_t i = 0; i < a->words || i < b->words; i++)
		if (word_of(a, i) != word_of(b, i))
			return false;
	return true;
}

/* The first XCC without a bit in the mask, or xccs if there is none. Bit i belongs to XCC
 * i % xccs. */
static uint32_t idle_xcc(const struct mask *mask, uint32_t xccs)
{
	for (uint32_t xcc = 0; xcc < xccs; xcc++) {
		size_t i = xcc;

		while (i < mask->words * 32 && !(mask->word[i / 32] >> i % 32 & 1))
			i += xccs;
		if (i >= mask->words * 32)
			return xcc;
	}
	return xccs;
}

int mask_narrow(const struct mask *grant, const struct mask *own, uint32_t xccs, struct mask *ret,
		uint32_t *ret_xcc)
{
	struct mask narrow = *grant;
	uint32_t xcc;
	bool empty;

	for (size_t i = 0; own->words > 0 && i < narrow.words; i++)
		narrow.word[i] &= word_of(own, i);
	empty = mask_empty(&narrow);
	xcc = empty ? xccs : idle_xcc(&narrow, xccs);
	if (own->words > 0 && (empty || xcc < xccs)) {
		*ret_xcc = xcc;
		return -ERANGE;
	}
	*ret = narrow;
	return 0;
}
