/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that change the arbiter share; nobody outside core needs it. */

#include "core/arbiter.h"

/* A process whose lease is settled. */
#define KNOWN_UNSEEN UINT64_MAX /* it was bound, and died before it was seen */

struct known_process {
	pid_t pid;
	uint64_t start_time; /* 0: it was gone when first seen; or KNOWN_UNSEEN */
	uint64_t lease;      /* 0: none */
};

void ledger_touch(struct arbiter *arbiter, struct lease *lease, unsigned touch);
void ledger_charge(struct arbiter *arbiter, const struct lease *lease);

/* Leaves the CUs of partitions that share: ledger_recount_shared() once the lease has
 * gone, or has others. */
void ledger_discharge(struct arbiter *arbiter, const struct lease *lease);
void ledger_recount_shared(struct arbiter *arbiter, const struct lease *gone);

/* Takes the lease out; it stays on the touched list until the daemon takes it. */
void ledger_remove(struct arbiter *arbiter, struct lease *lease);
