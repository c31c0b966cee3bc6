/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A partition's priority for people: what was asked, and what its queues have in the hardware. */

#include <stddef.h>
#include <stdint.h>

#include "libgpuarb/gpuarb.h"

/* "low", "normal" and "high" of 0, 7 and 11, else the number. */
#define PRIORITY_NAME 16U
const char *priority_name(uint32_t priority, char buf[static PRIORITY_NAME]);

enum priority_seen {
	PRIORITY_AS_ASKED, /* or not seen */
	PRIORITY_LESS,     /* no queue is of the class that was asked */
	PRIORITY_MORE,     /* one has more than was asked, and more than normal */
};

/* "high", "normal (asked high)", "high (asked; not seen in the hardware)". */
enum priority_seen priority_text(const struct gpuarb_partition *partition, char *buf, size_t size);
