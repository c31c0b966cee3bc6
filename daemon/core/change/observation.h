/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What processes are observed to use of the GPUs, and to which lease each process belongs. */

#include "core/observe/attribution.h"

/* Takes one scan: all processes that use GPUs now, ordered by pid. Attributes them to leases,
 * counts unmanaged use, finds oversubscription, and removes ending leases that no process uses
 * any more. -ENOMEM, and nothing has changed. */
int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n);
