/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What ownership needs, and nothing else. */

#include <stddef.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* After the prototype of a free function that takes NULL: makes NAMEp for _cleanup_(). */
#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		if (*p)                     \
			func(*p);           \
	}

/* Gives the pointer away: the variable is NULL afterwards. */
#define TAKE_PTR(p)                               \
	({                                        \
		__typeof__(p) *take_p_ = &(p);    \
		__typeof__(p) take_v_ = *take_p_; \
		*take_p_ = NULL;                  \
		take_v_;                          \
	})

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

/* For _cleanup_(): frees what a pointer variable of any type points to. */
void freep(void *pointer_to_pointer);
