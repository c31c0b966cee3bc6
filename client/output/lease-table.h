/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/output/lent.h"
#include "client/options/options.h"

/* Leases as a table on standard output; a sentence where there are none. */
void lease_table(const struct command *command, const struct gpuarb_lease_info *leases, size_t n);

/* What stands in its last column: why the lease is as it is, what it lends or borrows, and
 * a priority that it was not given. */
#define LEASE_TABLE_WHY 392U
void lease_table_why(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
		     size_t size);
