/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Explains a CU mask on a GPU: its CUs, its validity and its cost. */

#include <stdbool.h>

#include "client/output/model.h"

struct explanation {
	struct cuset set;
	bool valid;
	char problem[256]; /* "" for a valid mask */
	unsigned cus, effective;
	unsigned all_cus, all_effective;
	unsigned pair[CUSET_XCCS][CUSET_ENGINES]; /* CUs by XCC and shader engine */
	unsigned engine[CUSET_ENGINES];           /* CUs of all XCCs */
	unsigned engines_used;

	/* The most effective CUs of a subset: `each` CUs in every (XCC, engine) pair with as
	 * many. */
	unsigned each, best;
};

void explain(const struct model *model, const uint32_t *mask, size_t words,
	     struct explanation *ret);

/* Time of a large kernel relative to the whole GPU; 0: unknown, for a mask that is not valid. */
double explain_relative_time(const struct explanation *explanation);
