/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cleanup of variables at the end of their scope, and a few macros. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Defines FUNCp for _cleanup_(), from a function that frees a TYPE. */
#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		if (*p)                     \
			func(*p);           \
	}

/* The value of the pointer variable p, which becomes NULL: passes ownership on. */
#define TAKE_PTR(p)                               \
	({                                        \
		__typeof__(p) *take_p_ = &(p);    \
		__typeof__(p) take_v_ = *take_p_; \
		*take_p_ = NULL;                  \
		take_v_;                          \
	})

/* Defines a function for qsort(3) and bsearch(3): elements of a type in the order of a member, which is written with
 * its dot; empty: of the elements themselves. */
#define DEFINE_ORDER(name, type, member)                                          \
	static int name(const void *a, const void *b)                             \
	{                                                                         \
		const type *x = a, *y = b;                                        \
                                                                                  \
		return (x[0] member > y[0] member) - (x[0] member < y[0] member); \
	}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline unsigned min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static inline unsigned max_u(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t bit_u64(size_t i)
{
	return UINT64_C(1) << i;
}

/* Loops over the bits that are set: i is the number of one. */
#define FOR_EACH_BIT(i, bits)               \
	for (uint64_t i##_left = (bits), i; \
	     i##_left && (i = (uint64_t)__builtin_ctzll(i##_left), 1); i##_left &= i##_left - 1)

/* The largest number stands for no bound, and for each sum that is larger. */
static inline uint64_t sum_u64(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* How much a is above b. */
static inline uint64_t beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* How many of n elements come first for which `before` is true, an expression of their index i, by binary search. */
#define COUNT_BEFORE(n, i, before)                            \
	({                                                    \
		size_t low_ = 0, high_ = (n);                 \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
			if (before)                           \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})

/* For _cleanup_(): frees the memory that a pointer variable of any type points to. */
static inline void freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}
