/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/ledger/ledger.h"

/* Checks every invariant of the ledger from the leases alone, after every operation of a test.
 * false: and in buf the one that is broken. */
bool ledger_check(const struct arbiter *arbiter, char *buf, size_t size);

/* Prints the one that is broken, and aborts. */
void check_promises(const struct arbiter *arbiter);
