/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table for people: cells are escaped and bounded, columns as wide as they need. */

#include <stddef.h>
#include <stdio.h>

#include "client/options/options.h"
#include "client/output/lease-text.h"
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

/* What is free of each GPU, and how it does, as a table. */
void gpu_table(const struct command *command, const struct gpuarb_gpu *gpus, size_t n, FILE *out);

/* Leases as a table on standard output; a sentence where there are none. */
void lease_table(const struct command *command, const struct gpuarb_lease_info *leases, size_t n);

/* What stands in its last column: why the lease is as it is, what it lends or borrows, and
 * a priority that it was not given. */
#define LEASE_TABLE_WHY 392U
void lease_table_why(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
		     size_t size);
