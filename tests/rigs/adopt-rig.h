/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Leases as loaded from a state file. */

#include "scene.h"

#define ADOPTED_USEC UINT64_C(1000000) /* the time on the clock of the ledger that adopts */
/* Of a process that is bound to each adaptable lease that is adopted. */
#define ADOPTED_PID 4194303

struct lease *saved(const struct lease *lease);

/* Makes a fixed lease adaptable. Its base is all of its CUs. */
void make_adaptable(struct lease *lease);

/* Returns 0, or a negative errno: then the lease is freed, the ledger is unchanged and why is
 * set. Checks the promises of the ledger. */
int adopt_saved(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		size_t size);

/* The ledger of the previous daemon, and the one that adopts its leases. */
struct pair {
	struct scene old, new;
	char why[256];
};

struct pair pair_of(size_t n_gpus);

void pair_done(struct pair *p);

int adopt(struct pair *p, struct lease *lease);

bool refused_for(const struct pair *p, int r, int error, const char *words);
