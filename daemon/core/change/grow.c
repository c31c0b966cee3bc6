/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * arbiter_plan_growth(): what is idle is shared out among adaptable leases. Those that gave way
 * get what they had, to the bit, where it is free; what is left goes to the smallest first.
 * Where one is far below its share, the others give way to it first.
 */

#include <stdlib.h>
#include <string.h>

#include "core/ledger/ledger.h"
#include "core/change/lend.h"
#include "core/decide/plan.h"
#include "core/mask/extend.h"
#include "core/policy/tenant.h"

/* Below this part of its share a lease makes others give way. */
#define STARVED_OF 4U
#define STARVED 3U

struct grower {
	struct lease *lease;
	struct partition *p;
	struct cuset target; /* contains what it may not lose */
	unsigned cap;
	bool restored;
};

struct growth {
	struct arbiter *arbiter;
	struct gpu *gpu;
	unsigned index;
	struct cuset pool; /* what may be borrowed, and what growers have */
	struct grower *growers;
	size_t n;
	unsigned share; /* CUs for each, were they divided */
};

void ledger_grow(struct arbiter *arbiter, uint64_t gpus)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		if (!(gpus & (UINT64_C(1) << i)) || arbiter->gpus[i].may_grow)
			continue;
		arbiter->gpus[i].may_grow = true;
		arbiter->gpus[i].grow_usec = UINT64_MAX;
	}
}

void arbiter_grow_later(struct arbiter *arbiter)
{
	ledger_grow(arbiter, UINT64_MAX);
}

/* ---- who may ------------------------------------------------------------------------------ */

/* One that follows what it was told, and has nothing else before it. */
static bool is_settled(const struct lease *lease, const struct partition *p)
{
	return lease->state == STATE_GRANTED && lease->generation == lease->acknowledged &&
	       !lease->ack_unverified && cuset_equal(&p->cus, &p->occupied);
}

/* Returns how many adaptable leases there are in all. */
static size_t find_growers(struct growth *growth)
{
	struct arbiter *arbiter = growth->arbiter;
	size_t all = 0;

	lend_forbidden(arbiter, growth->index, NULL, &growth->pool);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		for (size_t j = 0; lease->adaptable && j < lease->n_partitions; j++) {
			struct partition *p = &lease->partitions[j];

			if (p->gpu != growth->index)
				continue;
			all++;
			if (is_settled(lease, p))
				growth->growers[growth->n++] = (struct grower){
					.lease = lease,
					.p = p,
					.cap = min_u(p->asked,
						     quota_cus_left(arbiter, lease, p->gpu))
				};
			else
				cuset_add(&growth->pool, &p->occupied);
		}
	}
	return all;
}

/* Bases are among the forbidden, each to the others: what growers have is put back. */
static void find_pool(struct growth *growth, size_t all)
{
	struct cuset forbidden = growth->pool;

	growth->pool = growth->gpu->all;
	cuset_remove(&growth->pool, &forbidden);
	for (size_t i = 0; i < growth->n; i++)
		cuset_add(&growth->pool, &growth->growers[i].p->cus);
	growth->share = cuset_count(&growth->pool) / (unsigned)max_u((unsigned)all, 1);
}

/* ---- what each gets ----------------------------------------------------------------------- */

static unsigned wants(const struct growth *growth, const struct grower *grower)
{
	return min_u(grower->cap, growth->share);
}

static bool anybody_starves(const struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++)
		if (cuset_count(&growth->growers[i].target) * STARVED_OF <
		    wants(growth, &growth->growers[i]) * STARVED)
			return true;
	return false;
}

static void left_for(const struct growth *growth, const struct grower *grower, struct cuset *ret)
{
	*ret = growth->pool;
	for (size_t i = 0; i < growth->n; i++)
		if (&growth->growers[i] != grower)
			cuset_remove(ret, &growth->growers[i].target);
}

static void restore(struct growth *growth, struct grower *grower)
{
	const struct cuset *before = &grower->p->before;
	struct cuset avail;

	left_for(growth, grower, &avail);
	grower->restored = !cuset_empty(before) && cuset_within(&grower->target, before) &&
			   cuset_within(before, &avail) && cuset_count(before) <= grower->cap;
	if (grower->restored)
		grower->target = *before;
}

static void extend_target(const struct growth *growth, struct grower *grower, unsigned cap)
{
	const struct gpu *gpu = growth->gpu;
	struct extend request = { .all = &gpu->all, .cap = cap };
	struct cuset base = grower->target;

	request.base = &base;
	left_for(growth, grower, &request.avail);
	request.keep = grower->p->cus;
	cuset_add(&request.keep, &grower->p->before);
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &gpu->taken);
	extend(&gpu->info.geometry, &request, &grower->target);
}

static int by_size(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;

	if (a->p->count != b->p->count)
		return a->p->count < b->p->count ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

/* from_base: anybody may lose what is not its base. */
static void share_out(struct growth *growth, bool from_base)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		grower->target = from_base ? grower->p->base : grower->p->cus;
		grower->restored = false;
	}
	for (size_t i = 0; !from_base && i < growth->n; i++)
		restore(growth, &growth->growers[i]);
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i],
				      wants(growth, &growth->growers[i]));
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i], growth->growers[i].cap);
}

/* What the worst off is to have of those that get less than their share. */
static unsigned least(const struct growth *growth)
{
	unsigned least = UINT32_MAX;

	for (size_t i = 0; i < growth->n; i++) {
		const struct grower *g = &growth->growers[i];
		unsigned has = cuset_count(&g->target);

		least = min_u(least, has >= wants(growth, g) ? UINT32_MAX : has);
	}
	return least;
}

/* Those that lose something give way first: who gains waits for their acknowledgement. */
static void losers_only(struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];
		struct extend request = { .base = &grower->p->base, .all = &growth->gpu->all };

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
	unsigned without;

	qsort(growth->growers, growth->n, sizeof(*growth->growers), by_size);
	share_out(growth, false);
	if (!anybody_starves(growth))
		return;
	without = least(growth);
	share_out(growth, true);
	if (least(growth) > without)
		losers_only(growth);
	else
		share_out(growth, false);
}

/* ---- the next version --------------------------------------------------------------------- */

static int make_next(const struct growth *growth, const struct grower *grower, struct lease **ret)
{
	const struct lease *lease = grower->lease;
	struct partition *p;
	struct lease *next;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return 0;
	memcpy(next->partitions, lease->partitions,
	       lease->n_partitions * sizeof(*next->partitions));
	next->generation++;
	p = &next->partitions[grower->p - lease->partitions];
	lend_set_mask(growth->arbiter, p, &grower->target);
	if (cuset_within(&p->before, &p->cus))
		p->before = (struct cuset){ 0 };
	*ret = next;
	return 1;
}

/* The first that has not been asked in this round and is to have another mask. */
static int next_of(struct growth *growth, struct lease **ret)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		if (grower->lease->grown_usec == growth->gpu->grow_usec ||
		    cuset_equal(&grower->target, &grower->p->cus))
			continue;
		grower->lease->grown_usec = growth->gpu->grow_usec;
		return make_next(growth, grower, ret);
	}
	return 0;
}

static int grow(struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	struct growth growth = { .arbiter = arbiter, .gpu = &arbiter->gpus[index], .index = index };
	_cleanup_(freep) struct grower *growers = calloc(arbiter->n_leases + 1, sizeof(*growers));

	if (!growers)
		return 0;
	growth.growers = growers;
	find_pool(&growth, find_growers(&growth));
	decide(&growth);
	return next_of(&growth, ret);
}

int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	for (unsigned i = 0; arbiter->lending && i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (!gpu->may_grow || gpu->grow_usec > now_usec)
			continue;
		if (grow(arbiter, i, ret) > 0) {
			gpu->grown_usec = now_usec;
			return 1;
		}
		gpu->may_grow = false;
		gpu->grow_usec = UINT64_MAX;
	}
	return 0;
}
