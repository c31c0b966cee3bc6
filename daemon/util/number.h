/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers in texts: decimal digits, without a sign and without blanks. -EINVAL: it is not such a number;
 * -ERANGE: it is out of bounds. */

#include <stdint.h>

/* Takes the digits off the front of *text. */
int number_take(const char **text, uint64_t *ret);

/* The whole text, min and max included. */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* The same with a unit behind the number. */
int number_parse_in(const char *text, const char *unit, uint64_t min, uint64_t max, uint64_t *ret);

struct number_unit {
	const char *name; /* NULL after the last one */
	uint64_t factor;
};

/* A number with one of the units behind it, times its factor. */
int number_parse_units(const char *text, const struct number_unit *units, uint64_t *ret);

/* "4096", "512M", "2G", "1t": powers of 1024. */
int number_parse_bytes(const char *text, uint64_t *ret);
