/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory that runs out: lack.c has malloc() and its like in the place of the C library's or the sanitizer's,
 * of which one fails when it is told to. It is a source of the programs that need it.
 */

#include <stdatomic.h>
#include <stdbool.h>

/* Allocations until one fails; -1: none does. */
extern atomic_long lack_left;

/* strdup() never fails: json-c 0.16 does not check it. */
extern bool lack_spares_strings;

#define LACK_MOST 2000 /* allocations of one call: reached by a failure only */

/* Calls once() until no allocation fails: the first one, the second one, and so on, counted from where
 * it sets lack_left = allocations. It returns 0 or -ENOMEM, which only a failed allocation explains. Some can
 * be done without, such as a buffer that could be cut to size: returns how often once() failed. */
unsigned lack_each(const char *what, int (*once)(long allocations));
