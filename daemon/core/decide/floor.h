/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Floors: what policy reserves of each GPU for a tenant (reserved-cus and others, gpuarb-tenants(5)).
 * As much of it as the leases of the tenant do not hold is kept: no other tenant may claim it.
 * Adaptable leases may borrow it.
 */

#include "core/ledger/ledger.h"

#define FLOOR_TENANTS 64U

struct slots {
	struct budget budget; /* queues and processes */
	uint64_t of[BUDGETS]; /* as cus_of */
};

struct reserved {
	struct cuset cus;
	/* The tenants that they are kept for, as bits of their index; those from FLOOR_TENANTS on share
	 * the last one. 0: nothing is kept. */
	uint64_t cus_of;
	struct slots slots;
};

/* Kept from a tenant on one GPU. */
struct floor {
	struct reserved now;
	struct slots ever;   /* were the GPU empty */
	struct reserved own; /* now, for the tenant itself */
};

/* The first of these tenants, of which there is one. */
const struct tenant *floor_first(const struct settings *settings, uint64_t tenants);

/* "a", or "a, b": their names, as far as they have place. */
void floor_names(const struct settings *settings, uint64_t tenants, char *ret, size_t size);

bool floor_configured(const struct settings *settings);

/* What the floors of other tenants than self (NULL: of all) keep of the GPU. A pure function of the ledger: CUs that are kept
 * stay free, so later calls find as many. previous: the lease that is resized and left out of the ledger, whose CUs
 * are not kept for others; else NULL. -ENOMEM. */
int floor_find(const struct arbiter *arbiter, unsigned gpu, const struct tenant *self,
	       const struct lease *previous, struct floor *ret);

/* The same were the GPU empty. */
void floor_find_ever(const struct settings *settings, const struct gpu *gpu,
		     const struct tenant *self, struct reserved *ret);
