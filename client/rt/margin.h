/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much longer a job takes beside other leases: what was measured, by GPU and number of neighbours. */

#include <stdbool.h>
#include <stddef.h>

#include "core/mask/gpu-info.h"

struct margin {
	unsigned percent;  /* to add to execution times: slowdown x error of the law - 1 */
	unsigned slowdown; /* in percent of the time alone */
	bool measured;     /* on this target, beside as many neighbours or more */
	char row[160];     /* the row of measurements that it comes from */
};

/* The error of a modelled execution time, in percent: the largest of the law for large kernels. */
#define MARGIN_LAW 12U

/* The margin beside so many leases on a GPU: by its calibration, else by its target. */
void margin_find(const struct gpu_info *gpu, enum neighbours kind, unsigned neighbours,
		 struct margin *ret);

/* A row of the table, for the test that compares it with the measurements; false: past the last. */
bool margin_row(size_t i, const char **ret_card, enum neighbours *ret_kind,
		unsigned *ret_neighbours, unsigned *ret_slowdown);
