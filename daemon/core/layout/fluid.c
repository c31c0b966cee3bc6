/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/layout/fluid.h"

#include "util/base.h"

/* A level is what each unit of weight gets, in 2^-(FLUID_BITS + LEVEL_BITS) units. It is found bit by
 * bit from the highest one: FLUID_UNITS_MAX for a weight of 1. */
#define LEVEL_BITS 16U
#define LEVEL_TOP (UINT64_C(1) << (16 + FLUID_BITS + LEVEL_BITS - 1))

static uint64_t at_level(uint64_t level, unsigned weight, uint64_t least, uint64_t most)
{
	return max_u64(min_u64(level * weight >> LEVEL_BITS, most), least);
}

static uint64_t term_at(const struct fluid_term *term, uint64_t level)
{
	return at_level(level, term->weight, (uint64_t)term->least << FLUID_BITS,
			(uint64_t)term->most << FLUID_BITS);
}

static void sum_up_accounts(struct fluid_term *terms, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fluid_term *first = &terms[terms[i].account];

		if (first == &terms[i])
			first->own = (__typeof__(first->own)){ 0 };
		first->own.least += (uint64_t)terms[i].least << FLUID_BITS;
		first->own.most += (uint64_t)max_u(terms[i].least, terms[i].most) << FLUID_BITS;
		first->own.weight = max_u(first->own.weight, terms[i].weight);
	}
}

static uint64_t account_at(const struct fluid_term *first, uint64_t level)
{
	return at_level(level, first->own.weight, first->own.least, first->own.most);
}

static void divide_among_accounts(struct fluid_term *terms, size_t n, uint64_t amount)
{
	uint64_t level = 0;

	for (uint64_t bit = LEVEL_TOP; bit > 0; bit >>= 1) {
		uint64_t sum = 0;

		for (size_t i = 0; i < n; i++)
			if (terms[i].account == i)
				sum += account_at(&terms[i], level | bit);
		if (sum <= amount)
			level |= bit;
	}
	for (size_t i = 0; i < n; i++)
		if (terms[i].account == i)
			terms[i].own.amount = account_at(&terms[i], level);
}

/* All accounts at once: each has its own level. */
static void divide_within_accounts(struct fluid_term *terms, size_t n)
{
	for (uint64_t bit = LEVEL_TOP; bit > 0; bit >>= 1) {
		for (size_t i = 0; i < n; i++) {
			struct fluid_term *first = &terms[terms[i].account];

			first->own.sum = (first == &terms[i] ? 0 : first->own.sum) +
					 term_at(&terms[i], first->own.level | bit);
		}
		for (size_t i = 0; i < n; i++)
			if (terms[i].account == i && terms[i].own.sum <= terms[i].own.amount)
				terms[i].own.level |= bit;
	}
	for (size_t i = 0; i < n; i++)
		terms[i].share = term_at(&terms[i], terms[terms[i].account].own.level);
}

void fluid(struct fluid_term *terms, size_t n, unsigned units)
{
	sum_up_accounts(terms, n);
	divide_among_accounts(terms, n, (uint64_t)units << FLUID_BITS);
	divide_within_accounts(terms, n);
}
