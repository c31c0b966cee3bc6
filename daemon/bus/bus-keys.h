/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a want and the options can say: one row for each key and type. Rows of one key
 * follow one another. */

#include <stddef.h>
#include <stdint.h>

#include "core/policy/request.h"

/* What one call reads. */
struct reading {
	struct request request;
	int process_fd;
};

struct key {
	const char *name;
	char type;                                  /* of the value on the bus: u t b s h */
	size_t offset;                              /* of the field that it fills */
	uint64_t min, max;                          /* u, t: its value; s: its length in bytes */
	int (*word)(const char *word, void *field); /* s from a vocabulary */
	const char *works; /* what would work, where the above does not say it all */
};

extern const struct key want_keys[];   /* fields of struct want */
extern const struct key option_keys[]; /* fields of struct reading */
extern const size_t n_want_keys, n_option_keys;
