/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/task-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/arbiter.h"
#include "core/mask/place.h"
#include "core/policy/request.h"

struct fit {
	const struct gpu_info *gpu;
	const struct rt_set *set;
	const unsigned *least;
	struct cuset all;
	bool modest; /* partitions request the CUs that they need, not whole shader engines */
	/* Partitions with isolation cu request as many CUs in each of so many shader engines. 0: they
	 * request the fewest CUs. */
	unsigned spread;
};

static void result_donep(struct result *result)
{
	result_done(result);
}

/* The CUs that a mask can reach. */
static void find_all(const struct gpu_info *info, struct cuset *ret)
{
	struct gpu gpu;

	gpu_init(&gpu, info, 0);
	*ret = gpu.all;
}

/* ---- an arbiter of an empty GPU ----------------------------------------------------------- */

/* A policy in which every caller may request realtime, and alone under the first tenant. */
static int make_settings(struct settings **ret)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	struct tenant *tenants;

	if (settings_new(&settings) < 0)
		return -ENOMEM;
	tenants = reallocarray(settings->tenants, 2, sizeof(*tenants));
	if (!tenants)
		return -ENOMEM;
	settings->tenants = tenants;
	tenants[1] = tenants[0];
	settings->n_tenants = 1;
	if (tenant_init(&tenants[0], "alone") < 0) {
		tenants[0] = tenants[1];
		return -ENOMEM;
	}
	settings->n_tenants = 2;
	tenants[0].users.ids = calloc(1, sizeof(uid_t)); /* root, the caller of the requests */
	if (!tenants[0].users.ids)
		return -ENOMEM;
	tenants[0].users.n = 1;
	tenants[0].alone = true;
	for (size_t i = 0; i < 2; i++) {
		tenants[i].open = true;
		tenants[i].class = CLASS_REALTIME;
		tenants[i].priority = PRIORITY_MAX;
	}
	*ret = TAKE_PTR(settings);
	return 0;
}

static int make_arbiter(const struct gpu_info *gpu, struct arbiter **ret)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	int r = make_settings(&settings);

	if (r >= 0)
		r = arbiter_new(settings, gpu, 1, 1, ret);
	if (r >= 0)
		settings = NULL; /* the arbiter has it */
	return r;
}

static void make_request(const struct rt_set *set, size_t i, const struct rt_ask *ask,
			 struct request *ret)
{
	const struct rt_partition *partition = &set->partitions[i];
	struct want *want = &ret->wants[0];

	*ret = (struct request){ .n_wants = 1, .class = CLASS_REALTIME };
	snprintf(ret->name, sizeof(ret->name), "%s", partition->name);
	strcpy(ret->tenant, partition->alone ? "alone" : "*");
	want_init(want);
	want->cus = ask->cus;
	want->cus_min = ask->least;
	want->shader_engines = ask->engines;
	want->queues = rt_partition_queues(partition);
	want->sdma_queues = rt_set_sdma_queues(set, i);
	want->processes = partition->processes;
	want->priority = partition->priority;
	want->isolation = partition->isolation;
}

/* Requests and commits one partition. 0: granted. */
static int grant(struct arbiter *arbiter, const struct rt_set *set, size_t i,
		 const struct rt_ask *ask, struct rt_place *ret, struct result *result)
{
	const struct caller root = { 0 };
	const struct partition *part;
	struct request request;
	struct lease *lease;
	unsigned effective;
	int r;

	make_request(set, i, ask, &request);
	r = arbiter_plan(arbiter, &root, &request, &lease, result);
	if (r < 0)
		return r;
	part = &lease->partitions[0];
	/* On an uneven GPU all CUs may be granted although E is too small. */
	effective = gpu_info_promised(&arbiter->gpus[part->gpu].info, part->count, part->effective);
	if (effective < ask->least) {
		lease_free(lease);
		return -ENOSPC;
	}
	*ret = (struct rt_place){ .ask = *ask,
				  .set = part->cus,
				  .cus = part->count,
				  .effective = effective,
				  .engines = cuset_engines(&part->cus) };
	arbiter_commit(arbiter, lease);
	return 0;
}

/* ---- one order ---------------------------------------------------------------------------- */

/* The fewest CUs that are at least `least` and as many in each of so many shader engines. */
static unsigned in_rows(const struct fit *fit, unsigned engines, unsigned least)
{
	const struct geometry *geometry = &fit->gpu->geometry;
	unsigned row = geometry->xccs * engines * geometry_step(geometry);

	return (least + row - 1) / row * row;
}

/* The CUs to request of so many shader engines; 0: they have fewer than needed. */
static unsigned aim(const struct fit *fit, unsigned engines, unsigned least)
{
	unsigned whole = place_engines_aim(&fit->gpu->geometry, &fit->all, engines);

	if (whole < least)
		return 0;
	return fit->modest ? in_rows(fit, engines, least) : whole;
}

/* Tries the fewest shader engines first; with isolation cu the fewest CUs. */
static int place_one(const struct fit *fit, struct arbiter *arbiter, size_t i, struct rt_place *ret,
		     struct result *result)
{
	const struct rt_partition *partition = &fit->set->partitions[i];
	struct rt_ask ask = { .least = fit->least[i], .cus = fit->least[i] };
	int r = -ENOSPC;

	if (partition->isolation == ISOLATION_CU) {
		if (fit->spread > 0)
			ask.cus = in_rows(fit, fit->spread, ask.least);
		return grant(arbiter, fit->set, i, &ask, ret, result);
	}
	/* Keep the first refusal: it is for the smallest sufficient request. */
	for (ask.engines = 1; ask.engines <= fit->gpu->geometry.engines; ask.engines++) {
		ask.cus = aim(fit, ask.engines, ask.least);
		if (ask.cus == 0)
			continue;
		_cleanup_(result_donep) struct result later = { 0 };

		r = grant(arbiter, fit->set, i, &ask, ret,
			  result->kind == RESULT_OK ? result : &later);
		if (r >= 0 || r == -ENOMEM)
			return r;
	}
	return r;
}

static void say_why(const struct fit *fit, size_t i, const struct result *result,
		    struct rt_layout *ret)
{
	struct refusal refusal;
	char line[REFUSAL_TEXT];

	ret->lacks = REASON_SHAPE;
	if (result->n_refusals == 0) {
		snprintf(ret->why, sizeof(ret->why), "%s: no rectangle of %u effective CUs is left",
			 fit->set->partitions[i].name, fit->least[i]);
		return;
	}
	refusal = result->refusals[0];
	refusal.n_leases = 0; /* their ids mean nothing outside this plan */
	ret->lacks = refusal.reason;
	refusal_line(&refusal, NULL, line);
	snprintf(ret->why, sizeof(ret->why), "%s: %s: %s", fit->set->partitions[i].name,
		 reason_names[refusal.reason], line);
}

/* Places ret->order. */
static int try_order(const struct fit *fit, struct rt_layout *ret)
{
	_cleanup_(result_donep) struct result result = { 0 };
	_cleanup_(arbiter_freep) struct arbiter *arbiter = NULL;
	int r = make_arbiter(fit->gpu, &arbiter);

	for (size_t n = 0; r >= 0 && n < ret->n; n++) {
		size_t i = ret->order[n];

		result_done(&result);
		result = (struct result){ 0 };
		r = place_one(fit, arbiter, i, &ret->places[i], &result);
		if (r < 0 && r != -ENOMEM) {
			say_why(fit, i, &result, ret);
			return -ENOSPC;
		}
	}
	return r;
}

/* ---- orders ------------------------------------------------------------------------------- */

/* Layouts are compared by the shader engines that they use. */
static unsigned cost(const struct rt_layout *layout)
{
	unsigned engines = 0;

	for (size_t n = 0; n < layout->n; n++)
		engines += (unsigned)__builtin_popcount(layout->places[layout->order[n]].engines);
	return engines;
}

/* The next larger arrangement of ranks; false past the last. */
static bool next_arrangement(size_t *rank, size_t n)
{
	size_t i = n, j = n - 1, swap;

	do {
		if (i < 2)
			return false;
		i--;
	} while (rank[i - 1] >= rank[i]);
	while (rank[j] <= rank[i - 1])
		j--;
	swap = rank[i - 1];
	rank[i - 1] = rank[j];
	rank[j] = swap;
	for (j = n - 1; i < j; i++, j--) {
		swap = rank[i];
		rank[i] = rank[j];
		rank[j] = swap;
	}
	return true;
}

/* Largest first. Partitions with equal needs get equal ranks. */
static size_t sort_partitions(const struct fit *fit, size_t *sorted, size_t *rank)
{
	const struct rt_partition *all = fit->set->partitions;
	size_t n = 0;

	for (size_t i = 0; i < fit->set->n_partitions; i++) {
		size_t at = n;

		if (fit->least[i] == 0)
			continue;
		while (at > 0 && fit->least[sorted[at - 1]] < fit->least[i]) {
			sorted[at] = sorted[at - 1];
			at--;
		}
		sorted[at] = i;
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		const struct rt_partition *a = &all[sorted[i]], *b = &all[sorted[i ? i - 1 : 0]];
		bool same = i > 0 && fit->least[sorted[i]] == fit->least[sorted[i - 1]] &&
			    a->isolation == b->isolation && a->alone == b->alone;

		rank[i] = same ? rank[i - 1] : i;
	}
	return n;
}

static void arrange(const size_t *sorted, const size_t *rank, struct rt_layout *layout)
{
	bool taken[RT_PARTITIONS_MAX] = { 0 };

	for (size_t i = 0; i < layout->n; i++) {
		size_t at = rank[i];

		while (taken[at])
			at++;
		taken[at] = true;
		layout->order[i] = sorted[at];
	}
}

/* A lower bound of the shader engines of all partitions. */
static unsigned engines_needed(const struct fit *fit)
{
	unsigned sum = 0;
	bool others = false;

	for (size_t i = 0; i < fit->set->n_partitions; i++) {
		unsigned m = 1;

		if (fit->least[i] == 0)
			continue;
		if (fit->set->partitions[i].isolation == ISOLATION_CU) {
			others = true;
			continue;
		}
		while (m < fit->gpu->geometry.engines &&
		       place_engines_aim(&fit->gpu->geometry, &fit->all, m) < fit->least[i])
			m++;
		sum += m;
	}
	return sum + others;
}

/* Whether the partitions fit in every order. false also if there are too many orders to try. */
static bool fits_in_any_order(const struct fit *fit, const struct rt_layout *layout)
{
	size_t rank[RT_PARTITIONS_MAX];
	unsigned tried = 0;

	for (size_t i = 0; i < layout->n; i++)
		rank[i] = i;
	do {
		_cleanup_(result_donep) struct result result = { 0 };
		_cleanup_(arbiter_freep) struct arbiter *arbiter = NULL;
		struct rt_place place;

		if (++tried > RT_ORDERS_MAX || make_arbiter(fit->gpu, &arbiter) < 0)
			return false;
		for (size_t n = 0; n < layout->n; n++) {
			size_t i = layout->order[rank[n]];

			if (grant(arbiter, fit->set, i, &layout->places[i].ask, &place, &result) <
			    0)
				return false;
		}
	} while (next_arrangement(rank, layout->n));
	return true;
}

/* Improves on *best, the cost of *ret. */
static int best_order(const struct fit *fit, unsigned *best, struct rt_layout *ret)
{
	size_t sorted[RT_PARTITIONS_MAX], rank[RT_PARTITIONS_MAX];
	unsigned needed = engines_needed(fit), orders = RT_ORDERS_MAX;
	struct rt_layout layout = { 0 };
	int r;

	layout.n = sort_partitions(fit, sorted, rank);
	if (layout.n == 0)
		*best = 0;
	if (needed > fit->gpu->geometry.engines)
		orders = 1; /* one try gives the refusal */
	while (*best > needed && orders-- > 0) {
		arrange(sorted, rank, &layout);
		r = try_order(fit, &layout);
		if (r == -ENOMEM)
			return r;
		if (r >= 0 && cost(&layout) < *best) {
			*best = cost(&layout);
			*ret = layout;
		} else if (*best == UINT32_MAX && !ret->why[0]) {
			*ret = layout;
		}
		if (!next_arrangement(rank, layout.n))
			break;
	}
	return 0;
}

static bool has_isolation_cu(const struct fit *fit)
{
	for (size_t i = 0; i < fit->set->n_partitions; i++)
		if (fit->least[i] > 0 && fit->set->partitions[i].isolation == ISOLATION_CU)
			return true;
	return false;
}

int rt_fit(const struct gpu_info *gpu, const struct rt_set *set, const unsigned *least,
	   struct rt_layout *ret)
{
	struct fit fit = { .gpu = gpu, .set = set, .least = least };
	unsigned best = UINT32_MAX;
	int r;

	*ret = (struct rt_layout){ 0 };
	find_all(gpu, &fit.all);
	r = best_order(&fit, &best, ret);
	/* Second pass: requests for whole shader engines can take engines that another partition
	 * needs. */
	fit.modest = true;
	if (r >= 0)
		r = best_order(&fit, &best, ret);
	/* Further passes: several rectangles across the same shader engines fit where narrow ones do
	 * not. */
	while (r >= 0 && best == UINT32_MAX && has_isolation_cu(&fit) &&
	       fit.spread++ < gpu->geometry.engines)
		r = best_order(&fit, &best, ret);
	if (r < 0)
		return r;
	if (best == UINT32_MAX)
		return -ENOSPC;
	ret->any_order = ret->n <= 1 || fits_in_any_order(&fit, ret);
	return 0;
}

unsigned rt_fit_most(const struct gpu_info *gpu)
{
	struct cuset all;
	unsigned most = 0;

	find_all(gpu, &all);
	for (unsigned m = 1; m <= gpu->geometry.engines; m++)
		most = max_u(most, place_engines_aim(&gpu->geometry, &all, m));
	return most;
}
