/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A lease as its holders read it: dbus/record.h. */

#include <stddef.h>

#include "core/change/arbiter.h"

/* One allocation for free(). -ENOMEM. */
int record_new(const struct arbiter *arbiter, const struct lease *lease, void **ret,
	       size_t *ret_size);
