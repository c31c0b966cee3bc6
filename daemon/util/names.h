/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ids of users and groups by name. A look-up may take as long as a network does: gpuarbd makes it in a
 * child, and reads the answers from a table. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"

struct names {
	bool asks; /* the name service, and records the answers; else the list is sorted, and others are unknown */
	struct name {
		char *name;
		unsigned id;
		bool group, known;
	} * list;
	size_t n;
};

void names_done(struct names *names);

/* NULL: asks the name service, and records nothing. */
bool names_find(struct names *names, const char *name, bool group, unsigned *ret);

/* A table as a text, which the caller frees, and from one, which is cut into pieces. -ENOMEM; -EBADMSG:
 * it is none. */
int names_format(const struct names *names, char **ret);
int names_parse(char *text, struct names *ret);
