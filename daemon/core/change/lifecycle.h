/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What keeps a lease alive, and how it ends. The states of a lease:
 *
 *	Reserve --+-- does not fit, may wait --> WAITING --+
 *	          |                                        |
 *	          +-- fits <------- something is free -----+
 *	          |
 *	          +-- CUs free ---------> GRANTED <--- borrowers gave back ---+
 *	          |                         |                                 |
 *	          +-- CUs borrowed -------- | ---------> ACTIVATING ----------+
 *	          |                         |             |    ^
 *	          |                         | Deactivate  |    | Activate
 *	          |                         v             v    |
 *	          +-- start-inactive ----> INACTIVE <-----+----+
 *
 *	GRANTED, INACTIVE, ACTIVATING -- Revoke --> REVOKING -- acknowledged or deadline --> ENDING
 *	every state -- last holder gone, released, GPU gone, policy, time-out --> ENDING
 *	ENDING -- no process of the lease uses a GPU --> removed
 *
 * A waiting lease, and one that was never granted, has nothing to give back: Revoke ends it at
 * once. A waiting lease is removed at once when it ends.
 */

#include "core/ledger/ledger.h"

/* Holders and bound processes keep a lease alive; without any it is ending. Unknown ids do
 * nothing. */
void arbiter_add_holder(struct arbiter *arbiter, uint64_t id);
void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id);
int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid); /* -ENOENT, -ENOSPC */
void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid);

/* The holder uses the masks of this generation. -ENOENT; -ERANGE: a generation that was never
 * sent. */
int arbiter_acknowledge(struct arbiter *arbiter, uint64_t id, uint64_t generation);

/* Ends a lease; does nothing if it is ending. cause: the error for a program that waits for the
 * lease; RESULT_OK: none. */
void arbiter_end(struct arbiter *arbiter, struct lease *lease, enum result_kind cause,
		 const char *reason);

/* The lease ends when its holder acknowledges a new generation, or at the deadline. A second
 * revocation can only bring the deadline forward. */
int arbiter_revoke(struct arbiter *arbiter, uint64_t id, uint64_t now_usec, uint64_t grace_usec,
		   const char *reason, struct result *result);

/* Ends leases that the present policy would not grant: review_lease(). Waiting leases are judged
 * when they are to be granted. */
void arbiter_review(struct arbiter *arbiter);
