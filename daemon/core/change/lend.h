/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lending: adaptable leases borrow CUs that no active lease claims; decide/borrow.h. */

#include "core/ledger/ledger.h"

/*
 * Adjusts the masks of adaptable leases to the present claims. Call it after every change.
 * Borrowers of claimed CUs shrink, activating leases whose CUs are free are granted, deadlines of
 * borrowers are set, and the time of the next growth is fixed. New generations are touched.
 */
void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec);

/* 1: *ret is the next version of an adaptable lease with larger masks, to be saved and committed.
 * Each lease is considered once in a round; a round begins grow-delay after something became free
 * and at least activate-min-interval after the last. 0: none. Without memory it is 0. */
int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret);

/* A growth could not be saved: repeats the round after grow-delay. */
void arbiter_grow_later(struct arbiter *arbiter);

/* The masks of this lease on the GPU change: counts a disturbance for the realtime leases whose
 * queues leave the hardware for it. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu);

/* Counts anew which CUs of each GPU are borrowed. */
void lend_sum_up(struct arbiter *arbiter);
