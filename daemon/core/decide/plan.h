/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What all proposals need: for new leases (plan.c), other wants (resize.c) and leases that
 * waited (wait.c). */

#include "core/change/arbiter.h"

/* Fills in what was left out, and judges what has nothing to do with GPUs. */
int plan_complete(const struct tenant *tenant, enum lease_class lease_class,
		  struct request *request, struct result *result);

/* A copy of the lease with room for partitions. -ENOMEM. */
int lease_next_version(const struct lease *lease, size_t n_partitions, struct lease **ret);

/* What a waiting lease says it waits for, from why it was refused; no number in it changes
 * while it waits. */
void plan_waits_for(const struct result *result, char ret[static REQUEST_TEXT]);

int plan_no_memory(struct result *result);
