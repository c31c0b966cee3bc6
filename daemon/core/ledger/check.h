/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The invariants of the ledger. */

#include "core/ledger/ledger.h"

/* May this be a partition of the GPU, were it empty? cus, count and E first have to be each
 * other's. false: and in buf why not. */
bool check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size);

/* What two partitions of one GPU, by leases of these classes, must not share and do: "CUs",
 * "a shader engine"; else NULL. */
const char *check_apart(enum lease_class a, const struct partition *p, enum lease_class b,
			const struct partition *q);

/* What it has is its own now: not to come, and not lent. */
bool check_active(const struct lease *lease);

/* Checks every invariant from the leases alone. false: and in buf the one that is broken. For
 * tests, after every operation. */
bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size);
