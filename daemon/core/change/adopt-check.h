/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is wrong with a lease that is to be adopted. */

#include "core/change/arbiter.h"

/* Contradicts it itself? -EINVAL, and why not. */
int adopt_check_self(const struct arbiter *arbiter, const struct lease *lease, const char *lost,
		     char *why, size_t size);

/* The partitions that the hardware of now can have, as bits. What it cannot, or lost, is
 * why the lease has to end; "" if it need not. */
uint64_t adopt_check_hardware(const struct arbiter *arbiter, const struct lease *lease,
			      const char *lost, char *reason, size_t size);

/* Contradicts it a lease in force? Of its partitions those that are possible count. -EEXIST,
 * and which. */
int adopt_check_others(const struct arbiter *arbiter, const struct lease *lease, uint64_t possible,
		       char *why, size_t size);
