/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Exclusive leases: realtime leases with exclusive = active. While one is active, the adaptable
 * leases on its GPUs are paused (change/share/pause.c), and nothing else may use them: leases that cannot
 * pause and processes without a lease refuse it, and it refuses new leases that cannot pause. The same holds for
 * other partitions of a card that share its memory.
 * An inactive exclusive lease refuses nothing, so its activation may be refused.
 */

#include "core/ledger/ledger.h"

/* Does this request make an exclusive lease? */
bool exclusive_asked(const struct tenant *tenant, enum lease_class lease_class,
		     const struct request *request);

/* The active exclusive lease on the GPU, or on one that shares its memory, other than self (NULL: any); NULL. */
const struct lease *exclusive_on(const struct arbiter *arbiter, unsigned gpu,
				 const struct lease *self);

/* May a lease that cannot pause not become active on this GPU now? exclusive: it is exclusive. self:
 * the lease, NULL for a new one. Names in the refusal what is in the way. */
bool exclusive_refuses(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		       bool exclusive, struct refusal *refusal);
