/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls of the daemon's object for a lease, by the number of the lease. */

#include "libgpuarb/connection/handle.h"

struct lease_path {
	char text[64];
};
struct lease_path lease_path(uint64_t id); /* of the object */

/* -ENOENT from a call that was repeated counts as success: the first attempt released the lease. */
int lease_call_release(struct gpuarb *gpuarb, uint64_t id);

int lease_call_set_active(struct gpuarb *gpuarb, uint64_t id, bool active);
