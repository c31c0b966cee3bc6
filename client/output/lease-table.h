/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The table of the leases of a snapshot, and its cells for other tables. */

#include <stddef.h>

#include "client/options/options.h"
#include "client/output/lease-text.h"
#include "client/output/table.h"

/* The leases of the snapshot on standard output, or "No leases." */
extern const char *const lease_table_heads[];
void lease_table(const struct command *command);

/* Adds the state of command->leases[l], and whether it drifts or is disturbed. */
void lease_table_state(struct table *table, const struct command *command, size_t l);

/* The last column: the CUs lent or borrowed, a priority that differs from the requested one, the
 * reason of the state. */
#define LEASE_TABLE_WHY 392U
void lease_table_why(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
		     size_t size);
