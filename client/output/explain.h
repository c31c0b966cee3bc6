/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Explains a CU mask on a GPU: its CUs, its validity and its cost. */

#include <stdbool.h>

#include "client/output/model.h"

struct explanation {
	struct cuset set;
	bool valid;
	char problem[256]; /* "" for a valid mask */
	bool lost;         /* the queue runs without a mask, and nothing reports it */
	unsigned cus;
	unsigned effective; /* 0 for a lost mask */
	unsigned occupied;  /* CUs that the hardware uses: more than cus if an XCC runs unmasked */
	uint32_t unmasked[CUSET_XCCS]; /* XCCs that run unmasked: all of them for a lost mask */
	unsigned n_unmasked;
	unsigned all_cus, all_effective;
	unsigned pair[CUSET_XCCS][CUSET_ENGINES]; /* CUs by XCC and shader engine */
	unsigned engine[CUSET_ENGINES];           /* CUs of all XCCs */
	unsigned engines_used;

	/* The most effective CUs of a subset: in XCC x the engines with each[x] CUs or more. */
	unsigned each[CUSET_XCCS], best;
};

void explain(const struct model *model, const uint32_t *mask, size_t words,
	     struct explanation *ret);

/* Time of a large kernel relative to the whole GPU, of which `constant` percent do not depend on the
 * mask (law.h); 0: unknown, for a mask that is not valid. */
double explain_relative_time(const struct explanation *explanation, unsigned constant);

/* The range of times of a large kernel: b is that percent or 0, and measured kernels on parts of a GPU differ from
 * the law by EXPLAIN_TOLERANCE, because the whole GPU has another clock and fewer work-groups for each CU
 * (tests/data/measured, cu_mask_distributed.tsv: up to 9 % faster). 0: unknown. */
#define EXPLAIN_TOLERANCE 10U /* percent */
struct explained_range {
	double least, most;
};
struct explained_range explain_range(const struct explanation *explanation, unsigned constant);
