/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ledger of one moment, to be read while the ledger itself changes. */

#include "core/ledger/ledger.h"

/* Copies GPUs, leases, waiting leases and covers; not requests and known processes. The settings are those
 * of the ledger. Free it with free(3). -ENOMEM. */
int snapshot_new(const struct arbiter *arbiter, struct arbiter **ret);
