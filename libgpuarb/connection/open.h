/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "libgpuarb/connection/handle.h"

/* The daemon answers at once. This limit is for a daemon that is stopped, or that hangs because
 * the service manager does. */
#define ANSWER_USEC (25U * UINT64_C(1000000))

/* How long a call waits for a daemon or a bus that went away, at most ANSWER_USEC. */
#define RECONNECT_USEC (10U * UINT64_C(1000000))

/* Makes a handle without connecting. address NULL: the bus that gpuarb_open() uses. */
int gpuarb_new(const char *address, struct gpuarb **ret);

struct gpuarb *gpuarb_reference(struct gpuarb *gpuarb);
void gpuarb_unreference(struct gpuarb *gpuarb);
