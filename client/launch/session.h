/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A connection to the daemon, and its last snapshot. All functions print what failed and return the
 * exit code; 0 is success. */

#include "client/options/options.h"

struct session {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view;
};

int session_open(const struct command *command, struct session *ret);
int session_snapshot(const struct command *command, struct session *session); /* opens if needed */
void session_done(struct session *session);

/* The next call may need an administrator: polkit may ask for a password on a terminal. */
void session_administer(const struct session *session);

/* Finds a GPU of the snapshot by name or index, a lease by number. */
int session_gpu(const struct command *command, const struct session *session, const char *gpu,
		const struct gpuarb_gpu **ret);
int session_lease(const struct command *command, const struct session *session, uint64_t id,
		  const struct gpuarb_lease_info **ret);

/* NULL: the snapshot has no lease of that number. */
const struct gpuarb_lease_info *session_find(const struct session *session, uint64_t id);
