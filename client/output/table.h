/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables: cells are escaped and cut, columns are as wide as their widest cell. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/options/options.h"
#include "client/output/lease-text.h"
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

/* Prints the table, with its heads unless --no-legend. A table without rows prints nothing. */
void table_print(const struct table *table, const struct command *command, FILE *out);

void table_done(struct table *table);

/* The free resources and the state of each GPU of the snapshot. */
void gpu_table(const struct command *command, FILE *out);

/* The processes that have a GPU of the snapshot open through the graphics driver. */
void client_table(const struct command *command, FILE *out);

/* Whether the filters of the command line leave this lease, user or GPU in lists. */
bool lease_is_listed(const struct command *command, const struct gpuarb_lease_info *lease);
bool user_is_listed(const struct command *command, uint32_t uid);
bool gpu_is_listed(const struct command *command, const struct gpuarb_gpu *gpu);

/* Adds the state of command->leases[l], and whether it drifts. */
void lease_table_state(struct table *table, const struct command *command, size_t l);

/* Reports options of a list that name no user, GPU or column. heads: of the only table; NULL:
 * several tables, which take the columns that they have. Returns the exit code. */
int list_check(const struct command *command, const char *const *heads);

/* The leases of the snapshot on standard output, or "No leases." */
extern const char *const lease_table_heads[];
void lease_table(const struct command *command);

/* The last column: the CUs lent or borrowed, a priority that differs from the requested one, the
 * reason of the state. */
#define LEASE_TABLE_WHY 392U
void lease_table_why(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
		     size_t size);
