/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Amounts of the countable resources of a GPU: what leases ask for, are granted, and use. */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/policy/refusal.h"

#define BUDGETS (RESOURCE_COOPERATIVE_QUEUES + 1U)

/* In the order of enum resource; refusal.c has their names. */
#define BUDGET_AMOUNTS \
	uint64_t none, queues, processes, sdma_queues, sdma_xgmi_queues, vram, cooperative

struct budget {
	union {
		uint64_t of[BUDGETS]; /* by enum resource; 0 of RESOURCE_NONE */
		struct {
			BUDGET_AMOUNTS;
		};
	};
};

static_assert(offsetof(struct budget, cooperative) ==
		      offsetof(struct budget, of[RESOURCE_COOPERATIVE_QUEUES]),
	      "as many names as amounts");

void budget_add(struct budget *sum, const struct budget *budget);
void budget_remove(struct budget *sum, const struct budget *budget);

/* Is no amount of a above that of b? */
bool budget_within(const struct budget *a, const struct budget *b);

/* Does it count when a lease uses more of the resource than this grant? SDMA queues and VRAM count only for
 * a lease that asked for some: ROCr creates SDMA queues on its own, and every process uses VRAM. */
bool budget_counts(const struct budget *granted, enum resource resource);

uint64_t budget_queues(const struct budget *budget); /* of all kinds */
