/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A lease as JSON text: one object, version 2. The tables in state-json.c list its members. All
 * must be there, except those that their comments call optional, and no others: a grant could
 * depend on what an older reader does not know. Increase the version when a member is added.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/ledger/lease.h"

struct arbiter;

#define STATE_JSON_VERSION 2

/* A lease that an earlier daemon saved. */
struct state_lease {
	struct lease *lease;
	char lost[GPU_NAME_MAX]; /* one of its GPUs that is gone or replaced; "": none */
	struct lease_process processes[LEASE_PROCESSES_MAX];
	size_t n_processes;
};

/* Writes all that is needed to rebuild the ledger. -ENOMEM. */
int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret);

/* Reads the text of state_json_write(). -EINVAL: it is damaged or something else, and why names the
 * member; -ENOMEM. */
int state_json_read(const struct arbiter *arbiter, const char *text, size_t length,
		    struct state_lease *ret, char *why, size_t size);
