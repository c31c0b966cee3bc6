/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Proposals: decide and change nothing. A proposal is saved, then committed with
 * arbiter_commit(); no other change of the ledger may come between plan and commit.
 */

#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

/* Plans a new lease. On 0 the caller owns the proposal, which has the id that the lease will get.
 * Otherwise a negative errno, and result says why. A request that does not fit now but may wait
 * (request->wait_usec > 0) becomes a proposal in STATE_WAITING, without partitions and without a
 * deadline: the caller sets the deadline, and result says what the lease waits for. */
int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result);

/* A request, and the lease that it is for: one that waits, or would (plan_lease()); or one that is resized. */
struct asker {
	const struct lease *lease;
	const struct request *request;
};

/* Places the request in a ledger. Returns how many partitions there are, or a negative errno. */
int plan_asked(const struct arbiter *arbiter, const struct asker *asker,
	       struct partition partitions[static REQUEST_WANTS], struct result *result);

/* Plans other wants for a granted lease: one want for each of its partitions, placed as if the
 * lease held nothing. CUs that leave its masks stay charged until the holder acknowledges the
 * new generation. A lease that is not adaptable reclaims CUs of borrowers: it keeps its masks until
 * arbiter_lend() finds that they have been returned. */
int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			const struct request *request, struct lease **ret, struct result *result);

/* Plans to activate or deactivate a realtime lease. Activating: arbiter_lend() grants it when no
 * borrower occupies its CUs any more. Deactivated: its CUs are lent. */
int arbiter_plan_activate(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			  bool active, struct lease **ret, struct result *result);

/* Plans to start or stop draining a GPU: a draining GPU gets no new grants. *ret: all GPUs that
 * are draining then, as bits. -ENOENT. */
int arbiter_plan_drain(const struct arbiter *arbiter, const char *gpu, bool drain, uint64_t *ret);

/* arbiter_plan() where wait_usec does not decide whether the request may wait. */
int plan_new(const struct arbiter *arbiter, const struct caller *caller,
	     const struct request *request, bool may_wait, struct lease **ret,
	     struct result *result);

#define PLAN_HOLDS_NOTHING UINT32_MAX /* no lease has this owner */

/* A lease for this request that is not in the ledger yet, as if it waited: all requests are decided as those of leases. */
int plan_lease(const struct arbiter *arbiter, const struct caller *caller,
	       const struct request *request, struct lease **ret, struct result *result);

/* Decides about a lease that waits, or would, with its rank, as if it had this request. holder: the
 * uid whose quota counts. */
int plan_waiting(const struct arbiter *arbiter, const struct lease *lease, uid_t holder,
		 const struct request *request, struct partition *partitions,
		 uint64_t *ret_candidates, struct result *result);

/* May it wait, after this refusal, for leases that end, of other users or of its own? */
bool plan_may_wait(const struct arbiter *arbiter, const struct lease *lease,
		   const struct result *refused);

/* Gives a lease that has none the partitions that were found for it. -ENOMEM. */
int plan_grant(const struct arbiter *arbiter, struct lease *lease,
	       const struct partition *partitions);
