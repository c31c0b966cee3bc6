/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CUs that an inactive lease lends: they are in its mask, and in those of who borrows them. */

#include <stdbool.h>
#include <stddef.h>

#include "libgpuarb/gpuarb.h"

/* All leases there are. */
struct lent {
	const struct gpuarb_lease_info *leases;
	size_t n;
};

bool lent_by(const struct gpuarb_lease_info *lease); /* does it lend what it has? */

/* CUs of partition i that others borrow, or that it borrows of others. */
unsigned lent_out(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i);
unsigned lent_in(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i);

/* "lends 12 of 15 CUs", "borrows 12 of 20 CUs", "": neither. Of all partitions. */
void lent_text(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
	       size_t size);
