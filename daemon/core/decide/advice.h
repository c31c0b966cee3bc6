/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Advice: the leases whose end would make room for a refused request. */

#include "core/decide/plan.h"

#define ADVICE_LEASES 16U /* in the advice for a person at most */
#define ADVICE_MAX 256U   /* in any advice at most */

struct advice {
	uint64_t ids[ADVICE_MAX]; /* ascending */
	size_t n;                 /* 0: no set of that many leases would help */
	bool cut;       /* the search ended early: there may be a set that it has not found */
	bool exact;     /* no cheaper set would do; false: not every cheaper set was tried */
	unsigned steps; /* that the search took: decide/admit.h */
};

/* Whose end is considered. */
enum advice_of {
	ADVICE_ANY,       /* any lease */
	ADVICE_REVOCABLE, /* only those that policy allows to revoke for the class of the request */
	ADVICE_IF_POLICY, /* the same if policy allowed it for all tenants */
};

/*
 * A set of granted leases without which arbiter_plan() would grant the request. Every member is
 * needed. If one lease is enough, it is the cheapest one: one that is revoked already, then lower
 * classes, then fewer CUs, then the lower id. Otherwise the search spares the most expensive leases first, and then exchanges
 * leases of the set for others. That finds the cheapest set almost always: test-advice prints how often. Of leases to
 * revoke, a set with fewer guaranteed ones is cheaper, however many it has.
 *
 * Leases that are ending are not proposed, because they end anyway; nor are waiting leases, which
 * hold nothing. A search that takes too long ends early. Observed use beyond budgets and by unmanaged processes counts as if it stayed.
 *
 * 0, also where the request fits or is refused for what no end would change; -ENOMEM.
 */
int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret);

/* The same for a lease that waits, or would, and of any leases. 1: they make room. Of leases to revoke none may be left
 * (n 0): those that are leaving make enough room. 0: there are none. */
int advice_find(const struct arbiter *arbiter, const struct lease *lease, enum advice_of of,
		struct advice *ret);

/* Is the lease ending, so that its room is free soon? */
bool advice_is_leaving(const struct lease *lease);
