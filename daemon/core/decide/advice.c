/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/advice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/plan.h"
#include "core/policy/tenant.h"

/* The cost of ending a set of leases; compared member by member, in their order. */
struct cost {
	unsigned n, realtime, guaranteed, cus;
};

struct search {
	const struct arbiter *arbiter;
	const struct caller *caller;
	struct request request;
	struct arbiter without; /* the ledger without the set that is being tried */
	unsigned tries;         /* left */

	/* Leases whose end may help on the GPUs that are being searched, the most expensive last. */
	struct lease **candidates;
	size_t n_candidates;

	struct lease *set[ADVICE_LEASES]; /* that is tried */
	size_t n_set;
	struct cost best_cost; /* n 0: none is known */
	struct advice best;
};

/* ---- a ledger without some leases ------------------------------------------------------- */

static int without_init(struct arbiter *without, const struct arbiter *arbiter)
{
	*without = *arbiter;
	without->gpus = calloc(arbiter->n_gpus, sizeof(*without->gpus));
	without->leases = calloc(arbiter->n_leases, sizeof(struct lease *));
	if (!without->gpus || !without->leases)
		return -ENOMEM;
	memcpy(without->gpus, arbiter->gpus, arbiter->n_gpus * sizeof(*without->gpus));
	memcpy(without->leases, arbiter->leases, arbiter->n_leases * sizeof(struct lease *));
	return 0;
}

static void take_out(struct arbiter *without, struct lease *lease)
{
	size_t at = ledger_position(without, lease->id);

	without->n_leases--;
	memmove(&without->leases[at], &without->leases[at + 1],
		(without->n_leases - at) * sizeof(struct lease *));
	ledger_discharge(without, lease);
}

static void leave_out(struct arbiter *without, struct lease *lease)
{
	take_out(without, lease);
	ledger_recount_shared(without, lease);
}

/* To count what is still shared takes as long as there are leases left: once they have gone. */
static void leave_all_out(struct arbiter *without, struct lease *const *leases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		take_out(without, leases[i]);
	for (size_t i = 0; i < n; i++)
		ledger_recount_shared(without, leases[i]);
}

static void put_back(struct arbiter *without, struct lease *lease)
{
	size_t at = ledger_position(without, lease->id);

	memmove(&without->leases[at + 1], &without->leases[at],
		(without->n_leases - at) * sizeof(struct lease *));
	without->leases[at] = lease;
	without->n_leases++;
	ledger_charge(without, lease);
}

static enum result_kind plan(const struct search *search)
{
	struct result result = { 0 };
	struct lease *lease = NULL;
	enum result_kind kind;

	arbiter_plan(&search->without, search->caller, &search->request, &lease, &result);
	kind = result.kind;
	lease_free(lease);
	result_done(&result);
	return kind;
}

static bool fits(const struct search *search)
{
	return plan(search) == RESULT_OK;
}

/* ---- what is cheaper ---------------------------------------------------------------------- */

static struct cost cost_of(struct lease *const *leases, size_t n)
{
	struct cost cost = { .n = (unsigned)n };

	for (size_t i = 0; i < n; i++) {
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
	if (a->realtime != b->realtime)
		return a->realtime < b->realtime ? -1 : 1;
	if (a->guaranteed != b->guaranteed)
		return a->guaranteed < b->guaranteed ? -1 : 1;
	return (a->cus > b->cus) - (a->cus < b->cus);
}

static int by_cost(const void *a, const void *b)
{
	struct lease *const *x = a, *const *y = b;
	struct cost of_x = cost_of(x, 1), of_y = cost_of(y, 1);
	int r = compare(&of_x, &of_y);

	return r ? r : ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The set is worth knowing if it fits. */
static bool is_cheaper(const struct search *search, struct lease *const *set, size_t n)
{
	uint64_t ids[ADVICE_LEASES];
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

/* Some set that fits and has nothing that is not needed: the dearest are kept first. False
 * if not even the end of all candidates helps. */
static bool find_some(struct search *search)
{
	struct lease *needed[ADVICE_LEASES];
	size_t i = search->n_candidates, n = 0;
	bool small = true, any;

	leave_all_out(&search->without, search->candidates, search->n_candidates);
	any = fits(search);
	while (i > 0) {
		struct lease *lease = search->candidates[--i];

		put_back(&search->without, lease);
		if (!any || !small || fits(search))
			continue;
		small = n < ADVICE_LEASES;
		if (!small)
			continue;
		needed[n++] = lease;
		leave_out(&search->without, lease);
	}
	for (i = 0; i < n; i++)
		put_back(&search->without, needed[i]);
	if (any && small && is_cheaper(search, needed, n))
		keep_best(search, needed, n);
	return any;
}

/* Not even the cheapest of what follows can be better: candidates are ordered. */
static bool is_dearer(const struct search *search, size_t from, size_t more)
{
	struct lease *set[ADVICE_LEASES];
	struct cost cost;

	memcpy(set, search->set, search->n_set * sizeof(struct lease *));
	memcpy(&set[search->n_set], &search->candidates[from], more * sizeof(struct lease *));
	cost = cost_of(set, search->n_set + more);
	return search->best_cost.n > 0 && compare(&cost, &search->best_cost) > 0;
}

/* Every set of `more` candidates from `from` on, with those that are in it. False: the tries
 * have run out. */
static bool try_sets(struct search *search, size_t from, size_t more)
{
	if (more == 0) {
		if (search->tries == 0)
			return false;
		search->tries--;
		if (is_cheaper(search, search->set, search->n_set) && fits(search))
			keep_best(search, search->set, search->n_set);
		return true;
	}
	for (size_t i = from; i + more <= search->n_candidates; i++) {
		struct lease *lease = search->candidates[i];
		bool all;

		if (is_dearer(search, i, more))
			break;
		leave_out(&search->without, lease);
		search->set[search->n_set++] = lease;
		all = try_sets(search, i + 1, more - 1);
		search->n_set--;
		put_back(&search->without, lease);
		if (!all)
			return false;
	}
	return true;
}

/* The best set of these candidates, if it is better than what is known. */
static void search_candidates(struct search *search)
{
	qsort(search->candidates, search->n_candidates, sizeof(struct lease *), by_cost);
	if (search->n_candidates == 0 || !find_some(search))
		return;
	for (size_t n = 1; n <= ADVICE_LEASES; n++) {
		if (search->best_cost.n > 0 && n > search->best_cost.n)
			return;
		if (!try_sets(search, 0, n)) {
			search->best.exact = false;
			return;
		}
	}
	search->best.exact &= search->best_cost.n > 0; /* a larger set might do */
}

/* ---- where to look ------------------------------------------------------------------------ */

/* The caller's own, where quotas count over all GPUs. */
static bool counts_for_quota(const struct search *search, const struct tenant *tenant,
			     const struct lease *lease)
{
	if (lease->owner != search->caller->uid || strcmp(lease->tenant, tenant->name) != 0)
		return false;
	return tenant->max_leases.kind != LIMIT_NONE || tenant->max_gpus.kind != LIMIT_NONE;
}

static void find_candidates(struct search *search, const struct tenant *tenant, uint64_t gpus)
{
	search->n_candidates = 0;
	for (size_t i = 0; i < search->arbiter->n_leases; i++) {
		struct lease *lease = search->arbiter->leases[i];
		bool there = counts_for_quota(search, tenant, lease);

		for (size_t j = 0; j < lease->n_partitions; j++)
			there |= gpus >> lease->partitions[j].gpu & 1;
		if (there && lease->state != STATE_ENDING && lease->state != STATE_WAITING)
			search->candidates[search->n_candidates++] = lease;
	}
}

/* One want needs room on one GPU: what is elsewhere is not in its way. */
static void search_each_gpu(struct search *search, const struct tenant *tenant)
{
	char *name = search->request.wants[0].gpu;
	int named = strcmp(name, "any") == 0 ? -1 : ledger_find_gpu(search->arbiter, name);

	for (size_t g = 0; g < search->arbiter->n_gpus; g++) {
		const struct gpu *gpu = &search->arbiter->gpus[g];

		if (gpu->absent || (named >= 0 && (size_t)named != g))
			continue;
		memcpy(name, gpu->info.name, sizeof(gpu->info.name));
		find_candidates(search, tenant, UINT64_C(1) << g);
		search_candidates(search);
	}
}

static int search_all(struct search *search)
{
	struct result result = { 0 };
	const struct tenant *tenant;
	int r;

	r = tenant_find(search->arbiter->settings, search->caller, search->request.tenant, &tenant,
			&result);
	result_done(&result);
	if (r < 0)
		return 0;
	search->candidates = calloc(search->arbiter->n_leases, sizeof(struct lease *));
	if (!search->candidates)
		return -ENOMEM;
	if (search->request.n_wants == 1) {
		search_each_gpu(search, tenant);
	} else {
		find_candidates(search, tenant, UINT64_MAX);
		search_candidates(search);
	}
	return 0;
}

int arbiter_advise(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, struct advice *ret)
{
	struct search search = { .arbiter = arbiter,
				 .caller = caller,
				 .request = *request,
				 .without = *arbiter,
				 .best.exact = true };
	enum result_kind kind;
	int r = 0;

	search.tries = ADVICE_TRIES;
	if (arbiter->n_leases > ADVICE_QUICK) /* a try takes longer, too */
		search.tries = (unsigned)(ADVICE_TRIES * ADVICE_QUICK / arbiter->n_leases);
	search.request.wait_usec = 0;
	kind = plan(&search);
	if (kind == RESULT_NO_MEMORY)
		return -ENOMEM;
	if (arbiter->n_leases > 0 &&
	    (kind == RESULT_NO_CAPACITY || kind == RESULT_QUOTA_EXCEEDED)) {
		r = without_init(&search.without, arbiter);
		if (r == 0)
			r = search_all(&search);
		free(search.without.gpus);
		free(search.without.leases);
		free(search.candidates);
	}
	if (r == 0)
		*ret = search.best;
	return r;
}
