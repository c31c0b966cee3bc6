/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What verbs that act on one lease have in common. They say what failed and return the exit
 * code; 0 is success. */

#include <stdio.h>

#include "client/launch/session.h"

/* Reads the lease's number off the command line and connects; a person may be asked for a
 * password by what follows. */
int act_begin(const struct command *command, struct session *session, uint64_t *ret_id);

/* Looks, and says what the lease is now: "lease 17: activating: lease 9 gives back 30 CUs; active
 * in 1 s", or the lease as one JSON object. */
int act_tell(const struct command *command, struct session *session, uint64_t id);

/* The same line of a lease that was looked at. */
void act_print(FILE *out, const struct gpuarb_lease_info *lease);
