/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the records that the daemon sends through a holder (dbus/record.h). */

#include "libgpuarb/connection/basics.h"
#include "libgpuarb/gpuarb.h"

/* Room for one record; a longer one is invalid. */
#define RECORD_MAX 65536U

/*
 * Reads one datagram. Of *ret it fills the members that a holder can ask for; *ret_cause is an
 * enum gpuarb_record_cause. Returns 1; 0 for a record of an unknown version, which the caller
 * skips; -EPROTO or -ENOMEM.
 */
int record_read(const void *data, size_t size, struct arena *arena, struct gpuarb_lease_info *ret,
		uint32_t *ret_cause);
