/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares acknowledged masks with the masks that the hardware's queue descriptors have. */

#include "core/ledger/ledger.h"
#include "core/mask/observed-mask.h"

/* Are there acknowledgements to verify (*ret_urgent: one that was never checked), or queues that
 * no scan of the descriptors has covered? */
bool arbiter_wants_masks(const struct arbiter *arbiter, bool *ret_urgent);

/* Takes one scan: all compute queues of the hardware. A true acknowledgement frees the CUs that
 * left the masks; after a false one they stay occupied and the lease is reported. n 0: there are
 * no queues, or the descriptors cannot be read: every acknowledgement counts as true. */
void arbiter_masks_observed(struct arbiter *arbiter, const struct observed_mask *rows, size_t n);
