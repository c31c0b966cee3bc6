/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a CU mask means on a GPU, and what it costs. Pure. */

#include <stdbool.h>

#include "client/output/model.h"

struct explanation {
	struct cuset set;
	bool valid;
	char problem[256]; /* "" for a valid mask */
	unsigned cus, effective;
	unsigned all_cus, all_effective;
	unsigned pair[CUSET_XCCS][CUSET_ENGINES]; /* CUs in each */
	unsigned engine[CUSET_ENGINES];           /* summed over XCCs */
	unsigned engines_used;

	/* The best that the same CUs allow: `each` CUs in every pair that has as many. */
	unsigned each, best;
};

void explain(const struct model *model, const uint32_t *mask, size_t words,
	     struct explanation *ret);

/* Time of a large kernel relative to the whole GPU; 0 where there is none to tell. */
double explain_relative_time(const struct explanation *explanation);
