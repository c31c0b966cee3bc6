/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "refusal-check.h"

/* What a caller finds in a refusal for each reason, so that nobody has to read the hint. */
enum fact {
	FACT_GPU = 1 << 0,
	FACT_AMOUNTS = 1 << 1, /* asked, more than free, and total */
	FACT_RETRY = 1 << 2,   /* always may succeed later */
	FACT_BOUND = 1 << 3,   /* key, limit, tenant */
	FACT_PROCESSES = 1 << 4,
	FACT_USED = 1 << 5,  /* total, which held is compared with */
	FACT_NAMED = 1 << 6, /* the reason is all */
};

static const unsigned promised[REASONS] = {
	[REASON_CUS] = FACT_GPU | FACT_AMOUNTS,
	[REASON_SHADER_ENGINES] = FACT_GPU,
	[REASON_SHAPE] = FACT_GPU,
	[REASON_QUEUES] = FACT_GPU | FACT_AMOUNTS,
	[REASON_PROCESSES] = FACT_GPU | FACT_AMOUNTS,
	[REASON_SDMA] = FACT_GPU | FACT_AMOUNTS,
	[REASON_SDMA_XGMI] = FACT_GPU | FACT_AMOUNTS,
	[REASON_VRAM] = FACT_GPU | FACT_AMOUNTS,
	[REASON_COOPERATIVE] = FACT_GPU | FACT_AMOUNTS,
	[REASON_QUOTA] = FACT_AMOUNTS | FACT_BOUND,
	[REASON_POLICY] = FACT_BOUND,
	[REASON_DRAIN] = FACT_GPU | FACT_RETRY | FACT_NAMED,
	[REASON_UNMANAGED] = FACT_GPU | FACT_AMOUNTS | FACT_RETRY,
	[REASON_OVERSUBSCRIBED] = FACT_GPU | FACT_RETRY | FACT_USED,
	[REASON_ABSENT] = FACT_AMOUNTS,
	[REASON_FLOOR] = FACT_GPU | FACT_BOUND,
	[REASON_MASK] = FACT_GPU | FACT_AMOUNTS,
	[REASON_UNMASKED] = FACT_GPU | FACT_RETRY,
	[REASON_EXCLUSIVE] = FACT_GPU | FACT_RETRY | FACT_NAMED,
	[REASON_GRAPHICS] = FACT_GPU | FACT_RETRY | FACT_NAMED,
	[REASON_RESET] = FACT_GPU | FACT_RETRY | FACT_NAMED,
};

static bool has_bound(const struct refusal *refusal)
{
	bool unmatched = refusal->reason == REASON_POLICY && refusal->resource == RESOURCE_NONE;

	return refusal->key && (refusal->tenant[0] || unmatched);
}

static const char *lacks_amounts(const struct refusal *refusal)
{
	bool always_some = refusal->resource == RESOURCE_CUS ||
			   refusal->resource == RESOURCE_QUEUES ||
			   refusal->resource == RESOURCE_PROCESSES;

	if (refusal->asked <= refusal->free)
		return "asked";
	return refusal->total == 0 && always_some ? "total" : NULL;
}

const char *refusal_lacks(const struct refusal *refusal)
{
	unsigned facts = promised[refusal->reason];

	if (facts == 0)
		return "a row";
	if ((facts & FACT_GPU) && !refusal->gpu[0])
		return "gpu";
	if (!(facts & FACT_NAMED) && refusal->reason != REASON_POLICY &&
	    refusal->resource == RESOURCE_NONE)
		return "resource";
	if ((facts & FACT_BOUND) && !has_bound(refusal))
		return "key";
	if ((facts & FACT_RETRY) && !refusal->retry)
		return "retry";
	if ((facts & FACT_USED) && refusal->total == 0)
		return "total";
	if (refusal->n_fits > 0 && refusal->fit_resource == RESOURCE_NONE)
		return "fits-resource";
	return facts & FACT_AMOUNTS ? lacks_amounts(refusal) : NULL;
}
