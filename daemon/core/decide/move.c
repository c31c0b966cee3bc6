/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/mask/place.h"
#include "core/policy/request.h"

/* One search: leases of some GPUs, and the request that they would make room for. */
struct search {
	const struct arbiter *arbiter;
	const struct asker *asker;
	uint64_t now_usec;
	uint64_t gpus;          /* where leases may move (bits) */
	bool aside;             /* a lease may move aside for another one that moves */
	bool single;            /* the request has one want: the leases of one GPU suffice */
	unsigned place_steps;   /* of placing the request */
	unsigned lease_steps;   /* of finding other CUs for one partition */
	unsigned steps;         /* that are left: decide/admit.h */
	struct arbiter without; /* the ledger without the CUs of leases that may move */
	struct lease **all;     /* that may move if GPUs do not matter; n_all */
	size_t n_all;
	struct lease **movable; /* of those, the ones of this try */
	size_t n_movable;
	uint64_t stuck[MOVES_MAX]; /* ids of leases that found no room in an earlier try */
	size_t n_stuck;
	struct cuset prefer[REQUEST_WANTS]; /* by GPU: CUs that no lease has to leave */
	struct cuset given[REQUEST_WANTS]; /* by GPU: CUs of the request, and of leases that move */
	struct cuset left[REQUEST_WANTS];  /* by GPU: CUs of leases that move at once */
	struct cuset offered[REQUEST_WANTS]; /* by GPU: CUs of leases that could do so */
	struct cuset lent[REQUEST_WANTS];    /* by GPU: CUs that leases borrow which stay */
};

void move_set_done(struct move_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		lease_free(set->next[i]);
	set->n = set->n_first = 0;
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

	if (!lease->adaptable || lease->lend.unbound || lease->state != STATE_GRANTED ||
	    lease->generation != lease->acknowledged || lease->verify.pending ||
	    (lease->lend.moves > 0 && search->now_usec < lease->lend.moved_usec + interval))
		return false;
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].paused ||
		    lease->partitions[i].isolation == ISOLATION_SHARED ||
		    !cuset_equal(&lease->partitions[i].cus, &lease->partitions[i].occupied))
			return false;
	return true;
}

/* Returns the GPUs of the leases that may move, as bits. */
static uint64_t find_all(struct search *search)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < search->arbiter->n_leases; i++) {
		struct lease *lease = search->arbiter->leases[i];

		if (!may_move(search, lease))
			continue;
		search->all[search->n_all++] = lease;
		gpus |= lease_gpus(lease);
	}
	return gpus;
}

/* Begins a try: nothing has moved. */
static void find_movable(struct search *search)
{
	const struct arbiter *arbiter = search->arbiter;

	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		search->prefer[i] = arbiter->gpus[i].all;
		search->given[i] = search->left[i] = search->offered[i] = search->lent[i] =
			(struct cuset){ 0 };
		search->without.gpus[i].taken = arbiter->gpus[i].taken;
		search->without.gpus[i].skipped = search->single && !(search->gpus >> i & 1);
	}
	search->n_movable = 0;
	for (size_t i = 0; i < search->n_all; i++) {
		struct lease *lease = search->all[i];

		if (is_stuck(search, lease) || !(lease_gpus(lease) & search->gpus))
			continue;
		search->movable[search->n_movable++] = lease;
		for (size_t j = 0; j < lease->n_partitions; j++)
			cuset_remove(&search->prefer[lease->partitions[j].gpu],
				     &lease->partitions[j].adaptation->base);
	}
}

static bool take_steps(struct search *search, unsigned steps)
{
	if (search->steps < steps)
		return false;
	search->steps -= steps;
	return true;
}

/* Claims the bases of the lease, or takes its claims back. Its slots stay charged. */
static void claim(struct arbiter *without, const struct lease *lease, bool claims)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		struct cuset *taken = &without->gpus[p->gpu].taken;

		if (claims)
			cuset_add(taken, &p->adaptation->base);
		else
			cuset_remove(taken, &p->adaptation->base);
	}
}

/* Places the request as if no lease that may move had CUs. */
static bool place_asked(struct search *search)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct partition partitions[REQUEST_WANTS];
	int n;

	if (!take_steps(search, search->place_steps))
		return false;
	for (size_t i = 0; i < search->n_movable; i++)
		claim(&search->without, search->movable[i], false);
	for (size_t i = 0; i < search->without.n_gpus; i++)
		search->without.gpus[i].prefer = &search->prefer[i];
	n = plan_asked(&search->without, search->asker, partitions, &result);
	for (size_t i = 0; i < search->without.n_gpus; i++)
		search->without.gpus[i].prefer = NULL;
	for (int i = 0; i < n; i++) {
		struct cuset needed;

		borrow_needed(search->arbiter, &partitions[i], &needed);
		cuset_add(&search->given[partitions[i].gpu], &needed);
	}
	return n > 0;
}

static bool is_in_the_way(const struct search *search, const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (cuset_overlap(&search->given[lease->partitions[i].gpu],
				  &lease->partitions[i].adaptation->base))
			return true;
	return false;
}

/* ---- where it moves to -------------------------------------------------------------------- */

/* CUs that the lease may have there: free ones, its own, those that other leases leave, and `returned` ones. */
static void find_room(const struct search *search, const struct lease *lease,
		      const struct partition *p, const struct cuset *returned, struct cuset *ret)
{
	const struct tenant *tenant = tenant_named(search->arbiter->settings, lease->tenant);
	struct cuset others;

	admit_available(&search->without.gpus[p->gpu], lease->class, p->isolation, false, ret);
	borrow_others(search->arbiter, p->gpu, lease, BORROW_OCCUPIED, &others);
	cuset_remove(&others, &search->left[p->gpu]);
	cuset_remove(&others, &search->offered[p->gpu]);
	cuset_remove(&others, returned);
	cuset_remove(ret, &others);
	borrow_others(search->arbiter, p->gpu, lease, BORROW_PROMISED, &others);
	cuset_remove(ret, &others);
	cuset_remove(ret, &search->given[p->gpu]);
	if (tenant && floor_configured(search->arbiter->settings)) {
		struct floor floor;

		if (floor_find(&search->without, p->gpu, tenant, NULL, &floor) < 0)
			*ret = (struct cuset){ 0 };
		else
			cuset_remove(ret, &floor.now.cus);
	}
}

static bool find_base(struct search *search, const struct partition *p, const struct cuset *room,
		      const struct cuset *preferred, struct cuset *ret)
{
	const struct gpu *gpu = &search->arbiter->gpus[p->gpu];
	unsigned count = cuset_count(&p->adaptation->base);
	const struct place_request request = { .all = &gpu->all,
					       .avail = *room,
					       .preferred = *preferred,
					       .keep = &p->cus,
					       .aim = count,
					       .floor = count,
					       .ceiling = count,
					       .limit = count,
					       .exact = true,
					       .few_engines = true };
	struct placement placement;
	struct place_miss miss;

	if (!take_steps(search, search->lease_steps) ||
	    place(&gpu->info.geometry, &request, &placement, &miss) < 0 ||
	    placement.effective != placement.count ||
	    cuset_equal(&placement.cus, &p->adaptation->moved_from))
		return false;
	*ret = placement.cus;
	return true;
}

/* A base among CUs that other leases have left, when they have moved, or returned what they borrow. */
static bool find_later_base(struct search *search, const struct lease *lease,
			    const struct partition *p, const struct cuset *now,
			    const struct cuset *room, struct cuset *ret)
{
	struct cuset lent;

	if (!cuset_equal(room, now) && find_base(search, p, room, now, ret))
		return true;
	find_room(search, lease, p, &search->lent[p->gpu], &lent);
	return !cuset_equal(&lent, room) && find_base(search, p, &lent, room, ret);
}

/* Gives the partition of the next version another base, and a mask around it of as many CUs as
 * before where there are so many. The quota may leave fewer, as before it may have had those that an inactive
 * lease of its user lends. later: there is room only when other leases have left. */
static bool move_partition(struct search *search, const struct lease *lease, struct partition *p,
			   bool *later)
{
	const struct gpu *gpu = &search->arbiter->gpus[p->gpu];
	const struct cuset has = p->cus;
	unsigned left = quota_cus_left(search->arbiter, lease, p->gpu);
	struct place_request request = { .keep = &has,
					 .all = &gpu->all,
					 .ceiling = min_u(p->count, left) };
	struct cuset base, cus, room, none = { 0 };

	find_room(search, lease, p, &none, &room);
	request.avail = request.preferred = room;
	cuset_remove(&request.preferred, &search->offered[p->gpu]);
	cuset_remove(&request.avail, &search->offered[p->gpu]);
	cuset_remove(&request.avail, &search->left[p->gpu]);
	if (!find_base(search, p, &request.avail, &request.avail, &base)) {
		if (!find_later_base(search, lease, p, &request.avail, &room, &base))
			return false;
		request.avail = room;
		*later = true;
	}
	request.base = &base;
	place_around(&gpu->info.geometry, &request, &cus);
	*p->adaptation = (struct adaptation){ .base = base, .moved_from = p->adaptation->base };
	partition_set_mask(p, &gpu->info.geometry, &cus);
	return true;
}

/* The lease after its move, with other CUs where its base is in the way. */
static int find_move(struct search *search, const struct lease *lease, struct lease **ret,
		     bool *ret_later)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	bool later = false;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < next->n_partitions; i++) {
		struct partition *p = &next->partitions[i];

		if (cuset_overlap(&search->given[p->gpu], &p->adaptation->base) &&
		    !move_partition(search, lease, p, &later))
			return -ENOSPC;
	}
	next->generation++;
	next->lend.moves++;
	next->lend.moved_usec = search->now_usec;
	*ret = TAKE_PTR(next);
	*ret_later = later;
	return 0;
}

/* The lease has these CUs after its move, or not after all. */
static void give(struct search *search, const struct lease *next, bool gives)
{
	const struct lease *lease = ledger_find(search->arbiter, next->id);

	claim(&search->without, next, gives);
	for (size_t i = 0; i < next->n_partitions; i++) {
		const struct partition *p = &next->partitions[i];

		if (!cuset_equal(&p->adaptation->base, &lease->partitions[i].adaptation->base))
			(gives ? cuset_add : cuset_remove)(&search->given[p->gpu], &p->cus);
	}
}

static void leave(struct search *search, const struct lease *lease, bool leaves)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		(leaves ? cuset_add : cuset_remove)(&search->left[p->gpu], &p->occupied);
	}
}

static void set_add(struct move_set *set, struct lease *next, bool later)
{
	set->next[set->n++] = next;
	if (later)
		return;
	set->next[set->n - 1] = set->next[set->n_first];
	set->next[set->n_first++] = next;
}

static bool move_lease(struct search *search, const struct lease *lease, struct move_set *set)
{
	struct lease *next;
	bool later;

	if (set->n == MOVES_MAX || find_move(search, lease, &next, &later) < 0)
		return false;
	give(search, next, true);
	if (!later)
		leave(search, lease, true);
	set_add(set, next, later);
	return true;
}

/* ---- leases move aside for another one ------------------------------------------------------ */

/* The CUs of the leases from search->movable[from] on, which are not in the way, are offered to the
 * next lease that moves, or are not. */
static void offer(struct search *search, size_t from, bool offers)
{
	for (size_t i = from; i < search->n_movable; i++) {
		const struct lease *lease = search->movable[i];

		claim(&search->without, lease, !offers);
		for (size_t j = 0; j < lease->n_partitions; j++) {
			const struct partition *p = &lease->partitions[j];

			(offers ? cuset_add : cuset_remove)(&search->offered[p->gpu], &p->occupied);
		}
	}
}

/* Gives a lease its move, and puts first the leases that stand on its new CUs. Returns how many. */
static size_t find_aside(struct search *search, const struct lease *next, size_t from)
{
	size_t n = from;

	give(search, next, true);
	for (size_t i = from; i < search->n_movable; i++) {
		struct lease *lease = search->movable[i];

		if (!is_in_the_way(search, lease))
			continue;
		claim(&search->without, lease, false);
		search->movable[i] = search->movable[n];
		search->movable[n++] = lease;
	}
	claim(&search->without, next, true);
	return n - from;
}

/* Moves the n leases, all at once. Returns how many find room. */
static size_t move_at_once(struct search *search, struct lease **leases, size_t n,
			   struct lease **moved)
{
	bool later = false;
	size_t i;

	for (i = 0; i < n && find_move(search, leases[i], &moved[i], &later) >= 0; i++) {
		if (later) {
			lease_free(moved[i]);
			break;
		}
		give(search, moved[i], true);
		leave(search, leases[i], true);
	}
	return i;
}

static void undo(struct search *search, struct lease **leases, size_t n, struct lease **moved)
{
	for (size_t i = 0; i < n; i++) {
		give(search, moved[i], false);
		leave(search, leases[i], false);
		lease_free(moved[i]);
	}
}

/* These leases are not offered any more. */
static void withdraw(struct search *search, struct lease **leases, size_t n)
{
	while (n-- > 0)
		leases[n] = search->movable[--search->n_movable];
}

/* Moves the leases that stand on the new CUs of `next`. If one of them finds no room, none moves, and
 * this one is not offered any more. */
static bool clear_way(struct search *search, const struct lease *next, size_t from,
		      struct move_set *set)
{
	struct lease **aside = search->movable + from, *moved[MOVES_MAX];
	size_t n = find_aside(search, next, from), done = 0;

	if (set->n + n < MOVES_MAX)
		done = move_at_once(search, aside, n, moved);
	if (n > 0 && done == n) {
		for (size_t i = 0; i < n; i++)
			set_add(set, moved[i], false);
		withdraw(search, aside, n);
		return true;
	}
	undo(search, aside, done, moved);
	give(search, next, false);
	for (size_t i = 0; i < n; i++)
		claim(&search->without, aside[i], true);
	withdraw(search, aside + done, n > 0 ? 1 : search->n_movable - from);
	return false;
}

/* Moves the lease to the place where the fewest CUs of others are, after these have moved. */
static bool move_aside(struct search *search, const struct lease *lease, size_t from,
		       struct move_set *set)
{
	struct lease *next;
	bool later;

	while (search->n_movable > from) {
		int r;

		offer(search, from, true);
		r = find_move(search, lease, &next, &later);
		offer(search, from, false);
		if (r < 0)
			return false;
		if (clear_way(search, next, from, set)) {
			set_add(set, next, true);
			return true;
		}
		lease_free(next);
	}
	return false;
}

/* ---- the search --------------------------------------------------------------------------- */

/* Large bases first: they need the most room. */
static int by_base(const void *left, const void *right)
{
	struct lease *const *a = left, *const *b = right;
	unsigned x = cuset_count(&(*a)->partitions[0].adaptation->base);
	unsigned y = cuset_count(&(*b)->partitions[0].adaptation->base);

	if (x != y)
		return x > y ? -1 : 1;
	return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

/* Puts the leases that are in the way first, and returns how many; the others stay where they are. */
static size_t find_in_the_way(struct search *search)
{
	size_t n = 0;

	for (size_t i = 0; i < search->n_movable; i++) {
		struct lease *lease = search->movable[i];

		if (is_in_the_way(search, lease)) {
			search->movable[i] = search->movable[n];
			search->movable[n++] = lease;
		} else {
			claim(&search->without, lease, true);
		}
	}
	qsort(search->movable, n, sizeof(*search->movable), by_base);
	return n;
}

/* ---- leases that return what they borrow ---------------------------------------------------- */

static bool set_has(const struct move_set *set, const struct lease *lease)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->next[i]->id == lease->id)
			return true;
	return false;
}

/* CUs of those that stay in their places: others may move there when they have shrunk. */
static void find_lent(struct search *search, size_t n_in_the_way)
{
	for (size_t i = 0; i < search->n_all; i++) {
		const struct lease *lease = search->all[i];
		size_t at = 0;

		while (at < n_in_the_way && search->movable[at] != lease)
			at++;
		for (size_t j = 0; at == n_in_the_way && j < lease->n_partitions; j++)
			cuset_add(&search->lent[lease->partitions[j].gpu],
				  &lease->partitions[j].cus);
	}
}

/* The lease without CUs that others move to later. 0: it has none. */
static int shrink_for(const struct search *search, const struct lease *lease,
		      const struct move_set *set, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	bool shrinks = false;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < next->n_partitions; i++) {
		struct partition *p = &next->partitions[i];
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
	for (size_t i = 0; set->n_first < set->n && i < search->n_all; i++) {
		struct lease *next;
		int r = set_has(set, search->all[i])
				? 0
				: shrink_for(search, search->all[i], set, &next);

		if (r > 0 && set->n == MOVES_MAX)
			lease_free(next);
		if (r < 0 || (r > 0 && set->n == MOVES_MAX))
			return false;
		if (r > 0)
			set_add(set, next, false);
	}
	return true;
}

static bool search_moves(struct search *search, struct move_set *set)
{
	size_t n;

	if (!place_asked(search))
		return false;
	n = find_in_the_way(search);
	find_lent(search, n);
	for (size_t i = 0; i < n; i++) {
		const struct lease *lease = search->movable[i];

		if (move_lease(search, lease, set) ||
		    (search->aside && move_aside(search, lease, n, set)))
			continue;
		search->stuck[search->n_stuck++] = lease->id;
		return false;
	}
	return n > 0 && add_shrinking(search, set);
}

/* Moves leases of search->gpus. A lease that finds no room stays where it is in the next try, so
 * that the request is placed elsewhere. */
static bool try_moves(struct search *search, struct move_set *set)
{
	size_t before;
	bool found;

	search->n_stuck = 0;
	do {
		before = search->n_stuck;
		if (!take_steps(search, gang_walk_steps(search->arbiter)))
			return false;
		find_movable(search);
		if (search->n_movable == 0)
			return false;
		found = search_moves(search, set);
		if (!found)
			move_set_done(set);
	} while (!found && search->n_stuck > before && search->n_stuck < MOVES_MAX);
	return found;
}

/* On one GPU; then, for several wants, on several at once. */
static bool try_gpus(struct search *search, uint64_t gpus, struct move_set *set)
{
	size_t n = search->arbiter->n_gpus;
	bool found = false;

	for (size_t i = 0; i < (n > 1 && !search->single ? n + 1 : n) && !found; i++) {
		search->gpus = i < n ? gpus & UINT64_C(1) << i : gpus;
		found = search->gpus && try_moves(search, set);
	}
	return found;
}

static bool search_all(struct search *search, struct move_set *ret)
{
	uint64_t gpus = find_all(search);
	bool found = false;

	if (!gpus || ledger_copy(search->arbiter, &search->without) < 0)
		return false;
	for (unsigned i = 0; i < 2 && !found; i++) {
		search->aside = i > 0;
		found = try_gpus(search, gpus, ret);
	}
	ledger_copy_done(&search->without);
	return found;
}

/* ---- the second step ------------------------------------------------------------------------ */

/* The lease when its holder has acknowledged the move. */
static int find_followed(const struct lease *moved, struct lease **ret)
{
	int r = lease_next_version(moved, moved->n_partitions, ret);

	if (r < 0)
		return r;
	(*ret)->acknowledged = (*ret)->generation;
	for (size_t i = 0; i < moved->n_partitions; i++)
		(*ret)->partitions[i].occupied = (*ret)->partitions[i].cus;
	return 0;
}

/* Would the search for the second step find moves, too? It knows nothing of this one, and places the
 * request anew. */
static bool may_go_on(const struct search *search, const struct move_set *set)
{
	struct lease *followed[MOVES_MAX];
	struct move_set second = { 0 };
	struct arbiter after;
	bool found = false;
	size_t n = 0;

	while (n < set->n_first && find_followed(set->next[n], &followed[n]) >= 0)
		n++;
	if (n == set->n_first && borrow_copy_with(search->arbiter, followed, n, &after) >= 0) {
		found = move_find(&after, search->asker, search->now_usec, search->steps, &second) >
			0;
		move_set_done(&second);
		ledger_copy_done(&after);
	}
	while (n > 0)
		lease_free(followed[--n]);
	return found;
}

int move_find(const struct arbiter *arbiter, const struct asker *asker, uint64_t now_usec,
	      unsigned max_steps, struct move_set *ret)
{
	_cleanup_(freep) struct lease **all = NULL, **movable = NULL;
	_cleanup_(freep) struct search *search = NULL;
	bool found;

	*ret = (struct move_set){ 0 };
	all = calloc(arbiter->n_leases + 1, sizeof(*all));
	movable = calloc(arbiter->n_leases + 1, sizeof(*movable));
	search = calloc(1, sizeof(*search));
	if (!all || !movable || !search)
		return 0;
	*search = (struct search){ .arbiter = arbiter,
				   .asker = asker,
				   .now_usec = now_usec,
				   .all = all,
				   .movable = movable,
				   .single = asker->request->n_wants == 1,
				   .place_steps = gang_steps(arbiter, asker->request),
				   .lease_steps = gang_lease_steps(arbiter),
				   .steps = max_steps };
	found = search_all(search, ret) && (ret->n_first == ret->n || may_go_on(search, ret));
	if (!found)
		move_set_done(ret);
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
	if (!lease || lease->adaptable ||
	    move_find(arbiter, &asker, now_usec, MOVE_STEPS, ret) == 0)
		return 0;
	if (ret->n_first == ret->n)
		return 1;
	move_set_done(ret); /* a resize does not wait for a second step */
	return 0;
}
