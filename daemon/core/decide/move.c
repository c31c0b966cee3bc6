/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/move.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/ledger/quota.h"
#include "core/mask/place.h"
#include "core/policy/request.h"

/* Leases in the way of the request move to CUs that are free; or to those that others leave or return first; or other
 * leases move for them, too. */
enum freedom { FREEDOM_NOW, FREEDOM_LATER, FREEDOM_ALL, FREEDOMS };

/* On the GPU where a lease would get another base: it has to leave its own, it keeps it, or it moves aside for another one
 * that gets this. */
enum way { WAY_LEAVES, WAY_STAYS, WAY_ASIDE };

/* A lease that may move. */
struct mover {
	struct lease *lease;
	struct lease *next; /* owned: with other bases; NULL: it stays, or the set has it */
	struct cuset base;  /* on the GPU where bases are placed */
	enum way way;
	bool moves, stuck; /* in this try; it found no room in an earlier one */
};

/* One search: leases of some GPUs, and the request that they would make room for. */
struct search {
	const struct arbiter *arbiter;
	const struct asker *asker;
	uint64_t now_usec;
	enum freedom freedom;
	bool resized;              /* the request is one of a lease that has CUs */
	const struct lease *stuck; /* if this try fails; NULL: none is in the way */
	unsigned place_steps;      /* of placing the request */
	unsigned lease_steps;      /* of finding other CUs for one partition */
	unsigned steps;            /* that are left: decide/admit.h */
	struct arbiter without;    /* the ledger without the CUs of leases that may move */
	struct mover *movers;      /* of which the first n_movable may move in this try */
	size_t n_movers, n_movable;
	size_t n_here; /* the first of them may on the GPU where bases are placed */
	struct cuset prefer[REQUEST_WANTS]; /* by GPU: CUs that no lease has to leave */
	struct cuset given[REQUEST_WANTS]; /* by GPU: CUs of the request, and of leases that move */
	struct cuset kept[REQUEST_WANTS];  /* by GPU: CUs of leases that do not return them */
	struct cuset staying; /* bases of leases that may move, and for which none is found yet */
};

void move_set_done(struct move_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		lease_free(set->next[i]);
	set->n = set->n_first = 0;
}

static void set_add(struct move_set *set, struct lease *next, bool later)
{
	set->next[set->n++] = next;
	if (later)
		return;
	set->next[set->n - 1] = set->next[set->n_first];
	set->next[set->n_first++] = next;
}

static bool may_move(const struct search *search, const struct lease *lease)
{
	uint64_t interval = search->arbiter->settings->activate_min_interval_usec;

	return lease->adaptable && !lease->lend.unbound && lease->state == STATE_GRANTED &&
	       !lease_is_resized(lease) && lease->generation == lease->acknowledged &&
	       !lease->verify.pending &&
	       (lease->lend.moves == 0 || search->now_usec >= lease->lend.moved_usec + interval);
}

/* May it move on this GPU? Its queues have all of its CUs there and no others. */
static bool may_leave(const struct partition *p)
{
	return !p->paused && p->isolation != ISOLATION_SHARED && cuset_equal(&p->cus, &p->occupied);
}

static bool find_movers(struct search *search)
{
	borrow_all(search->arbiter, BORROW_OCCUPIED, search->kept);
	FOR_EACH_LEASE(lease, search->arbiter) {
		if (!may_move(search, lease))
			continue;
		search->movers[search->n_movers++].lease = lease;
		FOR_EACH_PARTITION(p, lease)
			if (may_leave(p))
				cuset_remove(&search->kept[p->gpu], &p->occupied);
	}
	return search->n_movers > 0;
}

/* Puts a mover before the others that are not among the first n. */
static void put_first(struct search *search, size_t i, size_t *n)
{
	struct mover mover = search->movers[i];

	search->movers[i] = search->movers[*n];
	search->movers[(*n)++] = mover;
}

static bool take_steps(struct search *search, unsigned steps)
{
	if (search->steps < steps)
		return false;
	search->steps -= steps;
	return true;
}

/* Claims the bases of the lease where it may move, or takes its claims back. Its slots stay charged. */
static void claim(struct arbiter *without, const struct lease *lease, bool claims)
{
	FOR_EACH_PARTITION(p, lease) {
		struct cuset *taken = &without->gpus[p->gpu].taken;

		if (may_leave(p))
			(claims ? cuset_add : cuset_remove)(taken, &p->adaptation->base);
	}
}

/* Begins a try: nothing has moved, and no lease that may move has CUs. */
static void begin_try(struct search *search)
{
	const struct arbiter *arbiter = search->arbiter;

	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		search->prefer[i] = arbiter->gpus[i].all;
		search->given[i] = (struct cuset){ 0 };
		search->without.gpus[i].taken = arbiter->gpus[i].taken;
		search->without.gpus[i].prefer = &search->prefer[i];
	}
	search->n_movable = 0;
	search->stuck = NULL;
	for (size_t i = 0; i < search->n_movers; i++) {
		struct lease *lease = search->movers[i].lease;

		search->movers[i].moves = false;
		if (search->movers[i].stuck)
			continue;
		FOR_EACH_PARTITION(p, lease)
			cuset_remove(&search->prefer[p->gpu], &p->adaptation->base);
		claim(&search->without, lease, false);
		put_first(search, i, &search->n_movable);
	}
}

static unsigned count_free(const struct search *search, unsigned gpu)
{
	struct cuset free = search->prefer[gpu];

	cuset_remove(&free, &search->without.gpus[gpu].taken);
	return cuset_count(&free);
}

/* The fewest CUs that do for a want on this GPU. */
static unsigned needed_on(const struct search *search, const struct want *want, unsigned index)
{
	const struct gpu *gpu = &search->arbiter->gpus[index];
	struct want whole;

	want_resolve_percent(want, gpu->cus, &whole);
	return want_least_cus(&whole, whole.cus ? whole.cus
						: place_engines_aim(&gpu->info.geometry, &gpu->all,
								    whole.shader_engines));
}

/* Has the GPU too few free CUs even for the smallest part of the request? */
static bool is_full(const struct search *search, unsigned gpu)
{
	const struct request *request = search->asker->request;
	unsigned least = UINT_MAX;

	for (size_t i = 0; i < request->n_wants; i++)
		least = min_u(least, needed_on(search, &request->wants[i], gpu));
	return count_free(search, gpu) < least;
}

/* Moves free no CUs. If the request needs more of a GPU than are free, leases stay there, and on GPUs that are full. */
static bool has_room(struct search *search, const struct partition *partitions, size_t n)
{
	uint64_t full = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned gpu = partitions[i].gpu;

		if (needed_on(search, &search->asker->request->wants[i], gpu) >
		    count_free(search, gpu))
			full |= bit_u64(gpu);
	}
	if (!full || search->resized)
		return true;
	for (unsigned g = 0; g < search->arbiter->n_gpus; g++)
		full |= is_full(search, g) ? bit_u64(g) : 0;
	for (size_t i = 0; i < search->n_movable; i++)
		if (lease_gpus(search->movers[i].lease) & full) {
			search->movers[i].stuck = true;
			search->stuck = search->movers[i].lease;
		}
	return false;
}

/* Places the request. */
static bool place_asked(struct search *search)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct partition partitions[REQUEST_WANTS];
	int n;

	if (!take_steps(search, search->place_steps))
		return false;
	n = plan_asked(&search->without, search->asker, partitions, &result);
	for (int i = 0; i < n; i++) {
		struct cuset needed;

		borrow_needed(search->arbiter, &partitions[i], &needed);
		cuset_add(&search->given[partitions[i].gpu], &needed);
	}
	return n > 0 && has_room(search, partitions, (size_t)n);
}

static bool is_in_the_way(const struct search *search, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (cuset_overlap(&search->given[p->gpu], &p->adaptation->base))
			return true;
	return false;
}

/* Puts the leases that are in the way first; the others stay where they are, unless all may move. */
static void find_in_the_way(struct search *search)
{
	size_t n = 0;

	for (size_t i = 0; i < search->n_movable; i++) {
		struct lease *lease = search->movers[i].lease;

		if (is_in_the_way(search, lease))
			put_first(search, i, &n);
		else if (search->freedom != FREEDOM_ALL)
			claim(&search->without, lease, true);
	}
	if (n > 0)
		search->stuck = search->movers[0].lease;
	if (n == 0 || search->freedom != FREEDOM_ALL)
		search->n_movable = n;
}

/* ---- where they move to -------------------------------------------------------------------- */

/* What a lease claims on the GPU in this try. One that has to leave claims nothing before it has another base. */
static struct cuset claim_now(const struct search *search, const struct lease *lease,
			      const struct partition *p)
{
	for (size_t i = 0; i < search->n_here; i++) {
		const struct mover *mover = &search->movers[i];

		if (mover->lease == lease && mover->way == WAY_LEAVES &&
		    cuset_equal(&mover->base, &p->adaptation->base))
			return (struct cuset){ 0 };
		if (mover->lease == lease)
			return mover->base;
	}
	return partition_claim(p);
}

/* The bases of a user are together in no more engines than max-shader-engines. */
static void keep_engines(const struct search *search, const struct tenant *tenant,
			 const struct lease *lease, unsigned gpu, struct cuset *cus)
{
	uint32_t engines = 0;

	FOR_EACH_LEASE(other, search->arbiter) {
		const struct partition *p = lease_partition_on(other, gpu);

		if (p && other != lease && lease_same_account(other, lease)) {
			const struct cuset claim = claim_now(search, other, p);

			engines |= cuset_engines(&claim);
		}
	}
	quota_keep_engines(tenant, &search->arbiter->gpus[gpu], engines, cus);
}

/* The CUs of a GPU that the base of the lease may have: what no other lease claims, nor keeps. Floors are kept beside the
 * leases that stay. */
static void find_room(struct search *search, const struct lease *lease, unsigned gpu,
		      struct cuset *ret)
{
	struct cuset *taken = &search->without.gpus[gpu].taken, claimed = *taken;
	const struct tenant *tenant = tenant_named(search->arbiter->settings, lease->tenant);
	struct cuset others = search->kept[gpu];

	admit_available(&search->without.gpus[gpu], lease->class, ISOLATION_CU, false, ret);
	if (search->freedom == FREEDOM_NOW)
		borrow_others(search->arbiter, gpu, lease, BORROW_OCCUPIED, &others);
	cuset_remove(ret, &others);
	cuset_remove(ret, &search->given[gpu]);
	if (tenant && floor_configured(search->arbiter->settings)) {
		struct floor floor;

		cuset_add(taken, &search->staying);
		if (floor_find(&search->without, gpu, tenant, NULL, &floor) < 0)
			*ret = (struct cuset){ 0 };
		else
			cuset_remove(ret, &floor.now.cus);
		*taken = claimed;
	}
	if (tenant && tenant->max_engines.kind != LIMIT_NONE)
		keep_engines(search, tenant, lease, gpu, ret);
}

/* Finds another base for the lease. */
static bool place_base(struct search *search, unsigned index, struct mover *mover)
{
	const struct gpu *gpu = &search->arbiter->gpus[index];
	const struct partition *p = lease_partition_on(mover->lease, index);
	unsigned count = cuset_count(&mover->base);
	struct place_request request = { .all = &gpu->all,
					 .keep = &p->cus,
					 .aim = count,
					 .floor = count,
					 .ceiling = count,
					 .limit = count,
					 .exact = true,
					 .few_engines = true };
	struct placement placement;

	find_room(search, mover->lease, index, &request.avail);
	if (!take_steps(search, search->lease_steps) ||
	    place(&gpu->info.geometry, &request, &placement, NULL) < 0 ||
	    placement.effective != placement.count ||
	    cuset_equal(&placement.cus, &p->adaptation->moved_from)) {
		search->stuck = mover->lease;
		return false;
	}
	mover->base = placement.cus;
	cuset_add(&search->without.gpus[index].taken, &mover->base);
	return true;
}

/* Gives the next version of the lease its base. */
static bool set_base(struct mover *mover, unsigned gpu)
{
	const struct lease *lease = mover->lease;
	const struct adaptation *has = lease_partition_on(lease, gpu)->adaptation;

	if (cuset_equal(&mover->base, &has->base))
		return true;
	if (!mover->next && lease_next_version(lease, lease->n_partitions, &mover->next) < 0)
		return false;
	*lease_partition_on(mover->next, gpu)->adaptation =
		(struct adaptation){ .base = mover->base, .moved_from = has->base };
	return true;
}

/* Leases that have to leave first, then those that move aside last, and of these large bases first: they need the
 * most room. */
static int by_way(const void *left, const void *right)
{
	const struct mover *a = left, *b = right;
	unsigned x = cuset_count(&a->base), y = cuset_count(&b->base);

	if (a->way != b->way)
		return a->way < b->way ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	return (a->lease->id > b->lease->id) - (a->lease->id < b->lease->id);
}

/* Puts the leases first that may move on the GPU, and sorts them. Returns how many. */
static size_t find_ways(struct search *search, unsigned gpu)
{
	size_t n = 0;

	search->staying = (struct cuset){ 0 };
	for (size_t i = 0; i < search->n_movable; i++) {
		const struct partition *p = lease_partition_on(search->movers[i].lease, gpu);
		struct mover *mover;

		if (!p || !may_leave(p))
			continue;
		put_first(search, i, &n);
		mover = &search->movers[n - 1];
		mover->base = p->adaptation->base;
		mover->way = WAY_LEAVES;
		if (cuset_overlap(&mover->base, &search->given[gpu]))
			continue;
		mover->way = WAY_STAYS;
		cuset_add(&search->staying, &mover->base);
	}
	search->n_here = n;
	qsort(search->movers, n, sizeof(*search->movers), by_way);
	return n;
}

/* Finds other bases for the leases in the way, as if other leases that may move had none, and then for those on whose
 * bases they are. false: there is no room on this GPU. */
static bool place_bases(struct search *search, unsigned gpu)
{
	struct cuset *taken = &search->without.gpus[gpu].taken;
	size_t n = find_ways(search, gpu), i = 0;

	for (; i < n && search->movers[i].way == WAY_LEAVES; i++)
		if (!place_base(search, gpu, &search->movers[i]))
			return false;
	search->staying = (struct cuset){ 0 };
	for (size_t j = i; j < n; j++)
		if (cuset_overlap(&search->movers[j].base, taken))
			search->movers[j].way = WAY_ASIDE;
		else
			cuset_add(taken, &search->movers[j].base);
	qsort(search->movers, n, sizeof(*search->movers), by_way);
	for (; i < n; i++)
		if (search->movers[i].way == WAY_ASIDE &&
		    !place_base(search, gpu, &search->movers[i]))
			return false;
	for (i = 0; i < n; i++)
		if (!set_base(&search->movers[i], gpu))
			return false;
	return true;
}

/* ---- what moves ---------------------------------------------------------------------------- */

/* Gives the partition a mask around its base, of as many CUs as before where there are so many. The quota may leave
 * fewer, as before it may have had those that an inactive lease of its user lends. Returns whether others leave the
 * base first. */
static bool set_mask(struct search *search, const struct lease *lease, struct partition *p)
{
	const struct gpu *gpu = &search->arbiter->gpus[p->gpu];
	const struct cuset *base = &p->adaptation->base, has = p->cus;
	unsigned left = quota_cus_left(search->arbiter, lease, p->gpu);
	struct place_request request = {
		.keep = &has, .base = base, .all = &gpu->all, .ceiling = min_u(p->count, left)
	};
	struct cuset others, cus;
	bool later;

	admit_available(&search->without.gpus[p->gpu], lease->class, ISOLATION_CU, false,
			&request.avail);
	borrow_others(search->arbiter, p->gpu, lease, BORROW_OCCUPIED, &others);
	later = cuset_overlap(base, &others);
	cuset_remove(&request.avail, &others);
	borrow_others(search->arbiter, p->gpu, lease, BORROW_PROMISED, &others);
	cuset_remove(&request.avail, &others);
	cuset_remove(&request.avail, &search->given[p->gpu]);
	cuset_add(&request.avail, base);
	place_around(&gpu->info.geometry, &request, &cus);
	partition_set_mask(p, &gpu->info.geometry, &cus);
	cuset_add(&search->given[p->gpu], &cus);
	return later;
}

/* The leases move that have other bases. false: there are too many. */
static bool add_moves(struct search *search, struct move_set *set)
{
	for (size_t i = 0; i < search->n_movable; i++) {
		const struct lease *lease = search->movers[i].lease;
		struct lease *next = search->movers[i].next;
		bool later = false;

		if (!next)
			continue;
		if (set->n == MOVES_MAX)
			return false;
		for (size_t j = 0; j < next->n_partitions; j++)
			if (!cuset_equal(&next->partitions[j].adaptation->base,
					 &lease->partitions[j].adaptation->base))
				later |= set_mask(search, lease, &next->partitions[j]);
		next->generation++;
		next->lend.moves++;
		next->lend.moved_usec = search->now_usec;
		search->movers[i].moves = true;
		set_add(set, TAKE_PTR(search->movers[i].next), later);
	}
	return true;
}

/* The lease without CUs that others move to later. 0: it has none. */
static int shrink_for(const struct search *search, const struct lease *lease,
		      const struct move_set *set, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	bool shrinks = false;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return -ENOMEM;
	FOR_EACH_PARTITION(p, next) {
		const struct gpu *gpu = &search->arbiter->gpus[p->gpu];
		struct cuset claims = { 0 }, left;

		for (size_t k = set->n_first; k < set->n; k++) {
			const struct partition *moved = lease_partition_on(set->next[k], p->gpu);

			if (moved)
				cuset_add(&claims, &moved->adaptation->base);
		}
		if (!borrow_shrink(gpu, &p->adaptation->base, &p->cus, &claims, &left))
			continue;
		if (cuset_empty(&p->adaptation->before))
			p->adaptation->before = p->cus;
		partition_set_mask(p, &gpu->info.geometry, &left);
		shrinks = true;
	}
	next->generation++;
	if (shrinks)
		*ret = TAKE_PTR(next);
	return shrinks;
}

/* The leases that have to shrink before others can move are told to in the first step. */
static bool add_shrinking(struct search *search, struct move_set *set)
{
	for (size_t i = 0; set->n_first < set->n && i < search->n_movers; i++) {
		const struct mover *mover = &search->movers[i];
		struct lease *next;
		int r = mover->moves ? 0 : shrink_for(search, mover->lease, set, &next);

		if (r > 0 && set->n == MOVES_MAX)
			lease_free(next);
		if (r < 0 || (r > 0 && set->n == MOVES_MAX))
			return false;
		if (r > 0)
			set_add(set, next, false);
	}
	return true;
}

/* The lease when its holder has acknowledged the move. */
static int find_followed(const struct lease *moved, struct lease **ret)
{
	int r = lease_next_version(moved, moved->n_partitions, ret);

	if (r < 0)
		return r;
	(*ret)->acknowledged = (*ret)->generation;
	FOR_EACH_PARTITION(p, *ret)
		p->occupied = p->cus;
	return 0;
}

static bool fits(struct search *search, const struct arbiter *after)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct partition partitions[REQUEST_WANTS];

	return take_steps(search, search->place_steps) &&
	       plan_asked(after, search->asker, partitions, &result) > 0;
}

/* Are there moves for the rest, too? A resize does not wait for them. */
static bool may_go_on(struct search *search, const struct arbiter *after)
{
	struct move_set second;
	bool found;

	if (search->resized)
		return false;
	found = move_find(after, search->asker, search->now_usec, search->steps, &second) > 0;
	take_steps(search, second.steps);
	move_set_done(&second);
	return found;
}

/* Does the first step help, when its holders have acknowledged it? This is decided as it will be then: nothing is kept of
 * this search, and the request is placed anew, beside floors that are kept elsewhere. */
static bool leads_on(struct search *search, const struct move_set *set)
{
	struct lease *followed[MOVES_MAX] = { 0 };
	struct arbiter after;
	bool leads = false;
	size_t n = 0;

	while (n < set->n_first && find_followed(set->next[n], &followed[n]) >= 0)
		n++;
	if (n == set->n_first && borrow_copy_with(search->arbiter, followed, n, &after) >= 0) {
		leads = n == set->n ? fits(search, &after) : may_go_on(search, &after);
		ledger_copy_done(&after);
	}
	while (n > 0)
		lease_free(followed[--n]);
	return leads;
}

/* ---- the search --------------------------------------------------------------------------- */

static bool place_all(struct search *search)
{
	bool found = true;

	for (unsigned i = 0; i < search->arbiter->n_gpus && found; i++)
		found = cuset_empty(&search->given[i]) || place_bases(search, i);
	return found;
}

static bool search_moves(struct search *search, struct move_set *set)
{
	bool found;

	if (!place_asked(search))
		return false;
	find_in_the_way(search);
	found = search->stuck && place_all(search) && add_moves(search, set) &&
		add_shrinking(search, set) && set->n_first > 0 && leads_on(search, set);
	for (size_t i = 0; i < search->n_movers; i++) {
		struct mover *mover = &search->movers[i];

		mover->next = lease_free(mover->next);
		mover->stuck |= mover->lease == search->stuck;
	}
	return found;
}

/* A lease that finds no room stays where it is in the next try, so that the request is
 * placed elsewhere. */
static bool try_moves(struct search *search, struct move_set *set)
{
	bool found;

	for (size_t i = 0; i < search->n_movers; i++)
		search->movers[i].stuck = false;
	do {
		if (!take_steps(search, gang_walk_steps(search->arbiter)))
			return false;
		begin_try(search);
		found = search_moves(search, set);
		if (!found)
			move_set_done(set);
	} while (!found && search->stuck);
	return found;
}

static bool search_all(struct search *search, struct move_set *ret)
{
	bool found = false;

	if (!find_movers(search) || ledger_copy(search->arbiter, &search->without) < 0)
		return false;
	for (unsigned i = FREEDOM_NOW; i < FREEDOMS && !found; i++) {
		search->freedom = i;
		found = try_moves(search, ret);
	}
	ledger_copy_done(&search->without);
	return found;
}

int move_find(const struct arbiter *arbiter, const struct asker *asker, uint64_t now_usec,
	      unsigned max_steps, struct move_set *ret)
{
	_cleanup_(freep) struct mover *movers = calloc(arbiter->n_leases + 1, sizeof(*movers));
	_cleanup_(freep) struct search *search = calloc(1, sizeof(*search));
	bool found;

	*ret = (struct move_set){ 0 };
	if (!movers || !search)
		return 0;
	*search = (struct search){ .arbiter = arbiter,
				   .asker = asker,
				   .resized = asker->lease->state != STATE_WAITING &&
					      ledger_find(arbiter, asker->lease->id),
				   .now_usec = now_usec,
				   .movers = movers,
				   .place_steps = gang_steps(arbiter, asker->request, false),
				   .lease_steps = gang_lease_steps(arbiter),
				   .steps = max_steps };
	found = search_all(search, ret);
	ret->steps = max_steps - search->steps;
	return found;
}

/* ---- for a caller -------------------------------------------------------------------------- */

int arbiter_plan_moves(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, uint64_t now_usec, unsigned max_steps,
		       struct move_set *ret)
{
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;

	*ret = (struct move_set){ 0 };
	if (plan_lease(arbiter, caller, request, &lease, &result) < 0)
		return 0;
	return move_find(arbiter, &(struct asker){ lease, request }, now_usec, max_steps, ret);
}

int arbiter_plan_resize_moves(const struct arbiter *arbiter, uint64_t id,
			      const struct request *request, uint64_t now_usec,
			      struct move_set *ret)
{
	const struct lease *lease = ledger_find(arbiter, id);
	const struct asker asker = { lease, request };

	*ret = (struct move_set){ 0 };
	return lease && !lease->adaptable &&
	       move_find(arbiter, &asker, now_usec, MOVE_STEPS, ret) > 0;
}
