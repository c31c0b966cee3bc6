/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Numbers of leases: from 1, and never used again. They are reserved on disk in blocks before they
 * are used: in the runtime directory for the next daemon of this boot, and in the state directory,
 * which outlives a boot.
 */

#include <stdint.h>

#include "util/diagnostics.h"

#define ID_MAX (UINT64_C(1) << 53) /* JSON readers hold integers up to here */

struct lease_ids {
	int runtime; /* not owned */
	int durable; /* -1: none */
	uint64_t first;
	uint64_t reserved_until; /* ids below are reserved in the runtime directory */
	uint64_t durable_until;  /* the same in the state directory */
};

/* path: of the runtime directory, for diagnostics. durable: the path of the state directory; NULL:
 * none. highest: of the saved leases. */
void lease_ids_init(struct lease_ids *ids, const char *path, int runtime, const char *durable,
		    uint64_t highest, struct diagnostics *diagnostics);
void lease_ids_done(struct lease_ids *ids);

/* Before `id` is used. -errno: it must not be used. */
int lease_ids_reserve(struct lease_ids *ids, uint64_t id);

/* At the end of the daemon: the next one continues with next_id, not with the next block. */
void lease_ids_end(struct lease_ids *ids, uint64_t next_id);
