/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A connection to the daemon and, where the verb looks around, one picture of everything.
 * Functions that fail say so and return the exit code; 0 is success. */

#include "client/options/options.h"

struct session {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view;
};

int session_open(const struct command *command, struct session *ret);
int session_look(const struct command *command, struct session *session); /* opens if need be */
void session_done(struct session *session);

/* What follows may need an administrator: polkit may ask the person at this terminal, if there
 * is one. */
void session_administer(const struct session *session);

/* The GPU by name or index, the lease by its number as typed. */
int session_gpu(const struct command *command, const struct session *session, const char *gpu,
		const struct gpuarb_gpu **ret);
int session_lease(const struct command *command, const struct session *session, uint64_t id,
		  const struct gpuarb_lease_info **ret);

/* NULL: there is none of that number. */
const struct gpuarb_lease_info *session_find(const struct session *session, uint64_t id);

/* Reads a lease's number. */
int session_id(const struct command *command, const char *text, uint64_t *ret);
