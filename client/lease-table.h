/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "client/options.h"

/* Leases as a table on standard output; a sentence where there are none. */
void lease_table(const struct command *command, const struct gpuarb_lease_info *leases,
		 size_t n);
