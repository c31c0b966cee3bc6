/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory that runs out: malloc() and its like in the place of the C library's, of which one
 * fails when it is told to. For one source file of a program without sanitizers, which have a
 * malloc of their own.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The C library's own, which these take the place of. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static atomic_long left = -1; /* allocations until one fails; negative: none does */

static bool denied(void)
{
	if (left < 0 || left-- > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return denied() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return denied() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return denied() ? NULL : __libc_realloc(p, size);
}
