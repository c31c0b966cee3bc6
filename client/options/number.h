/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers on the command line: digits and nothing after them. -EINVAL: not a number; -ERANGE: out
 * of bounds. */

#include <stdint.h>

/* Takes the digits off the front of *text. */
int number_take(const char **text, uint64_t *ret);

/* The whole text, min and max included. */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* "25%": 1 to 100. */
int number_share(const char *text, unsigned *ret_percent);

/* "4096", "512M", "2G", "1T": powers of 1024. */
int number_bytes(const char *text, uint64_t *ret);
