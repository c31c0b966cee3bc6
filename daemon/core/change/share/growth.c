/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Growth: arbiter_plan_growth() divides the CUs of a GPU among its adaptable leases in rounds. A round
 * promises each lease that is to get other CUs its new mask (decide/divide.h). The leases that have
 * promised CUs shrink, and each promise is kept when its CUs are free.
 *
 * When no lease comes or goes, and all holders acknowledge, this comes to rest: a round that finds
 * nothing to promise is the last one until something becomes free.
 */

#include "core/change/arbiter.h"

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/decide/divide.h"
#include "core/decide/floor.h"
#include "core/mask/place.h"

/* May the base move as promised? Not if other leases, lending ones too, claim CUs of that base by now, or a floor keeps
 * some; nor without memory to find out. */
static bool may_move_base(const struct arbiter *arbiter, const struct lease *lease,
			  const struct partition *p)
{
	const struct adaptation *adaptation = p->adaptation;
	struct floor floor = { 0 };
	struct cuset avail;

	if (cuset_empty(&adaptation->promised_base))
		return true;
	if (floor_configured(arbiter->settings) &&
	    floor_find(arbiter, p->gpu, NULL, NULL, &floor) < 0)
		return false;
	admit_available(&arbiter->gpus[p->gpu], lease->class, p->isolation, false, &avail);
	cuset_remove(&avail, &floor.now.cus);
	cuset_add(&avail, &adaptation->base);
	return cuset_within(&adaptation->promised_base, &avail);
}

/* The next version of a lease that gets a promised mask on the GPU. A promise that cannot be kept ends, and the GPU is
 * divided again after grow-delay. */
static int keep_promise(struct arbiter *arbiter, unsigned index, uint64_t now_usec,
			struct lease **ret)
{
	FOR_EACH_LEASE(lease, arbiter) {
		struct partition *p = lease_partition_on(lease, index);
		struct lease *next;

		if (!p || lease->lend.rests_usec > now_usec || !borrow_may_join(arbiter, lease, p))
			continue;
		if (!may_move_base(arbiter, lease, p) ||
		    lease_next_version(lease, lease->n_partitions, &next) < 0) {
			p->adaptation->promised = (struct cuset){ 0 };
			ledger_grow(arbiter, UINT64_C(1) << index);
			continue;
		}
		next->generation++;
		lend_rest(arbiter, next, now_usec);
		p = &next->partitions[p - lease->partitions];
		partition_set_mask(p, &arbiter->gpus[index].info.geometry,
				   &p->adaptation->promised);
		p->adaptation->promised = (struct cuset){ 0 };
		if (!cuset_empty(&p->adaptation->promised_base))
			p->adaptation->base = p->adaptation->promised_base;
		p->adaptation->promised_base = (struct cuset){ 0 };
		if (cuset_within(&p->adaptation->before, &p->cus))
			p->adaptation->before = (struct cuset){ 0 };
		*ret = next;
		return 1;
	}
	return 0;
}

/* ---- targets ------------------------------------------------------------------------------ */

/* Within the mask of the lease, where no other lease can have claimed the CUs, the base moves at once; else with its
 * growth. */
static void set_base(struct arbiter *arbiter, struct grower *grower)
{
	struct gpu *gpu = &arbiter->gpus[grower->p->gpu];

	grower->p->adaptation->promised_base = (struct cuset){ 0 };
	if (cuset_empty(&grower->rebase))
		return;
	if (!grower->begins && !cuset_within(&grower->rebase, &grower->has)) {
		grower->p->adaptation->promised_base = grower->rebase;
		return;
	}
	gpu_discharge(gpu, grower->p, grower->lease->class);
	grower->p->adaptation->base = grower->rebase;
	gpu_charge(gpu, grower->p, grower->lease->class);
	ledger_touch(arbiter, grower->lease, TOUCH_CHANGED);
	ledger_wake(arbiter, UINT64_C(1) << grower->p->gpu);
}

/* A lease that was never granted has its target as its mask: no queue has the CUs. Nobody was told the mask
 * of the one that joins. */
static void set_mask(struct arbiter *arbiter, struct grower *grower, const struct lease *joins)
{
	struct partition *p = grower->p;

	if (!grower->lease->lend.never_granted || cuset_equal(&p->cus, &grower->target))
		return;
	partition_set_mask(p, &arbiter->gpus[p->gpu].info.geometry, &grower->target);
	p->occupied = grower->target;
	grower->lease->generation += grower->lease != joins;
	ledger_touch(arbiter, grower->lease, TOUCH_CHANGED);
}

/* Has the lease to return CUs because another one of its user is to get more than the quota leaves until then? */
static bool has_to_yield(const struct division *division, const struct grower *grower)
{
	if (cuset_count(&grower->target) >= grower->p->count)
		return false;
	for (size_t i = 0; i < division->n; i++) {
		const struct grower *other = &division->growers[i];

		if (other != grower && share_quota_is_common(other, grower) &&
		    cuset_count(&other->target) > other->quota)
			return true;
	}
	return false;
}

/* The lease keeps as many CUs of its mask as its target has. */
static void yield(const struct division *division, const struct grower *grower)
{
	const struct partition *p = grower->p;
	struct place_request request = { .base = &p->adaptation->base,
					 .avail = p->cus,
					 .preferred = grower->target,
					 .keep = &p->cus,
					 .all = &division->gpu->all,
					 .ceiling = cuset_count(&grower->target) };
	struct cuset keeps;

	place_around(&division->gpu->info.geometry, &request, &keeps);
	p->adaptation->yields = p->cus;
	cuset_remove(&p->adaptation->yields, &keeps);
}

/* joins: a lease that was just committed; NULL: this is a round. A lease without its promised mask is divided
 * like the others. A lease that only loses CUs gets no promise: it shrinks for the promises of others. */
static int divide_gpu(struct arbiter *arbiter, unsigned index, const struct lease *joins)
{
	_cleanup_(division_done) struct division division;
	int r = divide(arbiter, index, NULL, !joins, &division);

	if (r < 0)
		return r;
	for (size_t i = 0; i < division.n; i++) {
		struct grower *grower = &division.growers[i];
		struct adaptation *adaptation = grower->p->adaptation;
		bool within = cuset_within(&grower->target, &grower->p->cus);

		set_base(arbiter, grower);
		set_mask(arbiter, grower, joins);
		if (lease_is_active(grower->lease) && has_to_yield(&division, grower))
			yield(&division, grower);
		adaptation->promised = within && lease_is_active(grower->lease)
					       ? (struct cuset){ 0 }
					       : grower->target;
	}
	return 0;
}

void growth_join(struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->adaptation) {
			divide_gpu(arbiter, p->gpu, lease);
			/* Promises are kept before the next round. */
			arbiter->gpus[p->gpu].lend.grow_usec = UINT64_MAX;
		}
}

/* Divides the GPUs whose round has come. */
static void divide_due(struct arbiter *arbiter, uint64_t now_usec)
{
	bool divided = false;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->lend.join_usec <= now_usec || gpu->lend.grow_usec == 0 ||
		    gpu->lend.grow_usec > now_usec)
			continue;
		gpu->lend.grow_usec = divide_gpu(arbiter, i, NULL) < 0 ? UINT64_MAX : 0;
		gpu->lend.divided_usec = now_usec;
		divided = true;
	}
	if (divided)
		arbiter_lend(arbiter, now_usec);
}

int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	if (!arbiter->lending)
		return 0;
	divide_due(arbiter, now_usec);
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->lend.join_usec <= now_usec &&
		    keep_promise(arbiter, i, now_usec, ret) > 0) {
			gpu->lend.grown_usec = now_usec;
			if (gpu->lend.grow_usec > 0) /* the next round counts from now */
				gpu->lend.grow_usec = UINT64_MAX;
			return 1;
		}
	}
	return 0;
}
