/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Floors: what policy reserves of each GPU for a tenant (reserved-cus and others, gpuarb-tenants(5)).
 * As much of it as the leases of the tenant do not hold is kept: no other tenant may claim it.
 * Adaptable leases may borrow it.
 */

#include "core/ledger/ledger.h"

struct reserved {
	struct cuset cus;
	unsigned queues, processes;
	/* The first tenant that each is kept for; NULL: nothing is kept. */
	const struct tenant *of_cus, *of_queues, *of_processes;
};

/* Kept from a tenant on one GPU. */
struct floor {
	struct reserved now;
	struct reserved ever; /* were the GPU empty */
	struct reserved own;  /* now, for the tenant itself */
};

bool floor_configured(const struct settings *settings);

/* What the floors of other tenants than self keep. A pure function of the ledger: CUs that are kept
 * stay free, so later calls find as many. previous: the lease that is resized and left out of the
 * ledger, whose CUs are not kept for others; else NULL. */
void floor_find(const struct arbiter *arbiter, unsigned gpu, const struct tenant *self,
		const struct lease *previous, struct floor *ret);
