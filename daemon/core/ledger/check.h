/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The invariants of the ledger. */

#include "core/ledger/ledger.h"

/* Can an empty GPU have this partition? Its cus, count and effective must agree. false: and in buf
 * why not. */
bool check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size);

/* What two partitions of one GPU share although their classes forbid it: "CUs", "a shader engine";
 * NULL: nothing. */
const char *check_apart(enum lease_class a, const struct partition *p, enum lease_class b,
			const struct partition *q);

/* Do the queues of the lease use its CUs? Not before it is granted, nor while it lends them. */
bool check_active(const struct lease *lease);

/* Checks every invariant from the leases alone. false: and in buf the one that is broken. For
 * tests, after every operation. */
bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size);
