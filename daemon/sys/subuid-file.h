/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/policy/subuid.h"
#include "util/names.h"
#include "util/diagnostics.h"

/* Reads /etc/subuid, or the file that the environment names as GPUARB_SUBUID, of up to 4 MiB, with the uids of its owners (names: NULL: by the name service); names that cannot be looked up within
 * 2 s in all are unknown. No file is an empty one. Warns of lines that are left out. A negative errno:
 * it cannot be read, with a warning, and *ret stays. */
int subuid_load(struct subuids *ret, struct names *names, struct diagnostics *diagnostics);
