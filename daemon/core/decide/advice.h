/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Advice: the leases whose end would make room for a refused request. */

#include "core/ledger/ledger.h"

#define ADVICE_LEASES 16U  /* in one advice at most */
#define ADVICE_TRIES 2048U /* sets of leases that are tried at most, in some milliseconds */
#define ADVICE_QUICK 64U   /* with more leases than this, fewer in proportion */

struct advice {
	uint64_t ids[ADVICE_LEASES]; /* ascending */
	size_t n;                    /* 0: no set of at most ADVICE_LEASES leases would help */
	bool exact; /* no cheaper set would do; false: not every cheaper set was tried */
};

/*
 * The cheapest set of granted leases without which arbiter_plan() would grant the request:
 * the fewest; of those the ones with the fewest realtime, then the fewest guaranteed leases;
 * then the fewest CUs; then the lowest ids. Never more than is needed, whether exact or not.
 *
 * Leases that are ending are not proposed, because they end anyway; nor are waiting leases, which
 * hold nothing. Observed use beyond budgets and by unmanaged processes counts as if it stayed.
 *
 * 0, also where the request fits or is refused for what no end would change; -ENOMEM.
 */
int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret);
