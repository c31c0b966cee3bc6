/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Advice: the leases whose end would make room for a refused request. */

#include "core/ledger/ledger.h"

#define ADVICE_LEASES 16U /* in one advice at most */

struct advice {
	uint64_t ids[ADVICE_LEASES]; /* ascending */
	size_t n;                    /* 0: no set of at most ADVICE_LEASES leases would help */
	bool exact; /* no cheaper set would do; false: not every cheaper set was tried */
};

/*
 * A set of granted leases without which arbiter_plan() would grant the request. Every member is
 * needed. If one lease is enough, it is the cheapest one: lower classes first, then fewer CUs, then
 * the lower id. Otherwise the most expensive leases are spared first, which finds the cheapest set
 * almost always: test-advice prints how often.
 *
 * Leases that are ending are not proposed, because they end anyway; nor are waiting leases, which
 * hold nothing. Observed use beyond budgets and by unmanaged processes counts as if it stayed.
 *
 * 0, also where the request fits or is refused for what no end would change; -ENOMEM.
 */
int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret);
