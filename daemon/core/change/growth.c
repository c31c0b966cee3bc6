/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Growth: arbiter_plan_growth() divides the free CUs of a GPU among its adaptable leases. A lease
 * that shrank gets its previous mask back, bit for bit, if all of it is free; the remaining CUs go
 * to the leases with the fewest CUs for their weight first. If a lease would stay far below its
 * share, the others shrink for it first.
 */

#include "core/change/arbiter.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/decide/floor.h"
#include "core/decide/share.h"
#include "core/ledger/quota.h"
#include "core/mask/extend.h"
#include "core/mask/place.h"

/* One GPU. */
struct growth {
	struct arbiter *arbiter;
	struct gpu *gpu;
	unsigned index;
	struct cuset pool;      /* CUs to be divided: free ones, and those that the growers have */
	struct cuset left;      /* of it: in no target */
	struct grower *growers; /* n, and behind them the leases that keep their masks for now */
	size_t n, n_all;
	unsigned cus; /* to be shared by all: those of the pool, and of leases that keep theirs */
};

/* Has the holder acknowledged everything, and is the lease neither activating, paused nor ending? */
static bool is_settled(const struct lease *lease, const struct partition *p)
{
	return lease->state == STATE_GRANTED && !p->paused &&
	       lease->generation == lease->acknowledged && !lease->verify.pending &&
	       cuset_equal(&p->cus, &p->occupied);
}

/* Finds the adaptable leases, those that may get another mask first, and collects in the pool the
 * CUs that are not to be divided. */
static void find_growers(struct growth *growth)
{
	struct arbiter *arbiter = growth->arbiter;

	borrow_forbidden(arbiter, growth->index, NULL, &growth->pool);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		struct partition *p = lease->adaptable ? lease_partition_on(lease, growth->index)
						       : NULL;

		if (!p)
			continue;
		growth->growers[growth->n_all] = share_grower(arbiter, lease, p);
		if (is_settled(lease, p)) {
			struct grower other = growth->growers[growth->n];

			growth->growers[growth->n++] = growth->growers[growth->n_all];
			if (growth->n_all >= growth->n)
				growth->growers[growth->n_all] = other;
		} else {
			cuset_add(&growth->pool, &p->occupied);
			growth->cus += cuset_count(&p->occupied);
		}
		growth->n_all++;
	}
}

/* Turns the pool into the CUs to be divided. The bases of growers are claims and so were among the
 * forbidden CUs: all CUs of growers are added again. */
static void invert_pool(struct growth *growth)
{
	struct cuset forbidden = growth->pool;

	growth->pool = growth->gpu->all;
	cuset_remove(&growth->pool, &forbidden);
	for (size_t i = 0; i < growth->n; i++)
		cuset_add(&growth->pool, &growth->growers[i].p->cus);
	growth->cus += cuset_count(&growth->pool);
}

static bool any_starves(const struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++)
		if (share_is_starved(&growth->growers[i], cuset_count(&growth->growers[i].target)))
			return true;
	return false;
}

/* CUs of the pool that are in no other grower's target. */
static void left_for(const struct growth *growth, const struct grower *grower, struct cuset *ret)
{
	*ret = growth->left;
	cuset_add(ret, &grower->target);
}

static void set_target(struct growth *growth, struct grower *grower, const struct cuset *target)
{
	cuset_add(&growth->left, &grower->target);
	cuset_remove(&growth->left, target);
	grower->target = *target;
}

static void restore(struct growth *growth, struct grower *grower)
{
	const struct cuset *before = &grower->p->before;
	struct cuset avail;

	left_for(growth, grower, &avail);
	grower->restored = !cuset_empty(before) && cuset_within(&grower->target, before) &&
			   cuset_within(before, &avail) && cuset_count(before) <= grower->cap;
	if (grower->restored)
		set_target(growth, grower, before);
}

static void extend_target(struct growth *growth, struct grower *grower, unsigned cap)
{
	const struct gpu *gpu = growth->gpu;
	struct extend request = { .all = &gpu->all, .cap = cap };
	struct cuset base = grower->target, target;

	if (cuset_count(&base) >= cap || cuset_empty(&growth->left))
		return;
	request.base = &base;
	left_for(growth, grower, &request.avail);
	request.keep = grower->p->cus;
	cuset_add(&request.keep, &grower->p->before);
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &gpu->taken);
	extend(&gpu->info.geometry, &request, &target);
	set_target(growth, grower, &target);
}

static int by_size(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;

	unsigned x = a->p->count * b->weight, y = b->p->count * a->weight;

	if (x != y)
		return x < y ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

/* How the targets are found, in the order in which it is tried. */
enum share_out {
	SHARE_OUT_RESTORE, /* leases get their previous masks before free CUs are divided */
	SHARE_OUT_FREE,    /* free CUs are divided by shares first */
	SHARE_OUT_ALL,     /* leases may lose CUs that are not in their base */
};

/* The engine of `set` with the fewest CUs of `room`. */
static unsigned fullest_engine(const struct cuset *set, const struct cuset *room)
{
	unsigned fullest = CUSET_ENGINES, least = UINT_MAX;

	for (unsigned e = 0; e < CUSET_ENGINES; e++) {
		unsigned n = 0;

		for (unsigned x = 0; x < CUSET_XCCS; x++)
			n += cuset_count_word(room->pair[cuset_pair(x, e)]);
		if ((cuset_engines(set) >> e & 1) && n < least) {
			least = n;
			fullest = e;
		}
	}
	return fullest;
}

static void remove_engine(struct cuset *set, unsigned engine)
{
	for (unsigned x = 0; x < CUSET_XCCS; x++)
		set->pair[cuset_pair(x, engine)] = 0;
}

/* A mask has as many CUs in each of its engines as in the one with the fewest: where other bases fill
 * an engine of its base, a lease cannot grow. So the base moves to those engines of its mask that have
 * the most room. A base on CUs that it may not claim, or that floors might keep, stays. */
static void find_base(const struct growth *growth, struct grower *grower)
{
	const struct partition *p = grower->p;
	struct place_request request = { .all = &growth->gpu->all,
					 .aim = grower->base,
					 .floor = grower->base,
					 .ceiling = grower->base,
					 .limit = grower->base,
					 .exact = true };
	struct cuset room = growth->pool;
	struct placement placement;
	struct place_miss miss;

	for (size_t i = 0; i < growth->n_all; i++)
		if (&growth->growers[i] != grower)
			cuset_remove(&room, &growth->growers[i].p->base);
	admit_available(growth->gpu, grower->lease->class, p->isolation, false, &request.avail);
	cuset_add(&request.avail, &p->base);
	cuset_keep(&request.avail, &p->cus);
	while (!cuset_empty(&request.avail)) {
		request.preferred = request.avail;
		if (place(&growth->gpu->info.geometry, &request, &placement, &miss) < 0 ||
		    placement.effective != placement.count)
			return;
		grower->rebase = placement.cus;
		remove_engine(&request.avail, fullest_engine(&request.avail, &room));
	}
}

static void find_bases(struct growth *growth)
{
	bool floors = floor_configured(growth->arbiter->settings);

	for (size_t i = 0; i < growth->n; i++)
		if (!floors && growth->growers[i].p->isolation != ISOLATION_SHARED)
			find_base(growth, &growth->growers[i]);
}

static void share_out(struct growth *growth, enum share_out how)
{
	growth->left = growth->pool;
	for (size_t i = 0; i < growth->n; i++)
		growth->growers[i].rebase = growth->growers[i].p->base;
	if (how == SHARE_OUT_ALL)
		find_bases(growth);
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		grower->target = how == SHARE_OUT_ALL ? grower->rebase : grower->p->cus;
		grower->restored = false;
		cuset_remove(&growth->left, &grower->target);
	}
	for (size_t i = 0; how == SHARE_OUT_RESTORE && i < growth->n; i++)
		restore(growth, &growth->growers[i]);
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i], growth->growers[i].share);
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i], growth->growers[i].cap);
}

/* The fewest CUs for each unit of weight (in 2^-SHARE_LEVEL_BITS) among the growers that get less than
 * their share; UINT64_MAX: none does. */
static uint64_t least(const struct growth *growth)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < growth->n; i++) {
		const struct grower *g = &growth->growers[i];
		unsigned has = cuset_count(&g->target);
		uint64_t level = ((uint64_t)has << SHARE_LEVEL_BITS) / g->weight;

		if (has < g->share && level < least)
			least = level;
	}
	return least;
}

/* Keeps only the targets that shrink: what they free is divided in a later round, when their
 * holders have acknowledged. */
static void shrink_only(struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];
		struct extend request = { .base = &grower->rebase, .all = &growth->gpu->all };

		if (cuset_within(&grower->p->cus, &grower->target)) {
			grower->target = grower->p->cus;
			continue;
		}
		request.avail = request.keep = request.preferred = grower->p->cus;
		cuset_keep(&request.avail, &grower->target);
		request.cap = cuset_count(&grower->target);
		extend(&growth->gpu->info.geometry, &request, &grower->target);
	}
}

static void decide(struct growth *growth)
{
	uint64_t without;

	qsort(growth->growers, growth->n, sizeof(*growth->growers), by_size);
	share_out(growth, SHARE_OUT_RESTORE);
	if (!any_starves(growth))
		return;
	share_out(growth, SHARE_OUT_FREE);
	if (!any_starves(growth))
		return;
	without = least(growth);
	share_out(growth, SHARE_OUT_ALL);
	if (least(growth) > without)
		shrink_only(growth);
	else
		share_out(growth, SHARE_OUT_FREE);
}

static int make_next(const struct gpu *gpu, const struct lease *lease, const struct partition *now,
		     const struct cuset *base, const struct cuset *mask, struct lease **ret)
{
	struct partition *p;
	struct lease *next;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return 0;
	next->generation++;
	p = &next->partitions[now - lease->partitions];
	p->base = *base;
	if (!cuset_within(base, &p->before))
		p->before = (struct cuset){ 0 };
	partition_set_mask(p, &gpu->info.geometry, mask);
	p->promised = (struct cuset){ 0 };
	if (cuset_within(&p->before, &p->cus))
		p->before = (struct cuset){ 0 };
	*ret = next;
	return 1;
}

/* The next version of the first grower that gets another mask and was not considered in this
 * round. */
static int next_of(struct growth *growth, struct lease **ret)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		if (grower->lease->lend.grown_usec == growth->gpu->lend.grow_usec ||
		    cuset_equal(&grower->target, &grower->p->cus))
			continue;
		grower->lease->lend.grown_usec = growth->gpu->lend.grow_usec;
		return make_next(growth->gpu, grower->lease, grower->p, &grower->rebase,
				 &grower->target, ret);
	}
	return 0;
}

/* ---- promises ----------------------------------------------------------------------------- */

bool growth_is_promised(const struct arbiter *arbiter, const struct lease *lease,
			const struct partition *p)
{
	struct cuset others;

	if (cuset_empty(&p->promised) || !is_settled(lease, p) ||
	    !cuset_within(&p->cus, &p->promised) ||
	    cuset_count(&p->promised) > quota_cus_left(arbiter, lease, p->gpu))
		return false;
	borrow_forbidden(arbiter, p->gpu, lease, &others);
	if (cuset_overlap(&p->promised, &others))
		return false;
	borrow_occupied(arbiter, p->gpu, lease, &others);
	return !cuset_overlap(&p->promised, &others);
}

/* The next version of a lease that gets a promised mask on the GPU. */
static int keep_promise(const struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		struct partition *p = lease_partition_on(lease, index);

		if (p && growth_is_promised(arbiter, lease, p))
			return make_next(&arbiter->gpus[index], lease, p, &p->base, &p->promised,
					 ret);
	}
	return 0;
}

/* A round divides all free CUs: leases that have not got their promised masks by now are treated
 * like the others. */
static void end_promises(struct arbiter *arbiter, unsigned index)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct partition *p = lease_partition_on(arbiter->leases[i], index);

		if (p && arbiter->leases[i]->state == STATE_GRANTED)
			p->promised = (struct cuset){ 0 };
	}
}

/* ---- rounds ------------------------------------------------------------------------------- */

static int grow(struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	struct growth growth = { .arbiter = arbiter, .gpu = &arbiter->gpus[index], .index = index };
	_cleanup_(freep) struct grower *growers = calloc(arbiter->n_leases + 1, sizeof(*growers));

	if (!growers)
		return 0;
	growth.growers = growers;
	find_growers(&growth);
	invert_pool(&growth);
	share_divide(growth.growers, growth.n_all, growth.cus);
	decide(&growth);
	return next_of(&growth, ret);
}

int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	for (unsigned i = 0; arbiter->lending && i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->lend.join_usec <= now_usec && keep_promise(arbiter, i, ret) > 0) {
			gpu->lend.join_usec = UINT64_MAX;
			gpu->lend.grown_usec = now_usec;
			return 1;
		}
		if (!gpu->lend.may_grow || gpu->lend.grow_usec > now_usec)
			continue;
		end_promises(arbiter, i);
		if (grow(arbiter, i, ret) > 0) {
			gpu->lend.grown_usec = now_usec;
			return 1;
		}
		gpu->lend.may_grow = false;
		gpu->lend.grow_usec = UINT64_MAX;
	}
	return 0;
}
