/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What would have to end for a refused request to fit. Pure. */

#include "core/ledger/ledger.h"

#define ADVICE_LEASES 16U  /* in one advice at most */
#define ADVICE_TRIES 2048U /* sets of leases that are tried at most: some milliseconds; */
#define ADVICE_QUICK 64U   /* where there are more leases than this, as many fewer */

struct advice {
	uint64_t ids[ADVICE_LEASES]; /* ascending */
	size_t n;   /* 0: no end of leases would help, or none of so few as have a place here */
	bool exact; /* nothing cheaper would do; false: not all that could were tried */
};

/*
 * The cheapest set of granted leases without which arbiter_plan() would grant the request:
 * the fewest; of those the ones with the fewest realtime, then the fewest guaranteed leases;
 * then the fewest CUs; then the lowest ids. Never more than is needed, whether exact or not.
 *
 * Leases that are ending already are not proposed, since they go anyway, nor those that wait:
 * what becomes free is theirs first. What the hardware was seen to be used for, beyond
 * budgets and by strangers, counts as if it stayed.
 *
 * 0, also where the request fits or is refused for what no end would change; -ENOMEM.
 */
int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret);
