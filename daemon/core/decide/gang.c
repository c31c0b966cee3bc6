/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/gang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/policy/tenant.h"

#define NOBODY (-1)

struct gang {
	const struct admit_context *admit_context; /* &own */
	struct admit_context own;
	struct share shares[REQUEST_WANTS]; /* set where a quota asks */
	const struct request *request;
	size_t n_gpus, n_present;                      /* GPUs; those that are not absent */
	uint64_t present;                              /* as bits */
	uint64_t candidates[REQUEST_WANTS];            /* GPUs that the want names, as bits */
	uint8_t outcome[REQUEST_WANTS][REQUEST_WANTS]; /* by want and GPU */
	unsigned most[REQUEST_WANTS]; /* by GPU: the best that a want would get there */
	uint64_t max_gpus;
	uint64_t held;                  /* GPUs that the user is on, if max_gpus bounds it */
	uint8_t refused[REQUEST_WANTS]; /* by GPU: an outcome; OUTCOME_FITS: not */
	struct refusal refusals[REQUEST_WANTS]; /* valid where refused */
	struct partition last;                  /* the last that fitted: of one want and GPU all */
	size_t last_want, last_gpu;
};

static uint64_t bit(size_t i)
{
	return UINT64_C(1) << i;
}

static void find_present(const struct arbiter *arbiter, struct gang *gang)
{
	gang->present = 0;
	for (size_t g = 0; g < arbiter->n_gpus; g++)
		if (!arbiter->gpus[g].absent)
			gang->present |= bit(g);
	gang->n_gpus = arbiter->n_gpus;
	gang->n_present = (size_t)__builtin_popcountll(gang->present);
}

static int no_such_gpu(const struct gang *gang, size_t want, struct result *result)
{
	const char *name = gang->request->wants[want].gpu;
	const struct gpu *gone = ledger_find_absent(gang->admit_context->arbiter, name);

	if (gone)
		return result_set(result, RESULT_NO_SUCH_GPU, "want %zu: %s is gone", want + 1,
				  gone->info.name);
	return result_set(result, RESULT_NO_SUCH_GPU, "want %zu: there is no GPU %s among %zu",
			  want + 1, name, gang->n_present);
}

static int find_candidates(struct gang *gang, struct result *result)
{
	uint64_t named = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++) {
		const char *name = gang->request->wants[i].gpu;
		int index;

		if (strcmp(name, "any") == 0) {
			gang->candidates[i] = gang->present;
			continue;
		}
		index = ledger_find_gpu(gang->admit_context->arbiter, name);
		if (index < 0)
			return no_such_gpu(gang, i, result);
		if (named & bit((size_t)index))
			return result_set(result, RESULT_INVALID_REQUEST,
					  "want %zu: gpu %s is named twice; a lease has one want "
					  "for each GPU",
					  i + 1, name);
		named |= bit((size_t)index);
		gang->candidates[i] = bit((size_t)index);
	}
	return 0;
}

/* As much as can be had of what was asked; rounding up past it is worth less than that. */
static unsigned worth(const struct partition *p)
{
	return p->count <= p->asked ? CODEC_BITS + p->count
				    : CODEC_BITS - min_u(p->count - p->asked, CODEC_BITS);
}

/* Judges every want on each of its GPUs. */
static void judge(struct gang *gang)
{
	for (size_t i = 0; i < gang->request->n_wants; i++) {
		for (size_t g = 0; g < gang->n_gpus; g++) {
			struct refusal refusal;

			if (!(gang->candidates[i] & bit(g)))
				continue;
			gang->outcome[i][g] = (uint8_t)admit(gang->admit_context,
							     &gang->request->wants[i], (unsigned)g,
							     &gang->last, &refusal);
			if (gang->outcome[i][g] == OUTCOME_FITS) {
				gang->most[g] = max_u(gang->most[g], worth(&gang->last));
				gang->last_want = i;
				gang->last_gpu = g;
			} else if (!gang->refused[g]) {
				gang->refused[g] = gang->outcome[i][g];
				gang->refusals[g] = refusal;
			}
		}
	}
}

/* GPUs that could ever take a want. */
static uint64_t possible(const struct gang *gang)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		for (size_t g = 0; g < gang->n_gpus; g++)
			if ((gang->candidates[i] & bit(g)) && gang->outcome[i][g] != OUTCOME_NEVER)
				gpus |= bit(g);
	return gpus;
}

/* GPUs in the order in which they should be used. */
static void order_gpus(const struct gang *gang, bool few, size_t *order)
{
	const struct arbiter *arbiter = gang->admit_context->arbiter;
	uint64_t key[REQUEST_WANTS];

	for (size_t g = 0; g < gang->n_gpus; g++) {
		size_t at = g;

		key[g] = (few && (gang->held & bit(g)) ? UINT64_C(1) << 40 : 0) +
			 ((uint64_t)gang->most[g] << 20) +
			 (arbiter->settings->spread_gpus
				  ? gpu_cus_free(&arbiter->gpus[g])
				  : CODEC_BITS - gpu_cus_free(&arbiter->gpus[g]));
		while (at > 0 && key[order[at - 1]] < key[g]) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = g;
	}
}

/* Finds a want for the GPU, moving others to another GPU where that helps (Kuhn). */
static bool augment(const struct gang *gang, enum outcome worst, size_t gpu, uint64_t *tried,
		    int *gpu_of)
{
	for (size_t i = 0; i < gang->request->n_wants; i++) {
		if (!(gang->candidates[i] & bit(gpu)) || gang->outcome[i][gpu] > worst ||
		    (*tried & bit(i)))
			continue;
		*tried |= bit(i);
		if (gpu_of[i] != NOBODY && !augment(gang, worst, (size_t)gpu_of[i], tried, gpu_of))
			continue;
		gpu_of[i] = (int)gpu;
		return true;
	}
	return false;
}

/* Matches every want with a GPU whose outcome is no worse than `worst`. GPUs that come
 * first in `order` and can be matched are (they form a transversal matroid). */
static bool match(const struct gang *gang, enum outcome worst, const size_t *order, int *gpu_of)
{
	size_t matched = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		gpu_of[i] = NOBODY;
	for (size_t g = 0; g < gang->n_gpus && matched < gang->request->n_wants; g++) {
		uint64_t tried = 0;

		matched += augment(gang, worst, order[g], &tried, gpu_of);
	}
	return matched == gang->request->n_wants;
}

/* Wants may be refused for different reasons: the row is about what decides. */
static void tell_deciding(struct gang *gang, size_t gpu, enum outcome deciding)
{
	struct partition unused;

	for (size_t i = 0; gang->refused[gpu] != deciding && i < gang->request->n_wants; i++)
		if ((gang->candidates[i] & bit(gpu)) && gang->outcome[i][gpu] == deciding)
			gang->refused[gpu] = (uint8_t)admit(gang->admit_context,
							    &gang->request->wants[i], (unsigned)gpu,
							    &unused, &gang->refusals[gpu]);
}

static int keep_refusals(struct gang *gang, enum outcome deciding, struct result *result)
{
	for (size_t g = 0; g < gang->n_gpus; g++) {
		if (!gang->refused[g])
			continue;
		tell_deciding(gang, g, deciding);
		if (result_refuse(result, &gang->refusals[g]) < 0)
			return result_set(result, RESULT_NO_MEMORY, "out of memory");
	}
	return 0;
}

static int too_few_gpus(const struct gang *gang, struct result *result)
{
	struct refusal refusal = { .gpu = "any",
				   .reason = REASON_ABSENT,
				   .asked = gang->request->n_wants,
				   .free = gang->n_present };

	snprintf(refusal.hint, sizeof(refusal.hint), "%zu GPU%s here", gang->n_present,
		 gang->n_present == 1 ? " is" : "s are");
	if (result_refuse(result, &refusal) < 0)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	return result_set(result, RESULT_NEVER_FITS,
			  "%zu GPU%s asked for, %zu here: gpuarbctl gpus lists them",
			  gang->request->n_wants, gang->request->n_wants == 1 ? "" : "s",
			  gang->n_present);
}

/* The first GPU that refused so; else the first that refused. */
static const struct refusal *first_refusal(const struct gang *gang, enum outcome outcome)
{
	const struct refusal *first = NULL;

	for (size_t g = 0; g < gang->n_gpus; g++) {
		if (gang->refused[g] == outcome)
			return &gang->refusals[g];
		if (gang->refused[g] && !first)
			first = &gang->refusals[g];
	}
	return first;
}

/* Why no matching: the mildest outcome that would have to change. */
static int refuse(struct gang *gang, const size_t *order, struct result *result)
{
	static const struct {
		enum outcome worst;
		enum result_kind kind;
		const char *text;
	} kinds[] = {
		{ OUTCOME_NOT_NOW, RESULT_NO_CAPACITY, "no room now" },
		{ OUTCOME_QUOTA, RESULT_QUOTA_EXCEEDED, "above the quota" },
		{ OUTCOME_NEVER, RESULT_NEVER_FITS, "can never fit" },
	};
	const struct refusal *first;
	int gpu_of[REQUEST_WANTS], r;
	size_t i = 0;

	while (i < ARRAY_SIZE(kinds) - 1 && !match(gang, kinds[i].worst, order, gpu_of))
		i++;
	r = keep_refusals(gang, kinds[i].worst, result);
	if (r < 0)
		return r;
	first = first_refusal(gang, kinds[i].worst);
	return result_set(result, kinds[i].kind,
			  "%s: %s refuses for %s (%llu asked, %llu free): %s%s", kinds[i].text,
			  first->gpu, reason_name(first->reason), (unsigned long long)first->asked,
			  (unsigned long long)first->free, first->hint,
			  result->n_refusals > 1 ? "; other GPUs refuse too" : "");
}

static int check_max_gpus(const struct gang *gang, const int *gpu_of, struct result *result)
{
	struct refusal refusal = { .reason = REASON_QUOTA };
	uint64_t used = gang->held;
	unsigned n;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		used |= bit((size_t)gpu_of[i]);
	n = (unsigned)__builtin_popcountll(used);
	if (n <= gang->max_gpus)
		return 0;

	memcpy(refusal.gpu, gang->admit_context->arbiter->gpus[gpu_of[0]].info.name,
	       sizeof(refusal.gpu));
	refusal.asked = n;
	refusal.free = gang->max_gpus;
	snprintf(refusal.hint, sizeof(refusal.hint), "max-gpus of tenant %s is %llu",
		 gang->admit_context->tenant->name, (unsigned long long)gang->max_gpus);
	if (result_refuse(result, &refusal) < 0)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	return result_set(result, RESULT_QUOTA_EXCEEDED,
			  "above the quota: with this lease uid %u would be on %u GPUs; %s",
			  gang->admit_context->uid, n, refusal.hint);
}

/* Large: what is read is set, the rest is not touched. */
static int init(struct gang *gang, const struct admit_context *admit_context,
		const struct request *request, struct result *result)
{
	const struct lease *previous = admit_context->previous;
	int r;

	gang->own = *admit_context;
	gang->admit_context = &gang->own;
	gang->request = request;
	gang->held = 0;
	gang->last_want = REQUEST_WANTS;
	memset(gang->most, 0, sizeof(gang->most));
	memset(gang->refused, 0, sizeof(gang->refused));
	find_present(admit_context->arbiter, gang);
	gang->max_gpus = limit_of(&admit_context->tenant->max_gpus, gang->n_present);
	r = find_candidates(gang, result);
	if (r < 0)
		return r;
	if (request->n_wants > gang->n_present)
		return too_few_gpus(gang, result);
	if (tenant_bounds_parts(admit_context->tenant)) {
		quota_shares(admit_context->arbiter, admit_context->tenant, admit_context->uid,
			     previous ? previous->id : 0, gang->shares);
		gang->own.shares = gang->shares;
	}
	if (gang->max_gpus != UINT64_MAX)
		gang->held = quota_holding(admit_context->arbiter, admit_context->tenant,
					   admit_context->uid, previous ? previous->id : 0)
				     .gpus;
	return 0;
}

int gang_assign(const struct admit_context *admit_context, const struct request *request,
		struct partition *partitions, uint64_t *ret_candidates, struct result *result)
{
	size_t order[REQUEST_WANTS];
	int gpu_of[REQUEST_WANTS], r;
	struct gang gang;

	*ret_candidates = 0;
	r = init(&gang, admit_context, request, result);
	if (r < 0)
		return r;
	judge(&gang);
	*ret_candidates = possible(&gang);
	order_gpus(&gang, gang.max_gpus != UINT64_MAX, order);
	if (!match(&gang, OUTCOME_FITS, order, gpu_of))
		return refuse(&gang, order, result);
	r = check_max_gpus(&gang, gpu_of, result);
	if (r < 0)
		return r;
	for (size_t i = 0; i < request->n_wants; i++) {
		struct refusal unused;

		if (gang.last_want == i && gang.last_gpu == (size_t)gpu_of[i])
			partitions[i] = gang.last;
		else
			admit(gang.admit_context, &request->wants[i], (unsigned)gpu_of[i],
			      &partitions[i], &unused);
	}
	return 0;
}
