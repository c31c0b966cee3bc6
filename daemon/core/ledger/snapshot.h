/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ledger of one moment, to be read while the ledger itself changes. */

#include "core/ledger/ledger.h"

/* Copies GPUs, leases, waiting leases and covers, not known processes. The settings are those of the ledger. -ENOMEM. */
int snapshot_new(const struct arbiter *arbiter, struct arbiter **ret);
struct arbiter *snapshot_free(struct arbiter *snapshot);
DEFINE_CLEANUP(struct arbiter *, snapshot_free)
