/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/share.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/decide/exclusive.h"
#include "core/layout/fluid.h"
#include "core/ledger/quota.h"
#include "core/mask/extend.h"

unsigned share_weight(const struct arbiter *arbiter, const struct lease *lease)
{
	return tenant_weight(tenant_named(arbiter->settings, lease->tenant));
}

struct grower share_grower(const struct arbiter *arbiter, struct lease *lease, struct partition *p)
{
	struct grower grower = { .lease = lease,
				 .p = p,
				 .base = cuset_count(&p->adaptation->base),
				 .quota = quota_cus_left(arbiter, lease, p->gpu),
				 .weight = share_weight(arbiter, lease) };
	struct share held = { 0 };

	grower.cap = lease->lend.unbound ? grower.base : min_u(p->asked, grower.quota);
	if (ledger_find(arbiter, lease->id))
		quota_add_share(lease, p, &held);
	grower.held = held.cus;
	return grower;
}

/* Have their leases the same user and tenant: one account? */
static bool is_same_account(const struct grower *a, const struct grower *b)
{
	return a->lease->owner == b->lease->owner &&
	       strcmp(a->lease->tenant, b->lease->tenant) == 0;
}

bool share_quota_is_common(const struct grower *a, const struct grower *b)
{
	return a->quota < UINT_MAX && is_same_account(a, b);
}

/* Divides CUs among all growers: among accounts first, or among leases. */
static void divide_all(const struct arbiter *arbiter, struct grower *growers, size_t n,
		       unsigned cus, struct fluid_term *terms)
{
	for (size_t i = 0; i < n; i++) {
		size_t account = i;

		if (!arbiter->settings->share_by_lease)
			for (account = 0; !is_same_account(&growers[account], &growers[i]);)
				account++;
		terms[i] = (struct fluid_term){ .least = growers[i].base,
						.most = growers[i].cap,
						.weight = growers[i].weight,
						.account = account };
	}
	fluid(terms, n, cus);
	for (size_t i = 0; i < n; i++)
		growers[i].share = fluid_units(terms[i].share);
}

/* Divides CUs among the growers that have a quota in common with this one. */
static void divide_quota(struct grower *growers, size_t n, const struct grower *of, unsigned cus,
			 struct fluid_term *terms)
{
	size_t n_terms = 0;

	for (size_t i = 0; i < n; i++)
		if (share_quota_is_common(of, &growers[i])) {
			terms[n_terms] = (struct fluid_term){ .least = growers[i].base,
							      .most = growers[i].cap,
							      .weight = growers[i].weight,
							      .account = n_terms };
			n_terms++;
		}
	fluid(terms, n_terms, cus);
	for (size_t i = 0, j = 0; i < n; i++)
		if (share_quota_is_common(of, &growers[i]))
			growers[i].share = fluid_units(terms[j++].share);
}

/* Divides the quota of one user among its leases. */
static void cap_by_quota(struct grower *growers, size_t n, const struct grower *first,
			 struct fluid_term *terms)
{
	uint64_t cus = first->quota;

	for (struct grower *g = growers; g < growers + n; g++)
		if (g != first && share_quota_is_common(first, g))
			cus += g->held;
	divide_quota(growers, n, first, cus < FLUID_UNITS_MAX ? (unsigned)cus : FLUID_UNITS_MAX,
		     terms);
	for (struct grower *g = growers; g < growers + n; g++)
		if (share_quota_is_common(first, g))
			g->cap = g->share;
}

int share_divide(const struct arbiter *arbiter, struct grower *growers, size_t n, unsigned cus)
{
	_cleanup_(freep) struct fluid_term *terms = calloc(n + 1, sizeof(*terms));

	if (!terms)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < i && !share_quota_is_common(&growers[j], &growers[i]))
			j++;
		if (j == i && growers[i].quota < UINT_MAX)
			cap_by_quota(growers, n, &growers[i], terms);
	}
	divide_all(arbiter, growers, n, cus, terms);
	return 0;
}

size_t share_find(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		  struct grower *ret, struct cuset *ret_claims, struct cuset *ret_pool)
{
	size_t n = 0;

	borrow_forbidden(arbiter, gpu, self, ret_claims);
	*ret_pool = arbiter->gpus[gpu].all;
	cuset_remove(ret_pool, ret_claims);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		struct partition *p = lease_borrows(lease) && !(self && lease->id == self->id)
					      ? lease_partition_on(lease, gpu)
					      : NULL;

		if (p && lease_joins(lease) && !p->paused)
			ret[n++] = share_grower(arbiter, lease, p);
		else if (p)
			cuset_remove(ret_pool, &p->occupied);
	}
	for (size_t i = 0; i < n; i++)
		cuset_add(ret_pool, &ret[i].p->adaptation->base);
	return n;
}

/* ---- a lease that begins ------------------------------------------------------------------ */

/* The other leases try to keep their shares, and smaller parts of them down to this one: whole
 * rectangles may fit better beside each other then. */
#define PARTS 16U
#define LEAST_PART 9U

/* So many leases on all GPUs of a proposal can try each part; of more, each tries fewer. */
#define TRIES_MAX 256U

/* A proposal on one GPU, and the leases that may shrink for it. The target of each is what it has
 * or was promised, without what the proposal and others claim: leases that were granted in this turn
 * may have CUs that are still promised. */
struct start {
	const struct arbiter *arbiter;
	const struct gpu *gpu;
	struct partition *p;    /* of the proposal */
	struct cuset claims;    /* of all leases and of the proposal: of adaptable ones the base */
	struct cuset pool;      /* CUs to be divided */
	struct grower *growers; /* n, and the proposal */
	size_t n;
};

/* What comes of a mask of the proposal. */
struct score {
	/* The level of the lease that is furthest below its share. UINT64_MAX: no lease is below. */
	uint64_t least;
	unsigned cus; /* of the proposal */
};

static void set_target(const struct start *start, struct grower *grower)
{
	const struct partition *p = grower->p;
	const struct cuset *has = partition_is_promised(p) ? &p->adaptation->promised : &p->cus;

	if (!borrow_shrink(start->gpu, &p->adaptation->base, has, &start->claims, &grower->target))
		grower->target = *has;
}

static int find_growers(struct start *start, struct lease *proposal)
{
	start->n = share_find(start->arbiter, start->p->gpu, proposal, start->growers,
			      &start->claims, &start->pool);
	cuset_add(&start->claims, &start->p->adaptation->base);
	for (size_t i = 0; i < start->n; i++) {
		set_target(start, &start->growers[i]);
		cuset_add(&start->pool, &start->growers[i].target);
	}
	start->growers[start->n] = share_grower(start->arbiter, proposal, start->p);
	return share_divide(start->arbiter, start->growers, start->n + 1,
			    cuset_count(&start->pool));
}

static void add_level(const struct grower *grower, unsigned cus, struct score *score)
{
	uint64_t level = ((uint64_t)cus << SHARE_LEVEL_BITS) / max_u(grower->share, 1);

	if (cus < grower->share && level < score->least)
		score->least = level;
}

static struct score rate(const struct start *start, const struct cuset *mask)
{
	struct score score = { UINT64_MAX, cuset_count(mask) };
	struct cuset left;

	for (size_t i = 0; i < start->n; i++) {
		const struct grower *grower = &start->growers[i];

		if (!borrow_shrink(start->gpu, &grower->p->adaptation->base, &grower->target, mask,
				   &left))
			left = grower->target;
		add_level(grower, cuset_count(&left), &score);
	}
	add_level(&start->growers[start->n], score.cus, &score);
	return score;
}

/* What a lease keeps of its target, if it keeps this part of its share. */
static void keep_part(const struct start *start, const struct grower *grower, unsigned part,
		      struct cuset *ret)
{
	struct extend request = { .base = &grower->p->adaptation->base,
				  .avail = grower->target,
				  .preferred = grower->target,
				  .keep = grower->target,
				  .all = &start->gpu->all,
				  .cap = grower->share * part / PARTS };

	*ret = grower->target;
	if (cuset_count(ret) > request.cap)
		extend(&start->gpu->info.geometry, &request, ret);
}

/* The mask of the proposal, up to its share, if the others keep this part of their shares. */
static void find_mask(const struct start *start, unsigned part, struct cuset *ret)
{
	const struct grower *self = &start->growers[start->n];
	struct extend request = { .base = &start->p->adaptation->base,
				  .avail = start->pool,
				  .keep = start->pool,
				  .all = &start->gpu->all,
				  .cap = self->share };
	struct cuset kept;

	for (size_t i = 0; i < start->n; i++) {
		keep_part(start, &start->growers[i], part, &kept);
		cuset_remove(&request.avail, &kept);
		cuset_remove(&request.keep, &start->growers[i].target);
	}
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &start->gpu->taken);
	extend(&start->gpu->info.geometry, &request, ret);
}

/* Finds the mask with which the leases of the GPU come closest to their shares. */
static void find_promise(const struct start *start, size_t n_partitions)
{
	unsigned step = 1 + (unsigned)(n_partitions * start->n) / TRIES_MAX;
	struct score best = rate(start, &start->p->cus);
	struct cuset mask;

	for (unsigned part = PARTS; part >= LEAST_PART; part = part > step ? part - step : 0) {
		struct score score;

		find_mask(start, part, &mask);
		score = rate(start, &mask);
		if (score.least < best.least ||
		    (score.least == best.least && score.cus <= best.cus))
			continue;
		best = score;
		start->p->adaptation->promised = mask;
	}
}

/* What the lease begins with: all of the promised mask if it has to wait for CUs in any case, or
 * what is free of it. */
static void begin_with_promised(const struct start *start, const struct lease *proposal)
{
	struct partition *p = start->p;
	const struct cuset *promised = &p->adaptation->promised;
	struct cuset occupied, cus = *promised;

	borrow_occupied(start->arbiter, p->gpu, proposal, &occupied);
	if (!proposal->lend.never_granted)
		borrow_shrink(start->gpu, &p->adaptation->base, promised, &occupied, &cus);
	partition_set_mask(p, &start->gpu->info.geometry, &cus);
	p->occupied = cus;
}

/* Without memory the lease is promised nothing. */
static void promise(const struct arbiter *arbiter, struct lease *proposal, struct partition *p)
{
	_cleanup_(freep) struct grower *growers = calloc(arbiter->n_leases + 1, sizeof(*growers));
	struct start start = {
		.arbiter = arbiter, .gpu = &arbiter->gpus[p->gpu], .p = p, .growers = growers
	};

	if (!growers || find_growers(&start, proposal) < 0 ||
	    !share_is_starved(&growers[start.n], p->count))
		return;
	find_promise(&start, proposal->n_partitions);
	if (partition_is_promised(p))
		begin_with_promised(&start, proposal);
}

/* The masks of an adaptable lease. Walks the leases of each GPU many times. */
static void start_masks(const struct arbiter *arbiter, struct lease *proposal)
{
	struct ledger_view view;

	ledger_view(arbiter, &view);
	for (size_t i = 0; i < proposal->n_partitions; i++) {
		struct partition *p = &proposal->partitions[i];
		const struct arbiter *there = ledger_on(&view, p->gpu);

		borrow_free(there, proposal, p, NULL);
		promise(there, proposal, p);
		p->paused = p->stopped = exclusive_on(there, p->gpu, proposal);
	}
	free(view.leases);
}

void share_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive)
{
	proposal->state = inactive ? STATE_INACTIVE : STATE_GRANTED;
	if (inactive)
		return;
	if (borrow_contested(arbiter, proposal)) {
		proposal->state = STATE_ACTIVATING;
		proposal->lend.never_granted = true;
	}
	if (proposal->adaptable)
		start_masks(arbiter, proposal);
}
