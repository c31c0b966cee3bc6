/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/cuset.h"

#include <string.h>

unsigned cuset_count(const struct cuset *set)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		n += cuset_count_word(set->pair[i]);
	return n;
}

/* No early return in these: a loop without one runs in vector registers. */
bool cuset_empty(const struct cuset *set)
{
	uint32_t any = 0;

	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		any |= set->pair[i];
	return any == 0;
}

bool cuset_equal(const struct cuset *a, const struct cuset *b)
{
	return memcmp(a->pair, b->pair, sizeof(a->pair)) == 0;
}

bool cuset_overlap(const struct cuset *a, const struct cuset *b)
{
	uint32_t both = 0;

	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		both |= a->pair[i] & b->pair[i];
	return both != 0;
}

bool cuset_within(const struct cuset *inner, const struct cuset *outer)
{
	uint32_t outside = 0;

	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		outside |= inner->pair[i] & ~outer->pair[i];
	return outside == 0;
}

void cuset_add(struct cuset *set, const struct cuset *other)
{
	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		set->pair[i] |= other->pair[i];
}

void cuset_remove(struct cuset *set, const struct cuset *other)
{
	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		set->pair[i] &= ~other->pair[i];
}

void cuset_keep(struct cuset *set, const struct cuset *other)
{
	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		set->pair[i] &= other->pair[i];
}

uint32_t cuset_engines(const struct cuset *set)
{
	uint32_t any[CUSET_ENGINES] = { 0 }, engines = 0;

	for (unsigned xcc = 0; xcc < CUSET_XCCS; xcc++)
		for (unsigned engine = 0; engine < CUSET_ENGINES; engine++)
			any[engine] |= set->pair[cuset_pair(xcc, engine)];

	for (unsigned engine = 0; engine < CUSET_ENGINES; engine++)
		engines |= (uint32_t)(any[engine] != 0) << engine;
	return engines;
}

void cuset_keep_engines(struct cuset *set, uint32_t engines)
{
	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		set->pair[i] &= engines >> i % CUSET_ENGINES & 1 ? UINT32_MAX : 0;
}
