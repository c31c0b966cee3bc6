/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reserving a lease for run and reserve. The functions print what failed and return the exit
 * code; 0 is success. */

#include <stdio.h>

#include "client/launch/session.h"
#include "core/policy/caller.h"
#include "util/base.h"

DEFINE_CLEANUP(struct gpuarb_lease *, gpuarb_lease_close)

/* Plans wants as want_resolve() makes them for a user; NULL: for the caller. Where no number of queues was typed, the GPUs
 * are chosen with the fewest, and get as many as are fair on them and fit now; if nothing fits now, as many as can wait.
 * *ret: as of gpuarb_plan(). Prints nothing; returns a negative errno. */
int grant_plan(struct command *command, struct gpuarb_want *wants, const struct caller *user,
	       const char **ret);

/* Reserves the wants of the command line and waits until they are granted, as long as --wait says.
 * Prints on standard error, after `before`, that the lease waits. If a signal ends the program, the
 * lease loses its place in the queue. */
int grant_reserve(struct command *command, const char *before, struct gpuarb_lease **ret);

/* Prints "BEFORElease 17: cus: …" for each partition, or the lease as a JSON object. */
int grant_print(struct command *command, const struct gpuarb_lease *lease, const char *before,
		FILE *out);

/* What follows the refusals of a request: the holders of what it needs, and options to try. */

/* Prints the options with which the request would be granted or would wait; and, with holders, the
 * leases that hold what the last refusals count: name, user, size and age. */
void refusal_help(struct command *command, bool holders, FILE *out);

/* "18  serve, besteffort of alice, 15 CUs, for 2 min". */
void refusal_help_lease(FILE *out, const struct command *command,
			const struct gpuarb_lease_info *lease);
