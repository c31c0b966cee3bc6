/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sentences about a lease, for people. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuarb/gpuarb.h"

/* "gives up in 42 s" of what waits, "active in 1 s" of what is activating, "to give CUs back in
 * 1 s" of what is granted, "ends in 42 s" of the others; "" without a deadline, and of what is ending. */
void lease_text_deadline(const char *state, uint64_t deadline, char *buf, size_t size);

/* Why it is as it is: "waits for cus on 0000:03:00.0, 30 asked; position 2; gives up in 42 s".
 * A reason "", a position of 0 and no deadline are left out. */
void lease_text_why(const char *state, unsigned position, const char *reason, uint64_t deadline,
		    char *buf, size_t size);

/* CUs that an inactive lease lends: they are in its mask, and in those of who borrows them. */

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

/* A partition's priority for people: what was asked, and what its queues have in the hardware. */

/* "low", "normal" and "high" of 0, 7 and 11, else the number. */
#define PRIORITY_NAME 16U
const char *priority_name(uint32_t priority, char buf[static PRIORITY_NAME]);

enum priority_seen {
	PRIORITY_AS_ASKED, /* or not seen */
	PRIORITY_LESS,     /* no queue is of the class that was asked */
	PRIORITY_MORE,     /* one has more than was asked, and more than normal */
};

/* "high", "normal (asked high)", "high (asked; not seen in the hardware)". */
enum priority_seen priority_text(const struct gpuarb_partition *partition, char *buf, size_t size);
