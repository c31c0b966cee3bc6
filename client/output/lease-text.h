/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts about a lease: its state, the CUs that it lends or borrows, its priority. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuarb/gpuarb.h"

uint64_t lease_clock_usec(void); /* the clock of deadlines, CLOCK_BOOTTIME */

/* "8s", "3min", "2h", "4d". */
#define LEASE_TEXT_AGE 24U
void lease_text_span(uint64_t seconds, char buf[static LEASE_TEXT_AGE]);

/* How long ago. since in microseconds of CLOCK_BOOTTIME; 0: "". */
void lease_text_age(uint64_t since, char buf[static LEASE_TEXT_AGE]);

/* The deadline by state: waiting "gives up in 42 s", activating "active in 1 s", granted "must
 * return CUs in 1 s", others "ends in 42 s"; "" without a deadline and for a lease that is
 * ending. */
void lease_text_deadline(const char *state, uint64_t deadline, char *buf, size_t size);

/* The state; "paused" for a granted lease whose queues have to be inactive on a GPU. */
const char *lease_text_state(const struct gpuarb_lease_info *lease);

/* "waits for 30 CUs on 0000:03:00.0; position 2; gives up in 42 s". An empty reason, position
 * 0 and GPUARB_FOREVER are left out. */
void lease_text_why(const char *state, unsigned position, const char *reason, uint64_t deadline,
		    char *buf, size_t size);

/* What gpuarb_view_uncapped() means, and how to get the cap. */
const char *uncapped_text(const char *uncapped);

/* The partition of the lease on this GPU; NULL: none. */
const struct gpuarb_partition *partition_on_gpu(const struct gpuarb_lease_info *lease,
						const char *gpu);

/* CUs that an inactive lease lends are in its mask and in the masks of the borrowers. */

/* All leases of a snapshot. */
struct lent {
	const struct gpuarb_lease_info *leases;
	size_t n;
};

bool lent_by(const struct gpuarb_lease_info *lease); /* whether it lends its CUs */

/* CUs of partition i that other leases borrow, and that it borrows. */
unsigned lent_out(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i);
unsigned lent_in(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i);

/* "lends 12 of 15 CUs", "borrows 12 of 20 CUs" or "", of all partitions. */
void lent_text(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
	       size_t size);

/* A partition's priority: the requested one, and the one that its queues have in the hardware. */

/* "low", "normal" and "high" for 0, 7 and 11, else the number. */
#define PRIORITY_NAME 16U
const char *priority_name(uint32_t priority, char buf[static PRIORITY_NAME]);

enum priority_match {
	PRIORITY_AS_ASKED, /* or not observed */
	PRIORITY_LESS,     /* no queue has the requested class */
	PRIORITY_MORE,     /* a queue has more than the requested and the normal class */
};

/* "high", "normal (asked high)", "high (asked; not observed in the hardware)". */
enum priority_match priority_text(const struct gpuarb_partition *partition, char *buf, size_t size);
