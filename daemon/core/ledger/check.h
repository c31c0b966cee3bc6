/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The invariants of partitions and of pairs of leases. */

#include "core/ledger/ledger.h"

/* Can an empty GPU have this partition? Its cus, count and effective must agree. 0, or -EINVAL and
 * in buf why not. */
int check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size);

/* What two partitions of one GPU share although their classes forbid it: "CUs", "a shader engine";
 * NULL: nothing. */
const char *check_apart(enum lease_class a, const struct partition *p, enum lease_class b,
			const struct partition *q);

/* Do the queues of the lease use its CUs? Not before it is granted, nor while it lends them. */
bool check_active(const struct lease *lease);
