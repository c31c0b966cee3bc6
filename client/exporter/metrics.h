/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The metrics of a snapshot, as text for Prometheus. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libgpuarb/gpuarb.h"

/* Tenants beyond so many are counted together, with tenant="". */
#define METRICS_TENANTS 256U

struct metrics_format {
	bool open; /* OpenMetrics 1.0, else the text format 0.0.4 of Prometheus */
};

/* counters: NULL of a gpuarbd that has none. usec: the present time of CLOCK_BOOTTIME. -ENOMEM. */
int metrics_write(FILE *file, const struct metrics_format *format, const struct gpuarb_view *view,
		  const struct gpuarb_counters *counters, uint64_t usec);

/* There is no snapshot, because gpuarbd is away. */
void metrics_write_absent(FILE *file, const struct metrics_format *format);
