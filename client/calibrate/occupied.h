/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which CUs a mask occupies: where the work-groups of a kernel ran. Pure. */

#include "client/latency/kernel.h"
#include "client/output/model.h"

/* Adds the places of work-groups to the set. A fused-off CU has a number here and none in a mask, so only
 * counts can be compared. -ENODATA: the kernel did not run; -EPROTO: it was cut off, or its registers are
 * impossible on this target. */
int occupied_add(const char *target, const struct wave *waves, unsigned n, struct cuset *seen);

/* Counts the CUs that were seen. Returns whether they are as many of each shader engine of each XCC as
 * expected, and no others. */
bool occupied_judge(const struct model *model, const struct cuset *expected,
		    const struct cuset *seen, unsigned *ret_cus);
