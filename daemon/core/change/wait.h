/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Waiting leases: granted, still waiting, or refused for ever. */

#include "core/ledger/ledger.h"

/* 1: *ret is the next version of a waiting lease that fits now, to be saved and committed; the
 * next call continues behind it. 0: no lease fits until something becomes free. Leases that
 * neither policy nor any GPU would ever grant end on the way. Without memory it is 0. */
int arbiter_plan_next(struct arbiter *arbiter, struct lease **ret);

/* Ends waiting and activating leases that were not granted by their deadline. */
void arbiter_expire(struct arbiter *arbiter, uint64_t now_usec);

/* Finds anew which GPUs could ever take a want of a waiting lease. */
void wait_find_candidates(const struct arbiter *arbiter, struct lease *lease);

/* The same for all waiting leases, after GPUs came or went; barriers follow. */
void wait_gpus_changed(struct arbiter *arbiter);
