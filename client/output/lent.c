/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lent.h"

#include <stdio.h>
#include <string.h>

#include "util/base.h"

bool lent_by(const struct gpuarb_lease_info *lease)
{
	return strcmp(lease->state, "inactive") == 0;
}

/* Of word w of the partition's mask, the CUs that are in the mask of a lease that lends, or of
 * one that does not. */
static uint32_t common(const struct lent *all, const struct gpuarb_lease_info *lease,
		       const struct gpuarb_partition *partition, size_t w, bool lends)
{
	uint32_t others = 0;

	for (size_t l = 0; l < all->n; l++) {
		const struct gpuarb_lease_info *other = &all->leases[l];

		if (other->id == lease->id || lent_by(other) != lends)
			continue;
		for (size_t i = 0; i < other->n_partitions; i++) {
			const struct gpuarb_partition *theirs = &other->partitions[i];

			if (strcmp(theirs->gpu, partition->gpu) == 0 && w < theirs->cu_mask_words)
				others |= theirs->cu_mask[w];
		}
	}
	return partition->cu_mask[w] & others;
}

static unsigned count(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i,
		      bool lends)
{
	const struct gpuarb_partition *partition = &lease->partitions[i];
	unsigned n = 0;

	for (size_t w = 0; w < partition->cu_mask_words; w++)
		n += (unsigned)__builtin_popcount(common(all, lease, partition, w, lends));
	return n;
}

unsigned lent_out(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i)
{
	return lent_by(lease) ? count(all, lease, i, false) : 0;
}

unsigned lent_in(const struct lent *all, const struct gpuarb_lease_info *lease, size_t i)
{
	return lent_by(lease) ? 0 : count(all, lease, i, true);
}

void lent_text(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
	       size_t size)
{
	unsigned cus = 0, out = 0, in = 0;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		cus += lease->partitions[i].cus;
		out += lent_out(all, lease, i);
		in += lent_in(all, lease, i);
	}
	buf[0] = '\0';
	if (lent_by(lease))
		snprintf(buf, size, "lends %u of %u CUs", out, cus);
	else if (in > 0)
		snprintf(buf, size, "borrows %u of %u CUs", in, cus);
}
