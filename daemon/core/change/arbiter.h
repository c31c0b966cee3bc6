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

#include <limits.h>

#include "core/change/enforcement.h"
#include "core/change/lend.h"
#include "core/change/lifecycle.h"
#include "core/change/observe.h"
#include "core/change/wait.h"
#include "core/decide/plan.h"
#include "core/ledger/known.h"
#include "core/ledger/ledger.h"
#include "core/ledger/waiting-queue.h"
#include "core/mask/observed-mask.h"

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

/* ---- adopt.c: leases that an earlier daemon granted and saved ------------------------ */

/*
 * Puts a saved lease into force, without holders. lost: the name of a GPU of the lease that is
 * gone or replaced, "" if none; its partition there has the index GPU_ABSENT. Then, and where the
 * GPU can never have this partition, the lease is ending with that reason. -EEXIST, -EINVAL: the
 * lease contradicts a lease in force, or itself; why is a sentence, and the lease still belongs to
 * the caller. -ENOMEM. A lease that was ending is touched as ending again: its holder may not have
 * been notified.
 */
#define GPU_ABSENT UINT_MAX
int arbiter_adopt(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		  size_t size);

/* Call it when all saved leases are adopted. */
void arbiter_adopted(struct arbiter *arbiter);

/* ---- hotplug.c ----------------------------------------------------------------------- */

/* Replaces the list of GPUs. The leases of a GPU that is gone, or has another kfd_gpu_id, shape
 * or number of slots, end; all other leases stay. A GPU that was drained is still drained when
 * its name comes back. -E2BIG: n is above REQUEST_WANTS, and nothing has changed; or ending
 * leases occupy slots, and the list has to be set again when they have ended. */
int arbiter_set_gpus(struct arbiter *arbiter, const struct gpu_info *gpus, size_t n);

/* ---- verify.c: acknowledged masks against those of the hardware's queue descriptors --- */

/* Are there acknowledgements to verify (*ret_urgent: one that was never checked), or queues that
 * no scan of the descriptors has covered? */
bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent);

/* Takes one scan: all compute queues of the hardware. A true acknowledgement frees the CUs that
 * left the masks; after a false one they stay occupied and the lease is reported. n 0: there are
 * no queues, or the descriptors cannot be read: every acknowledgement counts as true. */
void arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n);
