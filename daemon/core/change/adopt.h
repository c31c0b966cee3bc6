/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Takes over the leases that an earlier daemon granted and saved. */

#include <limits.h>

#include "core/ledger/ledger.h"

/*
 * Puts a saved lease into force, without holders. lost: the name of a GPU of the lease that is
 * gone or replaced, "" if none; its partition there has the index GPU_ABSENT. Then, and where the
 * GPU can never have this partition, the lease is ending with that reason. -EEXIST, -EINVAL: the
 * lease contradicts a lease in force, or itself; why is a sentence, and the lease still belongs to
 * the caller. -ENOMEM. A lease that was ending is touched as ending again: its holder may not have
 * been notified.
 */
#define GPU_ABSENT UINT_MAX
int arbiter_adopt(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		  size_t size);

/* Call it when all saved leases are adopted. */
void arbiter_adopted(struct arbiter *arbiter);
