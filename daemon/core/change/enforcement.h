/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Enforcement against a lease that does not give back CUs by its deadline: one step after the
 * other, up to the last one that policy allows for its tenant. Core decides which step is due; the
 * daemon carries it out. */

#include "core/ledger/ledger.h"

/* Time between the kill of a lease's processes and their absence from the GPU: the driver's
 * default preemption time-out, after which the GPU is reset, and one scan. */
#define ENFORCE_LET_GO_USEC (PREEMPTION_MSEC * UINT64_C(1000) + LOOK_WHILE_ENDING_USEC)

/* The next step for a lease whose deadline has passed; it counts as done.
 * ENFORCE_STEP_NONE: nothing is due. A revoked lease ends at its deadline, other leases when they
 * are killed. */
enum enforce_step arbiter_next_enforce_step(struct arbiter *arbiter, uint64_t now_usec,
					    struct lease **ret);

/* A lease whose unit is frozen and need not be any more; NULL. */
struct lease *arbiter_next_thaw(struct arbiter *arbiter);

/* When the lease has released its CUs at the latest if it never answers; UINT64_MAX: policy does
 * not allow to kill it. */
uint64_t enforce_over_at(const struct arbiter *arbiter, const struct lease *lease,
			 uint64_t now_usec);
