/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* gpuarbd's requests to gpuarb-probe, for event file descriptors of the driver: an asker sends them. A request is one
 * byte. */

#include "helpers/asker.h"
#include "helpers/probe-protocol.h"

#define DRIVER_PROBE_SOCKET "/run/gpuarb-probe.socket"

extern const struct asker_helper probe_helper; /* answers with a struct probe_answer */
