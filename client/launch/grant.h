/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reserving, as run and reserve do it, and saying what came of it. The functions say what
 * failed and return the exit code; 0 is success. */

#include <stdio.h>

#include "client/launch/session.h"
#include "util/base.h"

void grant_close(struct gpuarb_lease *lease);
DEFINE_CLEANUP(struct gpuarb_lease *, grant_close)

/* Reserves what was typed and waits until it is granted, as long as --wait says; that it
 * waits is said at once, after `before`, on standard error. A signal that ends the program
 * gives up the place. */
int grant_reserve(struct command *command, struct session *session, const char *before,
		  struct gpuarb_lease **ret);

/* Says what was granted: "BEFORElease 17: cus: …" a line each partition, or the lease as
 * one JSON object. */
int grant_tell(const struct command *command, struct session *session,
	       const struct gpuarb_lease *lease, const char *before, FILE *out);
