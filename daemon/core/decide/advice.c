/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/advice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/policy/request.h"

/*
 * Of one search: decide/admit.h. Leases that policy allows to revoke are searched for longer, because a
 * request depends on them, and not only what its refusal tells.
 */
#define STEPS 384U
#define STEPS_TO_REVOKE 896U

struct candidate {
	struct lease *lease;
	uint64_t cost; /* of ending it: cost_of() */
	bool ends;     /* is one of the set */
	bool stays;    /* is not in the way if another candidate ends */
};

struct search {
	const struct arbiter *arbiter;
	const struct lease *lease;
	enum advice_of of;
	struct request request;
	struct arbiter without; /* the ledger without the set that is being tried */

	/* Leases whose end may help on the GPUs that are being searched, the most expensive last. */
	struct candidate *candidates;
	size_t n_candidates;
	size_t most; /* leases of a set */

	unsigned attempt, steps; /* the steps of one attempt, and those that are left */
	bool cut;                /* too few were left */

	bool some_helps;    /* the end of all candidates of a GPU makes room */
	uint64_t best_cost; /* UINT64_MAX: none is known */
	struct advice best;
};

static enum result_kind plan(const struct search *search)
{
	const struct asker asker = { search->lease, &search->request };
	struct partition partitions[REQUEST_WANTS];
	_cleanup_(result_done) struct result result = { 0 };

	plan_asked(&search->without, &asker, partitions, &result);
	return result.kind;
}

static bool take_steps(struct search *search, size_t steps)
{
	search->cut |= search->steps < steps;
	if (!search->cut)
		search->steps -= (unsigned)steps;
	return !search->cut;
}

static bool fits(struct search *search)
{
	return take_steps(search, search->attempt) && plan(search) == RESULT_OK;
}

/* ---- what is cheaper ---------------------------------------------------------------------- */

/* Of ADVICE_MAX leases, added up: the number of leases first, then of those that are not revoked yet, of
 * realtime ones, and of guaranteed ones; then CUs. Where they are revoked for a request, guaranteed ones count first. */
#define COST_BITS 9U
#define COST_CUS_BITS 25U
_Static_assert(ADVICE_MAX < 1U << COST_BITS, "a sum stays within its bits");

static uint64_t cost_of(const struct search *search, const struct lease *lease)
{
	const bool kept = lease->state != STATE_REVOKING;
	const bool guaranteed = lease->class == CLASS_GUARANTEED;
	const bool advised[] = { true, kept, lease->class == CLASS_REALTIME, guaranteed };
	const bool revoked[] = { guaranteed && kept, true, kept, false };
	const bool *counts = search->of == ADVICE_ANY ? advised : revoked;
	uint64_t cost = 0, cus = 0;

	for (size_t i = 0; i < ARRAY_SIZE(advised); i++)
		cost = cost << COST_BITS | counts[i];
	FOR_EACH_PARTITION(p, lease)
		cus += p->count;
	return (cost << COST_CUS_BITS) + cus;
}

static int by_cost(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return (x->lease->id > y->lease->id) - (x->lease->id < y->lease->id);
}

DEFINE_ORDER(by_id, uint64_t, )

/* A set of this cost, with this lowest id, is worth knowing if it fits. */
static bool is_cheaper(const struct search *search, uint64_t cost, uint64_t id)
{
	return cost < search->best_cost || (cost == search->best_cost && id < search->best.ids[0]);
}

/* ---- the search --------------------------------------------------------------------------- */

/* Leaves all candidates out and puts back, the most expensive first, each that is not in the way. The others are a set
 * of which every member is needed. Returns its size; 0: there is none. */
static size_t find_needed(struct search *search)
{
	bool fitted;
	size_t n = 0;

	/* Once all have gone, there are the fewest leases to count shared CUs of. */
	for (size_t c = 0; c < search->n_candidates; c++)
		ledger_take_out(&search->without, search->candidates[c].lease);
	for (size_t c = 0; c < search->n_candidates; c++)
		ledger_recount_shared(&search->without, search->candidates[c].lease);
	fitted = fits(search);
	search->some_helps |= fitted;
	for (size_t i = search->n_candidates; i-- > 0;) {
		struct candidate *candidate = &search->candidates[i];

		ledger_put_back(&search->without, candidate->lease);
		if (!fitted || fits(search))
			continue;
		fitted = n < search->most;
		if (!fitted)
			continue;
		candidate->ends = true;
		n++;
		ledger_leave_out(&search->without, candidate->lease);
	}
	return fitted && !search->cut ? n : 0;
}

static uint64_t cost_of_set(const struct search *search)
{
	uint64_t cost = 0;

	for (size_t i = 0; i < search->n_candidates; i++)
		cost += search->candidates[i].ends ? search->candidates[i].cost : 0;
	return cost;
}

/* Puts this one into the set, and takes out all members that are not in the way then, the cheapest first; if that is a
 * cheaper set. */
static void exchange(struct search *search, struct candidate *in)
{
	uint64_t cost = in->cost;
	bool cheaper;

	ledger_leave_out(&search->without, in->lease);
	for (size_t i = 0; i < search->n_candidates; i++) {
		struct candidate *member = &search->candidates[i];

		if (!member->ends)
			continue;
		ledger_put_back(&search->without, member->lease);
		member->stays = fits(search);
		if (member->stays)
			continue;
		cost += member->cost;
		ledger_leave_out(&search->without, member->lease);
	}
	cheaper = cost < cost_of_set(search);
	for (size_t i = 0; i < search->n_candidates; i++) {
		struct candidate *member = &search->candidates[i];

		if (!member->ends || !member->stays)
			continue;
		member->ends = !cheaper;
		if (!cheaper)
			ledger_leave_out(&search->without, member->lease);
	}
	in->ends = cheaper;
	if (!cheaper)
		ledger_put_back(&search->without, in->lease);
}

/* The set of find_needed() need not be the cheapest: it spares one expensive lease, and may then need several others, on this
 * GPU or on others. Nor is the exchanged set always: in the random test of test-advice, two of 1,000 are not. */
static void improve(struct search *search, size_t n)
{
	for (size_t i = 0; i < search->n_candidates && n > 1; i++)
		if (!search->candidates[i].ends && search->steps >= (n + 1) * search->attempt)
			exchange(search, &search->candidates[i]);
}

static void find_some(struct search *search)
{
	struct advice found = { .n = 0 };
	size_t n;

	if (!take_steps(search, search->n_candidates))
		return;
	n = find_needed(search);
	improve(search, n);
	for (size_t i = 0; i < search->n_candidates; i++) {
		if (!search->candidates[i].ends)
			continue;
		ledger_put_back(&search->without, search->candidates[i].lease);
		found.ids[found.n++] = search->candidates[i].lease->id;
	}
	qsort(found.ids, found.n, sizeof(found.ids[0]), by_id);
	if (n == 0 || !is_cheaper(search, cost_of_set(search), found.ids[0]))
		return;
	search->best_cost = cost_of_set(search);
	search->best = found;
}

/* The cheapest lease whose end alone makes room. Candidates are ordered by cost. */
static void find_single(struct search *search)
{
	for (size_t i = 0; i < search->n_candidates; i++) {
		const struct candidate *candidate = &search->candidates[i];
		bool enough;

		if (search->cut || !is_cheaper(search, candidate->cost, candidate->lease->id))
			return;
		ledger_leave_out(&search->without, candidate->lease);
		enough = fits(search);
		ledger_put_back(&search->without, candidate->lease);
		if (!enough)
			continue;
		search->best_cost = candidate->cost;
		search->best = (struct advice){ .ids = { candidate->lease->id }, .n = 1 };
		return;
	}
}

static void search_candidates(struct search *search)
{
	const struct candidate *candidates = search->candidates;

	if (!take_steps(search, search->n_candidates / 4))
		return;
	qsort(search->candidates, search->n_candidates, sizeof(*search->candidates), by_cost);
	find_single(search);
	if (search->n_candidates > 1 && !search->cut &&
	    search->best_cost > candidates[0].cost + candidates[1].cost)
		find_some(search);
}

/* ---- which leases to examine -------------------------------------------------------------- */

/* May it be revoked for the request? Only leases of lower classes, where their tenant allows it, and
 * which are not revoked for another lease already. */
static bool is_revocable(const struct search *search, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(search->arbiter->settings, lease->tenant);

	return lease->class < search->lease->class && !lease->revoked_for && tenant &&
	       (tenant->preempt || search->of == ADVICE_IF_POLICY);
}

/* The caller's own, where quotas count over all GPUs. */
static bool counts_for_quota(const struct search *search, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(search->arbiter->settings, lease->tenant);

	return lease_same_account(lease, search->lease) && tenant &&
	       (tenant->max_leases.kind != LIMIT_NONE || tenant->max_gpus.kind != LIMIT_NONE);
}

static bool is_candidate(const struct search *search, const struct lease *lease, uint64_t gpus)
{
	bool there = lease_gpus(lease) & gpus;

	if (lease->state == STATE_ENDING || lease->state == STATE_WAITING)
		return false;
	return search->of == ADVICE_ANY ? there || counts_for_quota(search, lease)
					: there && is_revocable(search, lease);
}

static void find_candidates(struct search *search, uint64_t gpus)
{
	search->n_candidates = 0;
	FOR_EACH_LEASE(lease, search->arbiter)
		if (is_candidate(search, lease, gpus))
			search->candidates[search->n_candidates++] = (struct candidate){
				.lease = lease, .cost = cost_of(search, lease)
			};
}

/* One want needs room on one GPU: what is elsewhere is not in its way. */
static void search_each_gpu(struct search *search)
{
	char *name = search->request.wants[0].gpu, missing[GPU_NAME_MAX];
	uint64_t wanted;

	if (ledger_wanted(search->arbiter, name, &wanted, missing) < 0)
		return;

	for (size_t g = 0; g < search->arbiter->n_gpus && !search->cut; g++) {
		const struct gpu *gpu = &search->arbiter->gpus[g];

		if (!(wanted >> g & 1))
			continue;
		if (!take_steps(search, gang_walk_steps(search->arbiter)))
			return;
		memcpy(name, gpu->info.name, sizeof(gpu->info.name));
		find_candidates(search, UINT64_C(1) << g);
		search_candidates(search);
	}
}

bool advice_is_leaving(const struct lease *lease)
{
	return lease->state == STATE_ENDING && lease->n_partitions > 0;
}

/* Leaves the leases that are leaving out of the ledger, or puts them back. Returns how many there are. */
static size_t move_leaving(struct search *search, bool out)
{
	size_t n = 0;

	if (search->of == ADVICE_ANY)
		return 0;
	FOR_EACH_LEASE(lease, search->arbiter) {
		if (!advice_is_leaving(lease))
			continue;
		if (out)
			ledger_leave_out(&search->without, lease);
		else
			ledger_put_back(&search->without, lease);
		n++;
	}
	return n;
}

/* Whether the end of leases can make room for what was refused. */
static bool end_may_help(const struct search *search, enum result_kind kind)
{
	return kind == RESULT_NO_CAPACITY ||
	       (kind == RESULT_QUOTA_EXCEEDED && search->of == ADVICE_ANY);
}

/* Leases that are leaving are not revoked, and not in the way. Where they leave enough room, the request
 * waits for them only if another lease would be revoked for it otherwise. 1: there are such leases. */
static int search_all(struct search *search)
{
	enum result_kind kind;
	bool enough;

	if (!take_steps(search, search->attempt))
		return 0;
	if (ledger_copy(search->arbiter, &search->without) < 0)
		return -ENOMEM;
	enough = move_leaving(search, true) > 0 && fits(search);
	if (enough)
		move_leaving(search, false);
	kind = plan(search);
	if (end_may_help(search, kind) && search->request.n_wants == 1)
		search_each_gpu(search);
	else if (end_may_help(search, kind))
		search_candidates(search);
	ledger_copy_done(&search->without);
	if (kind == RESULT_NO_MEMORY)
		return -ENOMEM;
	if (search->best.n == 0)
		return 0;
	search->best.n = enough ? 0 : search->best.n;
	return 1;
}

/* Without leases to try, nothing is planned. */
static int search_start(struct search *search)
{
	search->candidates = calloc(search->arbiter->n_leases + 1, sizeof(*search->candidates));
	if (!search->candidates)
		return -ENOMEM;
	find_candidates(search, UINT64_MAX);
	return search->n_candidates > 0 ? search_all(search) : 0;
}

int advice_find(const struct arbiter *arbiter, const struct lease *lease, enum advice_of of,
		struct advice *ret)
{
	const unsigned steps = of == ADVICE_REVOCABLE ? STEPS_TO_REVOKE : STEPS;
	struct search search = { .arbiter = arbiter,
				 .lease = lease,
				 .of = of,
				 .most = of == ADVICE_REVOCABLE ? ADVICE_MAX : ADVICE_LEASES,
				 .steps = steps,
				 .best_cost = UINT64_MAX };
	int r;

	request_recall(lease->request, &search.request);
	search.attempt = gang_steps(arbiter, &search.request, search.request.n_wants == 1);
	r = search_start(&search);
	free(search.candidates);
	/* One lease is the cheapest set, and none is exact where nothing helps. */
	search.best.cut = search.cut;
	search.best.steps = steps - search.steps;
	search.best.exact = !search.cut &&
			    (search.best.n == 1 || (search.best.n == 0 && !search.some_helps));
	if (r >= 0)
		*ret = search.best;
	return r;
}

int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret)
{
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;
	int r = plan_lease(arbiter, caller, request, &lease, &result);

	*ret = (struct advice){ .exact = true };
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = advice_find(arbiter, lease, ADVICE_ANY, ret);
	return r < 0 ? r : 0;
}
