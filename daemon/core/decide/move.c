/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/mask/extend.h"
#include "core/mask/place.h"

/* One search: leases of some GPUs, and the request that they would make room for. */
struct search {
	const struct arbiter *arbiter;
	uint64_t now_usec;
	uint64_t gpus;          /* where leases may move (bits) */
	struct arbiter without; /* the ledger without the CUs of leases that may move */
	struct lease **movable;
	size_t n_movable;
	uint64_t stuck[MOVES_MAX]; /* ids of leases that found no room in an earlier try */
	size_t n_stuck;
	struct cuset prefer[REQUEST_WANTS]; /* by GPU: CUs that no lease has to leave */
	struct partition partitions[REQUEST_WANTS];
	size_t n_partitions;
};

void move_set_done(struct move_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		lease_free(set->next[i]);
	set->n = 0;
}

static bool is_stuck(const struct search *search, const struct lease *lease)
{
	for (size_t i = 0; i < search->n_stuck; i++)
		if (search->stuck[i] == lease->id)
			return true;
	return false;
}

/* May it move? Its queues have all of its CUs and no others. */
static bool may_move(const struct search *search, const struct lease *lease)
{
	uint64_t interval = search->arbiter->settings->activate_min_interval_usec;

	if (!lease->adaptable || is_stuck(search, lease) || lease->state != STATE_GRANTED ||
	    lease->generation != lease->acknowledged || lease->verify.pending ||
	    !(lease_gpus(lease) & search->gpus) ||
	    (lease->lend.moves > 0 && search->now_usec < lease->lend.moved_usec + interval))
		return false;
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].paused ||
		    !cuset_equal(&lease->partitions[i].cus, &lease->partitions[i].occupied))
			return false;
	return true;
}

static void find_movable(struct search *search)
{
	const struct arbiter *arbiter = search->arbiter;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		search->prefer[i] = arbiter->gpus[i].all;
	search->n_movable = 0;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (!may_move(search, lease))
			continue;
		search->movable[search->n_movable++] = lease;
		for (size_t j = 0; j < lease->n_partitions; j++)
			cuset_remove(&search->prefer[lease->partitions[j].gpu],
				     &lease->partitions[j].base);
	}
}

/* Claims the bases of the lease, or takes its claims back. Its slots stay charged. */
static void claim(struct arbiter *without, const struct lease *lease, bool claims)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		struct cuset *taken = &without->gpus[p->gpu].taken;

		if (claims)
			cuset_add(taken, &p->base);
		else
			cuset_remove(taken, &p->base);
	}
}

/* Places the request as if no lease that may move had CUs. */
static bool place_asked(struct search *search, move_place_t place_it, const void *request)
{
	int n;

	for (size_t i = 0; i < search->n_movable; i++)
		claim(&search->without, search->movable[i], false);
	for (size_t i = 0; i < search->without.n_gpus; i++)
		search->without.gpus[i].prefer = &search->prefer[i];
	n = place_it(&search->without, request, search->partitions);
	for (size_t i = 0; i < search->without.n_gpus; i++)
		search->without.gpus[i].prefer = NULL;
	search->n_partitions = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* The CUs of a GPU that the request needs for itself. */
static void needed_on(const struct search *search, unsigned gpu, struct cuset *ret)
{
	*ret = (struct cuset){ 0 };
	for (size_t i = 0; i < search->n_partitions; i++)
		if (search->partitions[i].gpu == gpu)
			borrow_needed(search->arbiter, &search->partitions[i], ret);
}

static bool is_in_the_way(const struct search *search, const struct lease *lease)
{
	struct cuset needed;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		needed_on(search, lease->partitions[i].gpu, &needed);
		if (cuset_overlap(&needed, &lease->partitions[i].base))
			return true;
	}
	return false;
}

/* ---- where it moves to -------------------------------------------------------------------- */

/* CUs that the lease may have there: free ones and its own. */
static void find_room(const struct search *search, const struct lease *lease,
		      const struct partition *p, struct cuset *ret)
{
	const struct tenant *tenant = tenant_named(search->arbiter->settings, lease->tenant);
	struct cuset others;

	admit_available(&search->without.gpus[p->gpu], lease->class, p->isolation, false, ret);
	borrow_occupied(search->arbiter, p->gpu, lease, &others);
	cuset_remove(ret, &others);
	borrow_promised(search->arbiter, p->gpu, lease, &others);
	cuset_remove(ret, &others);
	needed_on(search, p->gpu, &others);
	cuset_remove(ret, &others);
	if (tenant && floor_configured(search->arbiter->settings)) {
		struct floor floor;

		floor_find(&search->without, p->gpu, tenant, NULL, &floor);
		cuset_remove(ret, &floor.now.cus);
	}
}

static bool find_base(const struct gpu *gpu, const struct partition *p, const struct cuset *room,
		      struct cuset *ret)
{
	unsigned count = cuset_count(&p->base);
	const struct place_request request = { .all = &gpu->all,
					       .avail = *room,
					       .preferred = *room,
					       .keep = &p->cus,
					       .aim = count,
					       .floor = count,
					       .ceiling = count,
					       .limit = count,
					       .exact = true,
					       .few_engines = true };
	struct placement placement;
	struct place_miss miss;

	if (place(&gpu->info.geometry, &request, &placement, &miss) < 0 ||
	    placement.effective != placement.count || cuset_equal(&placement.cus, &p->moved_from))
		return false;
	*ret = placement.cus;
	return true;
}

/* Gives the partition of the next version another base, and a mask around it of as many CUs as
 * before where there are so many. */
static bool move_partition(const struct search *search, const struct lease *lease,
			   struct partition *p)
{
	const struct gpu *gpu = &search->arbiter->gpus[p->gpu];
	struct extend request = { .keep = p->cus, .all = &gpu->all, .cap = p->count };
	struct cuset base, cus;

	find_room(search, lease, p, &request.avail);
	if (!find_base(gpu, p, &request.avail, &base))
		return false;
	request.base = &base;
	request.preferred = request.avail;
	extend(&gpu->info.geometry, &request, &cus);
	p->moved_from = p->base;
	p->base = base;
	p->before = p->promised = (struct cuset){ 0 };
	partition_set_mask(p, &gpu->info.geometry, &cus);
	return true;
}

static int move_lease(struct search *search, const struct lease *lease, struct move_set *set)
{
	_cleanup_(lease_freep) struct lease *next = NULL;

	if (set->n == MOVES_MAX)
		return -E2BIG;
	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < next->n_partitions; i++) {
		struct cuset needed;

		next->partitions[i] = lease->partitions[i];
		needed_on(search, next->partitions[i].gpu, &needed);
		if (cuset_overlap(&needed, &next->partitions[i].base) &&
		    !move_partition(search, lease, &next->partitions[i]))
			return -ENOSPC;
	}
	next->generation++;
	next->lend.moves++;
	next->lend.moved_usec = search->now_usec;
	claim(&search->without, next, true);
	set->next[set->n++] = TAKE_PTR(next);
	return 0;
}

/* ---- the search --------------------------------------------------------------------------- */

/* Large bases first: they need the most room. */
static int by_base(const void *left, const void *right)
{
	struct lease *const *a = left, *const *b = right;
	unsigned x = cuset_count(&(*a)->partitions[0].base);
	unsigned y = cuset_count(&(*b)->partitions[0].base);

	if (x != y)
		return x > y ? -1 : 1;
	return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

static bool search_moves(struct search *search, move_place_t place_it, const void *request,
			 struct move_set *set)
{
	size_t n = 0;

	if (!place_asked(search, place_it, request))
		return false;
	for (size_t i = 0; i < search->n_movable; i++) {
		struct lease *lease = search->movable[i];

		if (is_in_the_way(search, lease))
			search->movable[n++] = lease;
		else
			claim(&search->without, lease, true);
	}
	qsort(search->movable, n, sizeof(*search->movable), by_base);
	for (size_t i = 0; i < n; i++) {
		if (move_lease(search, search->movable[i], set) >= 0)
			continue;
		search->stuck[search->n_stuck++] = search->movable[i]->id;
		return false;
	}
	return n > 0;
}

/* Moves leases of search->gpus. A lease that finds no room stays where it is in the next try, so
 * that the request is placed elsewhere. */
static bool try_moves(struct search *search, move_place_t place_it, const void *request,
		      struct move_set *set)
{
	size_t before;
	bool found;

	search->n_stuck = 0;
	do {
		before = search->n_stuck;
		find_movable(search);
		if (search->n_movable == 0 || ledger_copy(search->arbiter, &search->without) < 0)
			return false;
		found = search_moves(search, place_it, request, set);
		ledger_copy_done(&search->without);
		if (!found)
			move_set_done(set);
	} while (!found && search->n_stuck > before && search->n_stuck < MOVES_MAX);
	return found;
}

int move_find(const struct arbiter *arbiter, move_place_t place_it, const void *request,
	      uint64_t now_usec, struct move_set *ret)
{
	_cleanup_(freep) struct lease **movable = NULL;
	struct search search = { .arbiter = arbiter, .now_usec = now_usec };
	bool found = false;

	*ret = (struct move_set){ 0 };
	movable = calloc(arbiter->n_leases + 1, sizeof(*movable));
	if (!movable)
		return 0;
	search.movable = movable;
	/* On one GPU, then on several at once. */
	for (size_t i = 0; i <= arbiter->n_gpus && !found; i++) {
		search.gpus = i < arbiter->n_gpus ? UINT64_C(1) << i : UINT64_MAX;
		found = try_moves(&search, place_it, request, ret);
	}
	return found;
}
