/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's requests to gpuarb-fdinfo, which may read /proc/PID/fdinfo of every process: an asker sends them. A
 * request is one byte: 1: all processes are read, also those that seem to be the same as before.
 */

#include "helpers/asker.h"
#include "hw/drm-fdinfo.h"

#define FDINFO_SOCKET "/run/gpuarb-fdinfo.socket"

extern const struct asker_helper fdinfo_helper; /* answers with a struct drm_scan */
