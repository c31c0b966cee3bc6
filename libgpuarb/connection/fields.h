/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads what the daemon sends about GPUs and leases. Failures as of read_fields(). */

#include <dbus/dbus.h>

#include "libgpuarb/connection/basics.h"
#include "libgpuarb/gpuarb.h"

int read_partitions(DBusMessageIter *rows, struct arena *arena, const struct gpuarb_partition **ret,
		    size_t *ret_n, const char **ret_key);
int read_refusals(DBusMessageIter *rows, struct arena *arena, struct refusals *ret,
		  const char **ret_key);
/* ret_waits_for: of a waiting lease the refusal that it waits for the end of; or NULL. */
int read_lease(DBusMessageIter *dict, struct arena *arena, struct gpuarb_lease_info *ret,
	       struct refusals *ret_waits_for, const char **ret_key);
int read_gpu(DBusMessageIter *dict, struct arena *arena, struct gpuarb_gpu *ret,
	     const char **ret_key);
