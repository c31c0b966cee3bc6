/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What follows the refusals of a request: the holders of what it needs, and options to try. */

#include <stdio.h>

#include "client/options/options.h"

/* Prints the options with which the request would be granted or would wait; and, with holders, the
 * leases that hold what the last refusals count: name, user, size and age. */
void refusal_help(struct command *command, bool holders, FILE *out);

/* "18  serve, besteffort of alice, 15 CUs, for 2 min". */
void refusal_help_lease(FILE *out, const struct command *command,
			const struct gpuarb_lease_info *lease);
