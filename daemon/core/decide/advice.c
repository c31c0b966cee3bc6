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

/* The cost of ending a set of leases; compared member by member, in their order. */
struct cost {
	unsigned n, standing, realtime, guaranteed, cus; /* standing: not revoked yet */
};

struct candidate {
	struct lease *lease;
	struct cost cost; /* of ending it alone */
};

struct search {
	const struct arbiter *arbiter;
	const struct advice_question *question;
	const struct tenant *tenant; /* of the request */
	struct request request;
	struct arbiter without; /* the ledger without the set that is being tried */

	/* Leases whose end may help on the GPUs that are being searched, the most expensive last. */
	struct candidate *candidates;
	size_t n_candidates;

	unsigned attempt, steps; /* the steps of one attempt, and those that are left */
	bool cut;                /* too few were left */

	bool some_helps;       /* the end of all candidates of a GPU makes room */
	struct cost best_cost; /* n 0: none is known */
	struct advice best;
};

static enum result_kind plan(const struct search *search)
{
	struct asker asker = search->question->asker;
	struct partition partitions[REQUEST_WANTS];
	_cleanup_(result_done) struct result result = { 0 };

	asker.request = &search->request;
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

static struct cost cost_of(struct lease *const *leases, size_t n)
{
	struct cost cost = { .n = (unsigned)n };

	for (size_t i = 0; i < n; i++) {
		cost.standing += leases[i]->state != STATE_REVOKING;
		cost.realtime += leases[i]->class == CLASS_REALTIME;
		cost.guaranteed += leases[i]->class == CLASS_GUARANTEED;
		for (size_t j = 0; j < leases[i]->n_partitions; j++)
			cost.cus += leases[i]->partitions[j].count;
	}
	return cost;
}

static int compare(const struct cost *a, const struct cost *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	if (a->standing != b->standing)
		return a->standing < b->standing ? -1 : 1;
	if (a->realtime != b->realtime)
		return a->realtime < b->realtime ? -1 : 1;
	if (a->guaranteed != b->guaranteed)
		return a->guaranteed < b->guaranteed ? -1 : 1;
	return (a->cus > b->cus) - (a->cus < b->cus);
}

static int by_cost(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int r = compare(&x->cost, &y->cost);

	return r ? r : (x->lease->id > y->lease->id) - (x->lease->id < y->lease->id);
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The set is worth knowing if it fits. */
static bool is_cheaper(const struct search *search, struct lease *const *set, size_t n)
{
	uint64_t ids[ADVICE_MAX];
	struct cost cost = cost_of(set, n);
	int r;

	if (search->best_cost.n == 0)
		return true;
	r = compare(&cost, &search->best_cost);
	if (r != 0)
		return r < 0;
	for (size_t i = 0; i < n; i++)
		ids[i] = set[i]->id;
	qsort(ids, n, sizeof(ids[0]), by_id);
	for (size_t i = 0; i < n; i++)
		if (ids[i] != search->best.ids[i])
			return ids[i] < search->best.ids[i];
	return false;
}

static void keep_best(struct search *search, struct lease *const *set, size_t n)
{
	search->best_cost = cost_of(set, n);
	search->best.n = n;
	for (size_t i = 0; i < n; i++)
		search->best.ids[i] = set[i]->id;
	qsort(search->best.ids, n, sizeof(search->best.ids[0]), by_id);
}

/* ---- the search --------------------------------------------------------------------------- */

/* Leaves all candidates out and puts back, the most expensive first, each that is not in the way: a
 * set of which every member is needed. */
static void find_some(struct search *search)
{
	struct lease *needed[ADVICE_MAX];
	size_t i = search->n_candidates, n = 0;
	bool small = true, any;

	if (!take_steps(search, search->n_candidates))
		return;
	/* Once all have gone, there are the fewest leases to count shared CUs of. */
	for (size_t c = 0; c < search->n_candidates; c++)
		ledger_take_out(&search->without, search->candidates[c].lease);
	for (size_t c = 0; c < search->n_candidates; c++)
		ledger_recount_shared(&search->without, search->candidates[c].lease);
	any = fits(search);
	while (i > 0) {
		struct lease *lease = search->candidates[--i].lease;

		ledger_put_back(&search->without, lease);
		if (!any || !small || fits(search))
			continue;
		small = n < search->question->most;
		if (!small)
			continue;
		needed[n++] = lease;
		ledger_leave_out(&search->without, lease);
	}
	for (i = 0; i < n; i++)
		ledger_put_back(&search->without, needed[i]);
	if (any && small && !search->cut && is_cheaper(search, needed, n))
		keep_best(search, needed, n);
	search->some_helps |= any;
}

/* The cheapest lease whose end alone makes room. Candidates are ordered by cost. */
static bool find_single(struct search *search)
{
	for (size_t i = 0; i < search->n_candidates; i++) {
		struct lease *lease = search->candidates[i].lease;
		bool enough;

		if (search->cut || !is_cheaper(search, &lease, 1))
			return true;
		ledger_leave_out(&search->without, lease);
		enough = fits(search);
		ledger_put_back(&search->without, lease);
		if (enough) {
			keep_best(search, &lease, 1);
			return true;
		}
	}
	return false;
}

static void search_candidates(struct search *search)
{
	if (!take_steps(search, search->n_candidates / 4))
		return;
	qsort(search->candidates, search->n_candidates, sizeof(*search->candidates), by_cost);
	if (search->n_candidates > 0 && !find_single(search))
		find_some(search);
}

/* ---- which leases to examine -------------------------------------------------------------- */

/* May it be revoked for the request? Only leases of lower classes, where their tenant allows it, and
 * which are not revoked for another lease already. */
static bool is_revocable(const struct search *search, const struct lease *lease)
{
	const struct tenant *tenant;

	if (lease->class >= search->question->class || lease->revoked_for)
		return false;
	tenant = tenant_named(search->arbiter->settings, lease->tenant);
	return tenant && (tenant->preempt || search->question->any_policy);
}

/* The caller's own, where quotas count over all GPUs. */
static bool counts_for_quota(const struct search *search, const struct lease *lease)
{
	const struct tenant *tenant = search->tenant;

	if (search->question->revocable || lease->owner != search->question->asker.caller->uid ||
	    strcmp(lease->tenant, tenant->name) != 0)
		return false;
	return tenant->max_leases.kind != LIMIT_NONE || tenant->max_gpus.kind != LIMIT_NONE;
}

static void find_candidates(struct search *search, uint64_t gpus)
{
	search->n_candidates = 0;
	for (size_t i = 0; i < search->arbiter->n_leases; i++) {
		struct lease *lease = search->arbiter->leases[i];
		bool there = counts_for_quota(search, lease);

		for (size_t j = 0; j < lease->n_partitions; j++)
			there |= gpus >> lease->partitions[j].gpu & 1;
		if (there && lease->state != STATE_ENDING && lease->state != STATE_WAITING &&
		    (!search->question->revocable || is_revocable(search, lease)))
			search->candidates[search->n_candidates++] =
				(struct candidate){ lease, cost_of(&lease, 1) };
	}
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

/* Whether the end of leases can make room for what was refused. */
static bool end_may_help(const struct search *search, enum result_kind kind)
{
	return kind == RESULT_NO_CAPACITY ||
	       (kind == RESULT_QUOTA_EXCEEDED && !search->question->revocable);
}

static int search_all(struct search *search)
{
	enum result_kind kind;
	int r;

	if (!take_steps(search, search->attempt))
		return 0;
	kind = plan(search);
	if (!end_may_help(search, kind))
		return kind == RESULT_NO_MEMORY ? -ENOMEM : 0;
	r = ledger_copy(search->arbiter, &search->without);
	if (r < 0)
		return r;
	if (search->request.n_wants == 1)
		search_each_gpu(search);
	else
		search_candidates(search);
	ledger_copy_done(&search->without);
	return 0;
}

/* Without leases to try, nothing is planned. */
static int search_start(struct search *search)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct advice_question *question = search->question;

	if (search->arbiter->n_leases == 0 ||
	    (question->asker.caller &&
	     tenant_find(search->arbiter->settings, question->asker.caller, search->request.tenant,
			 &search->tenant, &result) < 0))
		return 0;
	search->candidates = calloc(search->arbiter->n_leases, sizeof(*search->candidates));
	if (!search->candidates)
		return -ENOMEM;
	find_candidates(search, UINT64_MAX);
	return search->n_candidates > 0 ? search_all(search) : 0;
}

int advice_find(const struct arbiter *arbiter, const struct advice_question *question,
		struct advice *ret)
{
	struct search search = { .arbiter = arbiter, .question = question, .without = *arbiter };
	const unsigned steps = question->revocable && !question->any_policy ? STEPS_TO_REVOKE
									    : STEPS;
	int r;

	request_recall(question->asker.request, &search.request);
	search.attempt = gang_steps(arbiter, &search.request);
	search.steps = steps;
	r = search_start(&search);
	free(search.candidates);
	/* One lease is the cheapest set, and none is exact where nothing helps. */
	search.best.cut = search.cut;
	search.best.steps = steps - search.steps;
	search.best.exact = !search.cut &&
			    (search.best.n == 1 || (search.best.n == 0 && !search.some_helps));
	if (r == 0)
		*ret = search.best;
	return r;
}

int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret)
{
	const struct advice_question question = { .asker = { .caller = caller, .request = request },
						  .most = ADVICE_LEASES };

	return advice_find(arbiter, &question, ret);
}
