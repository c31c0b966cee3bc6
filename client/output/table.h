/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table for people: cells are escaped and bounded, columns as wide as they need. */

#include <stddef.h>
#include <stdio.h>

#include "client/options/options.h"
#include "util/base.h"

#define TABLE_COLUMNS 16U

struct table {
	const char *const *heads; /* NULL-terminated */
	char **cells;             /* row by row, owned */
	size_t n, room;
};

/* Adds the next cell of the row, or the first of the next. Without memory the cell is
 * left empty. */
void table_add(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints it, its heads unless --no-legend; nothing at all for a table without rows. */
void table_print(const struct table *table, const struct command *command, FILE *out);

void table_done(struct table *table);
