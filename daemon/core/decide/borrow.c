/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/borrow.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/ledger/lease.h"
#include "core/ledger/quota.h"
#include "core/mask/place.h"

void borrow_needed(const struct arbiter *arbiter, const struct partition *p, struct cuset *ret)
{
	*ret = partition_claim(p);
	if (p->alone)
		gpu_add_engines(&arbiter->gpus[p->gpu], ret);
}

static void add(const struct arbiter *arbiter, const struct lease *lease, const struct partition *p,
		unsigned what, struct cuset *set)
{
	struct cuset needed;

	if (what & BORROW_CLAIMED && lease->state != STATE_INACTIVE && !lease->lend.idle) {
		borrow_needed(arbiter, p, &needed);
		cuset_add(set, &needed);
	}
	if (what & BORROW_OCCUPIED && lease_borrows(lease))
		cuset_add(set, &p->occupied);
	if (what & BORROW_LATE && lease->lend.late)
		cuset_add(set, &p->occupied);
	if (what & BORROW_PROMISED && lease_joins(lease))
		cuset_add(set, &p->adaptation->promised);
}

void borrow_others(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   unsigned what, struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = self && lease->id == self->id
						    ? NULL
						    : lease_partition_on(lease, gpu);

		if (p)
			add(arbiter, lease, p, what, ret);
	}
}

void borrow_all(const struct arbiter *arbiter, unsigned what,
		struct cuset ret[static REQUEST_WANTS])
{
	memset(ret, 0, arbiter->n_gpus * sizeof(*ret));
	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(p, lease)
			add(arbiter, lease, p, what, &ret[p->gpu]);
}

/* The CUs that the partition of a borrower has to return, or to stop, before this one is active. */
static struct cuset needed_of(const struct arbiter *arbiter, const struct partition *of,
			      const struct partition *p)
{
	struct cuset needed = { 0 };

	if (of->gpu == p->gpu)
		borrow_needed(arbiter, of, &needed);
	if (of->exclusive && !p->stopped && ledger_sharing(arbiter, of->gpu) >> p->gpu & 1)
		needed = p->occupied;
	cuset_keep(&needed, &p->occupied);
	return needed;
}

unsigned borrow_overlap(const struct arbiter *arbiter, const struct lease *lease,
			const struct lease *borrower, unsigned *ret_gpu)
{
	if (!borrower->adaptable || borrower->id == lease->id)
		return 0;
	FOR_EACH_PARTITION(of, lease)
		FOR_EACH_PARTITION(p, borrower) {
			struct cuset needed = needed_of(arbiter, of, p);

			if (cuset_empty(&needed))
				continue;
			if (ret_gpu)
				*ret_gpu = p->gpu;
			return cuset_count(&needed);
		}
	return 0;
}

const struct lease *borrow_contested(const struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_LEASE(other, arbiter)
		if (borrow_overlap(arbiter, lease, other, NULL) > 0)
			return other;
	return NULL;
}

bool borrow_waits_in_vain(const struct arbiter *arbiter, const struct partition *p)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];
	struct cuset needed;

	borrow_needed(arbiter, p, &needed);
	return cuset_overlap(p->exclusive ? &gpu->all : &needed, &gpu->lend.late);
}

void borrow_sum_up(struct arbiter *arbiter)
{
	struct cuset occupied[REQUEST_WANTS], late[REQUEST_WANTS];

	borrow_all(arbiter, BORROW_OCCUPIED, occupied);
	borrow_all(arbiter, BORROW_LATE, late);
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		struct cuset borrowed = occupied[i];

		cuset_remove(&borrowed, &gpu->taken);
		gpu->changed |= !cuset_equal(&borrowed, &gpu->lend.borrowed);
		gpu->lend.borrowed = borrowed;
		gpu->lend.late = late[i];
	}
}

int borrow_copy_with(const struct arbiter *arbiter, struct lease *const *next, size_t n,
		     struct arbiter *ret)
{
	if (ledger_copy(arbiter, ret) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		ledger_leave_out(ret, ledger_find(arbiter, next[i]->id));
		ledger_put_back(ret, next[i]);
	}
	borrow_sum_up(ret);
	return 0;
}

bool borrow_shrink(const struct gpu *gpu, const struct cuset *base, const struct cuset *cus,
		   const struct cuset *claims, struct cuset *ret)
{
	struct place_request request = { .base = base,
					 .avail = *cus,
					 .keep = cus,
					 .all = &gpu->all,
					 .ceiling = cuset_count(cus) };
	struct cuset left;
	struct cuset forbidden = *claims;

	cuset_remove(&forbidden, base);
	if (!cuset_overlap(cus, &forbidden))
		return false;
	cuset_remove(&request.avail, &forbidden);
	place_around(&gpu->info.geometry, &request, &left);
	*ret = left;
	return true;
}

void borrow_free(const struct arbiter *arbiter, const struct lease *proposal, struct partition *p,
		 const struct partition *now)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];
	struct place_request request = { .base = &p->adaptation->base,
					 .avail = gpu->all,
					 .all = &gpu->all,
					 .ceiling = p->asked };
	struct cuset others, cus, own = now->occupied;
	unsigned left;

	borrow_others(arbiter, p->gpu, proposal, BORROW_CLAIMED | BORROW_OCCUPIED | BORROW_PROMISED,
		      &others);
	cuset_remove(&request.avail, &others);
	/* Avoid CUs that an inactive lease lends: it may want them back. */
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &gpu->taken);
	left = quota_cus_left(arbiter, proposal, p->gpu);
	request.ceiling = min_u(request.ceiling, left);
	/* A quota counts the CUs that the lease leaves until its holder acknowledges. */
	if (left < UINT_MAX) {
		cuset_add(&own, &p->adaptation->base);
		cuset_keep(&request.avail, &own);
	}
	if (proposal->lend.unbound)
		request.ceiling = cuset_count(&p->adaptation->base);
	request.keep = &now->cus;
	place_around(&gpu->info.geometry, &request, &cus);
	partition_set_mask(p, &gpu->info.geometry, &cus);
	p->adaptation->before = cuset_within(&p->cus, &now->adaptation->before)
					? now->adaptation->before
					: (struct cuset){ 0 };
}

void borrow_finish_resize(const struct arbiter *arbiter, struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		if (p->adaptation) {
			p->adaptation->base = p->resize;
			borrow_free(arbiter, lease, p, p);
		} else {
			partition_set_mask(p, &arbiter->gpus[p->gpu].info.geometry, &p->resize);
		}
		p->resize = (struct cuset){ 0 };
	}
	lease->generation++;
	lease->resized = true;
	lease->verify.pending = lease->verify.false_ack = false;
	if (!lease->adaptable)
		lease->deadline_usec = UINT64_MAX;
}

bool borrow_may_join(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *p)
{
	const struct cuset *promised;
	struct cuset others;

	if (!p->adaptation || lease->lend.unbound)
		return false;
	promised = &p->adaptation->promised;
	if (cuset_count(promised) <= p->count || !lease_is_settled(lease, p) ||
	    cuset_count(promised) > quota_cus_left(arbiter, lease, p->gpu))
		return false;
	borrow_others(arbiter, p->gpu, lease, BORROW_CLAIMED | BORROW_OCCUPIED, &others);
	return !cuset_overlap(promised, &others);
}
