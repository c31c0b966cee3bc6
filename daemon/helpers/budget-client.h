/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's requests to gpuarb-budget, which lets the kernel refuse queues: an asker sends them.
 * helpers/budget-protocol.h has the protocol.
 */

#include <stddef.h>
#include <stdint.h>

#include "helpers/asker.h"
#include "helpers/budget-protocol.h"

#define BUDGET_SOCKET "/run/gpuarb-budget.socket"

extern const struct asker_helper budget_helper; /* answers with a struct budget_answer */

/* Sorts the rows by cgroup, and writes one row for each cgroup into the request: its first lease and the sum of the
 * limits. Returns how many cgroups, those with the highest ids, had no room. */
size_t budget_request_fill(struct budget_request *request, struct budget_row *rows, size_t n);

/* The state of the cgroup in the answer to such a request; NULL: the request had no row for it. */
const struct budget_state *budget_state_of(const struct budget_request *request,
					   const struct budget_answer *answer, uint64_t cgroup);
