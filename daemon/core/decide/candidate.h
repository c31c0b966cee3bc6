/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A want on a GPU while it is being judged (admit.c), and the part of the judgement that
 * is about CUs (attempt.c). */

#include "core/decide/admit.h"

struct candidate {
	const struct admit_context *admit_context;
	const struct want *want;
	const struct gpu *gpu;
	unsigned index;              /* of the GPU */
	const struct partition *had; /* there, by the lease that is resized; else NULL */
	unsigned aim;                /* CUs */
	bool confined;               /* to CUs that it has: others wait for the rest */
	struct share held;           /* by this user under this tenant, where quotas ask */
	struct refusal *refusal;
};

/* Fills the refusal, all but its hint; returns outcome. */
enum outcome candidate_refuse(struct candidate *a, enum outcome outcome, enum reason reason,
			      uint64_t asked, uint64_t free);

/* Finds the CUs; everything but CUs has been judged. */
enum outcome candidate_cus(struct candidate *a, struct partition *partition);

/* Would the CUs fit, were the GPU empty? OUTCOME_FITS, or OUTCOME_NEVER and the refusal. */
enum outcome candidate_cus_ever(struct candidate *a);
