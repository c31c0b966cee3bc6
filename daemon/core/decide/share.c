/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/share.h"

#include "core/ledger/quota.h"

#define STARVED 3U
#define STARVED_OF 4U

unsigned share_weight(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->weight > 0 ? tenant->weight : TENANT_WEIGHT;
}

struct grower share_grower(const struct arbiter *arbiter, struct lease *lease, struct partition *p)
{
	return (struct grower){ .lease = lease,
				.p = p,
				.base = cuset_count(&p->base),
				.cap = min_u(p->asked, quota_cus_left(arbiter, lease, p->gpu)),
				.weight = share_weight(arbiter, lease) };
}

/* Sets the shares for this many CUs (in 2^-SHARE_LEVEL_BITS) for each unit of weight. Returns their
 * sum. */
static uint64_t set_shares(struct grower *growers, size_t n, uint64_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		struct grower *grower = &growers[i];
		uint64_t share = level * grower->weight >> SHARE_LEVEL_BITS;

		if (share > grower->cap)
			share = grower->cap;
		grower->share = max_u((unsigned)share, grower->base);
		sum += grower->share;
	}
	return sum;
}

/* Finds the highest level that the CUs suffice for. */
void share_divide(struct grower *growers, size_t n, unsigned cus)
{
	uint64_t low = 0, high = (uint64_t)cus << SHARE_LEVEL_BITS;

	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		if (set_shares(growers, n, middle) <= cus)
			low = middle;
		else
			high = middle - 1;
	}
	set_shares(growers, n, low);
}

bool share_is_starved(const struct grower *grower, unsigned cus)
{
	return cus * STARVED_OF < grower->share * STARVED;
}
