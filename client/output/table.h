/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables: cells are escaped and cut, columns are as wide as their widest cell. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/options/options.h"
#include "util/base.h"
#include "util/each.h"

#define TABLE_COLUMNS 16U

struct table {
	const char *const *heads; /* NULL-terminated */

	/* A letter for each column: '0' stays on a narrow terminal, '9' is left out first, 'w' is for
	 * wide output alone. The last column is cut where all that stay are too wide. */
	const char *keep;
	char **cells; /* row by row, owned */
	size_t n, room;
};

/* Adds the next cell, row by row. Out of memory leaves the cell empty. */
void table_text(struct table *table, const char *text);
void table_count(struct table *table, uint64_t number);
void table_number(struct table *table, uint64_t number); /* 0: "-" */
void table_add(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds cells of texts and numbers; or of numbers alone, 0 as "-". */
#define TABLE_CELLS(table, ...) ((void)(EACH(TABLE_CELL, table, , __VA_ARGS__)))
#define TABLE_NUMBERS(table, ...) ((void)(EACH(TABLE_NUMBER, table, , __VA_ARGS__)))
/* clang-format off */
#define TABLE_CELL(table, unused, cell) \
	_Generic((cell), char *: table_text, const char *: table_text, default: table_count)(table, cell)
#define TABLE_NUMBER(table, unused, number) table_number(table, number)
/* clang-format on */

/* Reports columns of --columns that the table does not have. Returns the exit code. */
int table_check_columns(const struct command *command, const char *const *heads);

/* Prints the table, with its heads unless --no-legend. A table without rows prints nothing. */
void table_print(const struct table *table, const struct command *command, FILE *out);

void table_done(struct table *table);
