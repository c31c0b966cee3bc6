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

#include <limits.h>
#include <stdlib.h>

#include "core/decide/borrow.h"
#include "core/decide/divide.h"
#include "core/ledger/quota.h"

/* ---- promises ----------------------------------------------------------------------------- */

/* The next version of a lease that gets a promised mask on the GPU. */
static int keep_promise(const struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i], *next;
		struct partition *p = lease_partition_on(lease, index);

		if (!p || !borrow_may_join(arbiter, lease, p))
			continue;
		if (lease_next_version(lease, lease->n_partitions, &next) < 0)
			return 0;
		next->generation++;
		p = &next->partitions[p - lease->partitions];
		partition_set_mask(p, &arbiter->gpus[index].info.geometry,
				   &p->adaptation->promised);
		p->adaptation->promised = (struct cuset){ 0 };
		if (cuset_within(&p->adaptation->before, &p->cus))
			p->adaptation->before = (struct cuset){ 0 };
		*ret = next;
		return 1;
	}
	return 0;
}

/* A round divides all CUs anew: leases that have not got their promised masks by now are treated
 * like the others. */
static void end_promises(struct arbiter *arbiter, unsigned index)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct partition *p = lease_partition_on(arbiter->leases[i], index);

		if (p && p->adaptation && arbiter->leases[i]->state == STATE_GRANTED)
			p->adaptation->promised = (struct cuset){ 0 };
	}
}

/* ---- rounds ------------------------------------------------------------------------------- */

static void swap(struct grower *a, struct grower *b)
{
	struct grower a_before = *a;

	*a = *b;
	*b = a_before;
}

/* Finds the adaptable leases, those that may get another mask first, and the CUs to be divided. The
 * bases of growers are claims: all CUs of growers are added again. */
static void find_growers(const struct arbiter *arbiter, unsigned index, struct division *d)
{
	struct cuset forbidden;

	borrow_forbidden(arbiter, index, NULL, &forbidden);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		struct partition *p = lease->adaptable ? lease_partition_on(lease, index) : NULL;
		struct grower *grower = &d->growers[d->n_all];

		if (!p)
			continue;
		d->n_all++;
		*grower = share_grower(arbiter, lease, p);
		grower->may_rebase = p->isolation != ISOLATION_SHARED && !lease->lend.unbound &&
				     lease->lend.rebased_usec != d->gpu->lend.grow_usec;
		if (lease_is_settled(lease, p)) {
			swap(grower, &d->growers[d->n++]);
		} else {
			cuset_add(&forbidden, &p->occupied);
			d->cus += cuset_count(&p->occupied);
		}
	}
	d->pool = d->gpu->all;
	cuset_remove(&d->pool, &forbidden);
	for (size_t i = 0; i < d->n; i++)
		cuset_add(&d->pool, &d->growers[i].p->cus);
	d->cus += cuset_count(&d->pool);
}

/* The next version of the first lease whose base moves. */
static int move_base(const struct division *d, struct lease **ret)
{
	const struct grower *grower = d->growers;
	struct lease *next;

	while (cuset_empty(&grower->rebase))
		grower++;
	if (lease_next_version(grower->lease, grower->lease->n_partitions, &next) < 0)
		return 0;
	grower->lease->lend.rebased_usec = d->gpu->lend.grow_usec;
	next->partitions[grower->p - grower->lease->partitions].adaptation->base = grower->rebase;
	*ret = next;
	return 1;
}

/* Promises the growers their targets. Those that only lose CUs lose them to promises. */
static void promise_targets(const struct division *d)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct grower *grower = &d->growers[i];

		if (!cuset_within(&grower->target, &grower->p->cus))
			grower->p->adaptation->promised = grower->target;
	}
}

/* 1: *ret is the next version of a lease whose base moves, and the round goes on. 0: the masks are
 * promised. */
static int divide_gpu(struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	_cleanup_(freep) struct grower *growers = calloc(arbiter->n_leases + 1, sizeof(*growers));
	struct division division = { .arbiter = arbiter,
				     .gpu = &arbiter->gpus[index],
				     .growers = growers };
	int r;

	if (!growers)
		return 0;
	end_promises(arbiter, index);
	find_growers(arbiter, index, &division);
	r = divide(&division);
	if (r > 0)
		return move_base(&division, ret);
	if (r == 0)
		promise_targets(&division);
	return 0;
}

/* Divides the GPUs whose round has come, until the base of a lease moves: *ret is its next version. */
static int divide_due(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	bool divided = false;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->lend.join_usec <= now_usec || !gpu->lend.may_grow ||
		    gpu->lend.grow_usec > now_usec)
			continue;
		if (divide_gpu(arbiter, i, ret) > 0)
			return 1; /* what its commit changes is lent then */
		gpu->lend.may_grow = false;
		gpu->lend.grow_usec = UINT64_MAX;
		divided = true;
	}
	if (divided)
		arbiter_lend(arbiter, now_usec);
	return 0;
}

int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	if (!arbiter->lending)
		return 0;
	if (divide_due(arbiter, now_usec, ret) > 0)
		return 1;
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->lend.join_usec <= now_usec && keep_promise(arbiter, i, ret) > 0) {
			gpu->lend.grown_usec = now_usec;
			return 1;
		}
	}
	return 0;
}
