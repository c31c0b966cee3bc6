/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arbiter decides which part of which GPU belongs to which lease. It is pure: no file, bus,
 * device or clock; the time and every observation are arguments. This header is its face for the
 * daemon and the bus; sources of core include the header of the module that they use.
 *
 * A change that grants something has two steps, so that nothing is granted before it is saved:
 * arbiter_plan*() decides and returns a proposal while the ledger stays as it is;
 * arbiter_commit() puts the proposal into force and cannot fail. No other change may come between
 * the two.
 *
 * The daemon takes what has to be saved and published from the list of touched leases
 * (ledger_take_touched()) and from gpu->changed.
 */

#include "core/change/adopt.h"
#include "core/change/enforcement.h"
#include "core/change/hotplug.h"
#include "core/change/lend.h"
#include "core/change/lifecycle.h"
#include "core/change/observe.h"
#include "core/change/verify.h"
#include "core/change/wait.h"
#include "core/decide/plan.h"
#include "core/ledger/check.h"
#include "core/ledger/known.h"
#include "core/ledger/ledger.h"
#include "core/ledger/waiting-queue.h"

/* Takes a proposal: a new lease, or the next version of the lease with its id. Returns the lease
 * in force. */
struct lease *arbiter_commit(struct arbiter *arbiter, struct lease *proposal);

/* Puts the outcome of arbiter_plan_drain() into force. */
void arbiter_commit_drain(struct arbiter *arbiter, uint64_t drained);

/* Plans and commits at once, for what is saved already. -ENOENT. */
int arbiter_drain(struct arbiter *arbiter, const char *gpu, bool drain);

/* When arbiter_expire(), arbiter_next_enforce_step() or arbiter_plan_growth() has to be called
 * next; UINT64_MAX: never. */
uint64_t arbiter_next_deadline(const struct arbiter *arbiter);
