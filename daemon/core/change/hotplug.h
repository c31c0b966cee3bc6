/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/ledger/ledger.h"

/* Replaces the list of GPUs. The leases of a GPU that is gone, or has another kfd_gpu_id, shape
 * or number of slots, end; all other leases stay. A GPU that was drained is still drained when
 * its name comes back. -E2BIG: n is above REQUEST_WANTS, and nothing has changed; or ending
 * leases occupy slots, and the list has to be set again when they have ended. */
int arbiter_set_gpus(struct arbiter *arbiter, const struct gpu_info *gpus, size_t n);
