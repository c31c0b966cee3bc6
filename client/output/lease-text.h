/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sentences about a lease, for people. */

#include <stddef.h>
#include <stdint.h>

#include "libgpuarb/gpuarb.h"

/* "gives up in 42 s" of what waits, "active in 1 s" of what is activating, "to give CUs back in
 * 1 s" of what is granted, "ends in 42 s" of the others; "" without a deadline, and of what is ending. */
void lease_text_deadline(const char *state, uint64_t deadline, char *buf, size_t size);

/* Why it is as it is: "waits for cus on 0000:03:00.0, 30 asked; position 2; gives up in 42 s".
 * A reason "", a position of 0 and no deadline are left out. */
void lease_text_why(const char *state, unsigned position, const char *reason, uint64_t deadline,
		    char *buf, size_t size);
