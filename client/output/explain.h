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

/* What the verb mask prints, as text or JSON, on standard output. */

void mask_print_explanation(const struct command *command, const struct model *model,
			    const struct explanation *explanation);

void mask_print_places(const struct command *command, const struct model *model,
		       const struct explanation *explanation);

/* wanted: what was asked for; the explanation is of the mask that came of it. */
void mask_print_encoded(const struct command *command, const struct cuset *wanted,
			const uint32_t *mask, size_t words, const struct explanation *explanation);
