/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/choice.h"
#include "core/decide/exclusive.h"
#include "core/policy/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNMATCHED (-1)

/* A request is refused if more pairs of a want and a GPU would have to be judged, which takes 2 ms;
 * equal wants are judged once. Eight GPUs have 64 pairs at most. */
#define PAIRS_MAX 512U

#define LEASES_OF_STEP 64U
#define STEPS_OF_CHOICE 2U /* of judging what comes of a want on one of several GPUs: choice.c */
#define ENGINES_OF_STEP 8U

/* What admit() said of one want on one GPU: the partition if it fits, else the refusal. */
union judgement {
	struct partition partition;
	struct refusal refusal;
};

/* Large: init() sets only the members that are read before they are written. */
struct gang {
	struct admit_context context;
	struct share shares[REQUEST_WANTS]; /* set if a quota bounds parts of GPUs */
	struct floor *floors; /* by GPU, for candidates; NULL: policy has none; owned */
	const struct request *request;
	size_t n_gpus, n_present;           /* GPUs; those that are not absent */
	uint64_t present;                   /* as bits */
	uint64_t unnamed;                   /* not of any want because any = no, as bits */
	uint64_t candidates[REQUEST_WANTS]; /* GPUs that the want names, as bits */
	uint8_t outcome[REQUEST_WANTS][REQUEST_WANTS]; /* by want and GPU */
	uint8_t judged[REQUEST_WANTS];                 /* by want: the first equal one */
	union judgement *judgements;                   /* by want and GPU; owned */
	uint64_t max_gpus;
	uint64_t held; /* GPUs that the user holds partitions of, if max_gpus bounds them */
};

static void find_present(const struct arbiter *arbiter, struct gang *gang)
{
	gang->present = 0;
	for (size_t g = 0; g < arbiter->n_gpus; g++)
		if (!arbiter->gpus[g].absent)
			gang->present |= bit_u64(g);
	gang->n_gpus = arbiter->n_gpus;
	gang->n_present = (size_t)__builtin_popcountll(gang->present);
}

static int no_such_gpu(const struct gang *gang, const char *name, struct result *result)
{
	const struct gpu *gone = ledger_find_absent(gang->context.arbiter, name);
	char names[4 * GPU_NAME_MAX] = "";
	size_t at = 0;

	if (gone)
		return result_set(result, RESULT_NO_SUCH_GPU, "GPU %s is gone", gone->info.name);
	for (size_t i = 0; i < gang->n_gpus && at < sizeof(names) - GPU_NAME_MAX; i++)
		if (gang->present & bit_u64(i))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at > 0 ? ", " : "",
					       gang->context.arbiter->gpus[i].info.name);
	return result_set(result, RESULT_NO_SUCH_GPU, "there is no GPU '%s': this machine has %s%s",
			  name, gang->n_present > 0 ? names : "none",
			  at >= sizeof(names) - GPU_NAME_MAX ? ", ..." : "");
}

/* Does the want name one GPU? */
static bool names_one(const struct want *want)
{
	return strcmp(want->gpu, "any") != 0 && !strchr(want->gpu, ',');
}

static int find_candidates(struct gang *gang, struct result *result)
{
	const struct arbiter *arbiter = gang->context.arbiter;
	char missing[GPU_NAME_MAX];
	uint64_t named = 0, all = 0;
	bool any = false;

	for (size_t i = 0; i < gang->request->n_wants; i++) {
		const struct want *want = &gang->request->wants[i];
		uint64_t *gpus = &gang->candidates[i];

		if (ledger_wanted(arbiter, want->gpu, gpus, missing) < 0)
			return no_such_gpu(gang, missing, result);
		any |= strcmp(want->gpu, "any") == 0;
		all |= *gpus;
		if (!names_one(want))
			continue;
		if (named & *gpus)
			return result_set(result, RESULT_INVALID_REQUEST,
					  "want %zu: gpu %s is named twice; a lease has one want "
					  "for each GPU",
					  i + 1, want->gpu);
		named |= *gpus;
	}
	gang->unnamed = any ? gang->present & ~all : 0;
	return 0;
}

static union judgement *judgement_of(const struct gang *gang, size_t want, size_t gpu)
{
	return &gang->judgements[gang->judged[want] * gang->n_gpus + gpu];
}

static void judge_want(struct gang *gang, size_t i, size_t g)
{
	union judgement *judgement = judgement_of(gang, i, g);
	enum outcome outcome = admit(&gang->context, &gang->request->wants[i], (unsigned)g,
				     &judgement->partition, &judgement->refusal);

	gang->outcome[i][g] = (uint8_t)outcome;
}

static int find_floors(struct gang *gang)
{
	const struct admit_context *context = &gang->context;
	struct ledger_view view;
	uint64_t all = gang->unnamed;
	int r = 0;

	if (!floor_configured(context->arbiter->settings))
		return 0;
	gang->floors = reallocarray(NULL, gang->n_gpus, sizeof(*gang->floors));
	if (!gang->floors)
		return -ENOMEM;
	for (size_t i = 0; i < gang->request->n_wants; i++)
		all |= gang->candidates[i];
	ledger_view(context->arbiter, &view);
	for (; all && r == 0; all &= all - 1) {
		unsigned g = (unsigned)__builtin_ctzll(all);

		r = floor_find(ledger_on(&view, g), g, context->tenant, context->previous,
			       &gang->floors[g]);
	}
	free(view.leases);
	gang->context.floors = gang->floors;
	return r;
}

/* The first want that is equal to this one. */
static size_t first_equal(const struct request *request, size_t i)
{
	size_t j = 0;

	while (j < i && !want_equal(&request->wants[j], &request->wants[i]))
		j++;
	return j;
}

/* ---- steps ------------------------------------------------------------------------------ */

unsigned gang_walk_steps(const struct arbiter *arbiter)
{
	return 1 + (unsigned)arbiter->n_leases / LEASES_OF_STEP;
}

/* Of one want on one GPU. */
static unsigned pair_steps(const struct gpu *gpu)
{
	const struct geometry *geometry = &gpu->info.geometry;

	return 2 + (geometry->xccs * geometry->engines + ENGINES_OF_STEP - 1) / ENGINES_OF_STEP;
}

/* Of floor_find() for one GPU, without its walk. */
static unsigned floor_steps(const struct arbiter *arbiter, const struct gpu *gpu)
{
	const struct settings *settings = arbiter->settings;
	unsigned n = 0;

	for (size_t i = 0; i < settings->n_tenants; i++)
		n += tenant_has_floor(&settings->tenants[i]);
	return n * gpu->info.geometry.engines * pair_steps(gpu);
}

unsigned gang_lease_steps(const struct arbiter *arbiter)
{
	const struct gpu *gpu = &arbiter->gpus[0];

	return 3 * gang_walk_steps(arbiter) + 2 * pair_steps(gpu) + floor_steps(arbiter, gpu);
}

unsigned gang_steps(const struct arbiter *arbiter, const struct request *request, bool one)
{
	unsigned steps = 2 * gang_walk_steps(arbiter);

	for (size_t i = 0; i < request->n_wants; i++) {
		bool any = !one && !names_one(&request->wants[i]);
		size_t n = any ? arbiter->n_gpus : 1;

		if (first_equal(request, i) < i)
			continue;
		for (size_t g = 0; g < n; g++)
			steps += pair_steps(&arbiter->gpus[g]) + (any ? STEPS_OF_CHOICE : 0) +
				 (i == 0 || !any ? floor_steps(arbiter, &arbiter->gpus[g]) : 0);
	}
	return steps;
}

/* Finds the equal wants, and whether there are few enough others. */
static int find_equal(struct gang *gang, struct result *result)
{
	size_t pairs = 0, different = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++) {
		gang->judged[i] = (uint8_t)first_equal(gang->request, i);
		if (gang->judged[i] < i)
			continue;
		pairs += (size_t)__builtin_popcountll(gang->candidates[i]);
		different++;
	}
	if (pairs <= PAIRS_MAX)
		return 0;
	return result_set(
		result, RESULT_INVALID_REQUEST,
		"%zu different wants for any of %zu GPUs are %zu pairs of a want and a GPU, and "
		"at most %u are examined: name GPUs, or make wants equal",
		different, gang->n_present, pairs, PAIRS_MAX);
}

/* Judges every want on each GPU that it names. */
static int judge(struct gang *gang)
{
	if (find_floors(gang) < 0)
		return -ENOMEM;
	gang->judgements = reallocarray(NULL, gang->request->n_wants * gang->n_gpus,
					sizeof(*gang->judgements));
	if (!gang->judgements)
		return -ENOMEM;
	for (size_t i = 0; i < gang->request->n_wants; i++) {
		size_t first = gang->judged[i];

		if (first < i) {
			memcpy(gang->outcome[i], gang->outcome[first], gang->n_gpus);
			continue;
		}
		for (size_t g = 0; g < gang->n_gpus; g++)
			if (gang->candidates[i] & bit_u64(g))
				judge_want(gang, i, g);
	}
	return 0;
}

/* GPUs whose outcome for one of the wants is no worse, as bits. */
static uint64_t gpus_with(const struct gang *gang, enum outcome worst)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		for (size_t g = 0; g < gang->n_gpus; g++)
			if ((gang->candidates[i] & bit_u64(g)) && gang->outcome[i][g] <= worst)
				gpus |= bit_u64(g);
	return gpus;
}

/* GPUs that the user holds, then the others. */
static void held_first(const struct gang *gang, size_t order[static REQUEST_WANTS])
{
	size_t n = 0;

	for (unsigned held = 2; held-- > 0;)
		for (size_t g = 0; g < gang->n_gpus; g++)
			if ((gang->held >> g & 1) == held)
				order[n++] = g;
}

/* Finds a want for the GPU, moving others to another GPU where that helps (Kuhn). */
static bool augment(const struct gang *gang, enum outcome worst, size_t gpu, uint64_t *tried,
		    int *gpu_of)
{
	for (size_t i = 0; i < gang->request->n_wants; i++) {
		if (!(gang->candidates[i] & bit_u64(gpu)) || gang->outcome[i][gpu] > worst ||
		    (*tried & bit_u64(i)))
			continue;
		*tried |= bit_u64(i);
		if (gpu_of[i] != UNMATCHED &&
		    !augment(gang, worst, (size_t)gpu_of[i], tried, gpu_of))
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
		gpu_of[i] = UNMATCHED;
	for (size_t g = 0; g < gang->n_gpus && matched < gang->request->n_wants; g++) {
		uint64_t tried = 0;

		matched += augment(gang, worst, order[g], &tried, gpu_of);
	}
	return matched == gang->request->n_wants;
}

static uint64_t gpus_of(const struct gang *gang, const int *gpu_of)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		gpus |= gpu_of[i] == UNMATCHED ? 0 : bit_u64((size_t)gpu_of[i]);
	return gpus;
}

/* Does max-gpus allow these GPUs (bits) beside those that the user holds? */
static bool allows(const struct gang *gang, uint64_t gpus)
{
	return (unsigned)__builtin_popcountll(gpus | gang->held) <= gang->max_gpus;
}

/* Does max-gpus keep the user on the GPUs that it holds? */
static bool keeps_to_held(const struct gang *gang)
{
	return (unsigned)__builtin_popcountll(gang->held) >= gang->max_gpus;
}

/* ---- which GPU for which want ---------------------------------------------------------- */

/* Moves the want to the GPU, and others away from `left` (bits), but not those with bits in `placed`. */
static bool place_leaving(const struct gang *gang, const size_t *order, size_t want, size_t gpu,
			  uint64_t left, uint64_t placed, int *gpu_of)
{
	int next[REQUEST_WANTS];
	size_t missing = 0;
	uint64_t used;

	memcpy(next, gpu_of, sizeof(next));
	next[want] = (int)gpu;
	for (size_t i = 0; i < gang->request->n_wants; i++) {
		if (i == want || !(left & bit_u64((size_t)gpu_of[i])))
			continue;
		if (!(placed & bit_u64(i))) {
			next[i] = UNMATCHED;
			missing++;
		} else if (gpu_of[i] == (int)gpu) {
			return false;
		}
	}
	used = gpus_of(gang, next);
	for (size_t n = 0; n < gang->n_gpus && missing > 0; n++) {
		uint64_t tried = placed | bit_u64(want);

		if (!(used & bit_u64(order[n])))
			missing -= augment(gang, OUTCOME_FITS, order[n], &tried, next);
	}
	if (missing > 0 || !allows(gang, gpus_of(gang, next)))
		return false;
	memcpy(gpu_of, next, sizeof(next));
	return true;
}

/* Moves the want to the GPU, and others out of its way, but not those with bits in `placed`.
 * false: there is no such matching, or max-gpus forbids it. */
static bool place(const struct gang *gang, const size_t *order, size_t want, size_t gpu,
		  uint64_t placed, int *gpu_of)
{
	/* Where max-gpus forbids the new GPU, another want may have a held one instead of its own. */
	return place_leaving(gang, order, want, gpu, bit_u64(gpu), placed, gpu_of) ||
	       (gang->held &&
		place_leaving(gang, order, want, gpu, bit_u64(gpu) | ~gang->held, placed, gpu_of));
}

/* The GPUs where the want fits, the best first. Returns how many. */
static int order_gpus(const struct gang *gang, size_t want, struct choice *choice,
		      size_t order[static REQUEST_WANTS])
{
	uint64_t fits = 0;

	for (size_t g = 0; g < gang->n_gpus; g++)
		if ((gang->candidates[want] & bit_u64(g)) && gang->outcome[want][g] == OUTCOME_FITS)
			fits |= bit_u64(g);
	choice_start(choice, fits);
	FOR_EACH_BIT(g, fits)
		if (choice_add(choice, &gang->request->wants[want],
			       &judgement_of(gang, want, g)->partition) < 0)
			return -ENOMEM;
	choice_order(choice, order);
	return __builtin_popcountll(fits);
}

/* Of the wants that are not placed the one that asks for most CUs, or the first of several. */
static size_t largest(const struct gang *gang, const int *gpu_of, uint64_t placed)
{
	size_t ret = REQUEST_WANTS;
	unsigned most = 0;

	for (size_t i = 0; i < gang->request->n_wants; i++) {
		const struct partition *p = &judgement_of(gang, i, (size_t)gpu_of[i])->partition;
		unsigned cus = max_u(p->asked, p->count);

		if (!(placed & bit_u64(i)) && (ret == REQUEST_WANTS || cus > most)) {
			most = cus;
			ret = i;
		}
	}
	return ret;
}

/* Places the want and its equals: what one cannot have is not there for the others either. */
static int place_equal(const struct gang *gang, const size_t *held, size_t want,
		       struct choice *choice, uint64_t *placed, int *gpu_of)
{
	size_t order[REQUEST_WANTS], at = 0;
	int n = order_gpus(gang, want, choice, order);

	for (size_t i = 0; n >= 0 && i < gang->request->n_wants; i++) {
		if (gang->judged[i] != gang->judged[want])
			continue;
		while (at < (size_t)n && !place(gang, held, i, order[at], *placed, gpu_of))
			at++;
		at++;
		*placed |= bit_u64(i);
	}
	return n;
}

/* Changes a matching: wants get the best GPUs that leave one for each of the others, the largest first. */
static int choose(const struct gang *gang, const size_t *held, int *gpu_of)
{
	uint64_t fits = gpus_with(gang, OUTCOME_FITS), placed = 0;
	struct choice choice;
	int r = 0;

	if (!(fits & (fits - 1))) /* one */
		return 0;
	if (choice_begin(&gang->context, fits, &choice) < 0)
		return -ENOMEM;
	while (r >= 0 && (size_t)__builtin_popcountll(placed) < gang->request->n_wants)
		r = place_equal(gang, held, largest(gang, gpu_of, placed), &choice, &placed,
				gpu_of);
	choice_done(&choice);
	return r;
}

/* ---- refusals ------------------------------------------------------------------------- */

/* What the partition takes, with this share, of the limit with this key. */
static uint64_t part_of_quota(const struct arbiter *arbiter, const struct lease *lease,
			      const struct partition *partition, struct share share,
			      const char *key)
{
	struct quota_part parts[QUOTA_PARTS];

	quota_add_share(arbiter, lease, partition, &share);
	share.budget.vram = max_u64(share.budget.vram, partition->used.vram);
	quota_parts(&arbiter->gpus[partition->gpu], &share, parts);
	for (size_t i = 0; i < QUOTA_PARTS; i++)
		if (strcmp(tenant_limits[QUOTA_FIRST + i].key, key) == 0)
			return parts[i].held;
	return 0;
}

/* The amount of the refusal's resource that the partition keeps from others. */
static uint64_t charge_of(const struct arbiter *arbiter, const struct lease *lease,
			  const struct partition *partition, const struct refusal *refusal)
{
	const struct cuset claim = partition_claim(partition);
	enum resource resource = refusal->resource;

	if (refusal->reason == REASON_QUOTA)
		return part_of_quota(arbiter, lease, partition, (struct share){ 0 }, refusal->key);
	if (resource == RESOURCE_CUS || resource == RESOURCE_SHADER_ENGINES)
		return cuset_count(&claim);
	return resource >= BUDGETS
		       ? 0
		       : max_u64(partition->charged.of[resource], partition->used.of[resource]);
}

/* Keeps the leases with the largest shares, in that order. */
static void name_lease(struct refusal *refusal, uint64_t shares[static REFUSAL_LEASES], uint64_t id,
		       uint64_t share)
{
	size_t at = refusal->n_leases < REFUSAL_LEASES ? refusal->n_leases : REFUSAL_LEASES;

	refusal->n_leases++;
	if (at == REFUSAL_LEASES && shares[--at] >= share)
		return;
	for (; at > 0 && shares[at - 1] < share; at--) {
		shares[at] = shares[at - 1];
		refusal->leases[at] = refusal->leases[at - 1];
	}
	shares[at] = share;
	refusal->leases[at] = id;
}

/* Does the end of a lease make room for what was refused? */
static bool leases_matter(const struct refusal *refusal)
{
	return refusal->reason != REASON_UNMANAGED && refusal->reason != REASON_UNMASKED &&
	       refusal->reason != REASON_DRAIN && refusal->reason != REASON_EXCLUSIVE &&
	       refusal->reason != REASON_GRAPHICS && refusal->reason != REASON_OVERSUBSCRIBED &&
	       !refusal->behind && (refusal->retry || refusal->reason == REASON_QUOTA);
}

static bool counts(const struct gang *gang, const struct refusal *refusal,
		   const struct lease *lease)
{
	const struct admit_context *admit_context = &gang->context;

	if (admit_context->previous && admit_context->previous->id == lease->id)
		return false;
	return refusal->reason != REASON_QUOTA ||
	       (lease->owner == admit_context->uid &&
		strcmp(lease->tenant, admit_context->tenant->name) == 0);
}

/* Names in each refusal the leases that have what it lacks: one walk for all. */
static void name_leases(const struct gang *gang, struct refusal *const by_gpu[REQUEST_WANTS])
{
	const struct arbiter *arbiter = gang->context.arbiter;
	uint64_t shares[REQUEST_WANTS][REFUSAL_LEASES];

	FOR_EACH_LEASE(lease, arbiter)
		FOR_EACH_PARTITION(partition, lease) {
			struct refusal *refusal = partition->gpu < gang->n_gpus
							  ? by_gpu[partition->gpu]
							  : NULL;
			uint64_t share;

			if (!refusal || !leases_matter(refusal) || !counts(gang, refusal, lease))
				continue;
			share = charge_of(arbiter, lease, partition, refusal);
			if (share > 0)
				name_lease(refusal, shares[partition->gpu], lease->id, share);
		}
}

/* Counts the lease that is resized among what its user holds. */
static void count_previous(const struct gang *gang, size_t gpu, struct refusal *refusal)
{
	const struct admit_context *context = &gang->context;
	const struct partition *had = context->previous
					      ? lease_partition_on(context->previous, (unsigned)gpu)
					      : NULL;

	if (had && refusal->reason == REASON_QUOTA && context->shares)
		refusal->held = max_u64(refusal->held,
					part_of_quota(context->arbiter, context->previous, had,
						      context->shares[gpu], refusal->key));
}

/* Of the wants that a GPU refuses, the first with the outcome that decides, else the first;
 * NULL: it refuses none. */
static const struct refusal *refusal_of(const struct gang *gang, size_t gpu, enum outcome deciding,
					bool *ret_decides)
{
	const struct refusal *first = NULL;

	*ret_decides = false;
	for (size_t i = 0; i < gang->request->n_wants && !*ret_decides; i++) {
		if (!(gang->candidates[i] & bit_u64(gpu)) || gang->outcome[i][gpu] == OUTCOME_FITS)
			continue;
		*ret_decides = gang->outcome[i][gpu] == deciding;
		if (*ret_decides || !first)
			first = &judgement_of(gang, i, gpu)->refusal;
	}
	return first;
}

/* Names the GPUs that are only used where they are named (any = no): all of them, or those that would grant
 * the want for any GPU then. */
static int refuse_unnamed(const struct gang *gang, bool all, struct result *result)
{
	const struct want *want = gang->request->wants;
	struct partition partition;

	while (gang->unnamed && strcmp(want->gpu, "any") != 0)
		want++;
	for (uint64_t gpus = gang->unnamed; gpus; gpus &= gpus - 1) {
		unsigned g = (unsigned)__builtin_ctzll(gpus);
		struct refusal unused, refusal = { .reason = REASON_POLICY, .key = "any" };
		bool fits = admit(&gang->context, want, g, &partition, &unused) == OUTCOME_FITS &&
			    allows(gang, bit_u64(g));

		if (!fits && !all)
			continue;
		memcpy(refusal.gpu, unused.gpu, sizeof(refusal.gpu));
		refusal.uid = gang->context.uid;
		refusal_set_fits(&refusal, RESOURCE_CUS, fits ? partition.count : 0, 0);
		if (result_refuse(result, &refusal) < 0)
			return result_set(result, RESULT_NO_MEMORY, "out of memory");
	}
	return 0;
}

static int keep_refusals(struct gang *gang, enum outcome deciding, struct result *result)
{
	struct refusal *by_gpu[REQUEST_WANTS] = { NULL };
	size_t index[REQUEST_WANTS];
	bool found = false, decides;

	for (size_t g = 0; g < gang->n_gpus; g++) {
		const struct refusal *refusal = refusal_of(gang, g, deciding, &decides);

		if (!refusal)
			continue;
		if (result_refuse(result, refusal) < 0)
			return result_set(result, RESULT_NO_MEMORY, "out of memory");
		index[result->n_refusals - 1] = g;
		if (decides && !found)
			result->deciding = result->n_refusals - 1;
		found |= decides;
	}
	for (size_t i = 0; i < result->n_refusals; i++) {
		by_gpu[index[i]] = &result->refusals[i];
		result->refusals[i].others = result->n_refusals > 1;
		count_previous(gang, index[i], &result->refusals[i]);
	}
	name_leases(gang, by_gpu);
	return refuse_unnamed(gang, false, result);
}

/* There are fewer GPUs than wants that they can be matched with. */
static int refuse_number(const struct gang *gang, struct result *result)
{
	struct refusal refusal = { .gpu = "any",
				   .reason = REASON_ABSENT,
				   .resource = RESOURCE_GPUS,
				   .asked = gang->request->n_wants,
				   .total = gang->n_present };
	uint64_t gpus = 0;
	int r;

	for (size_t i = 0; i < gang->request->n_wants; i++)
		gpus |= gang->candidates[i];
	refusal.free = (size_t)__builtin_popcountll(gpus);
	r = result_refuse_all(result, RESULT_NEVER_FITS, &refusal);
	return refuse_unnamed(gang, true, result) < 0 ? -ENOMEM : r;
}

/* gpu_of: the matching with the fewest GPUs beside those that the user holds. */
static int above_max_gpus(const struct gang *gang, const int *gpu_of, struct result *result)
{
	unsigned held = (unsigned)__builtin_popcountll(gang->held);
	uint64_t more = gpus_of(gang, gpu_of) & ~gang->held;
	struct refusal refusal = { .reason = REASON_QUOTA,
				   .resource = RESOURCE_GPUS,
				   .asked = max_u((unsigned)__builtin_popcountll(more), 1),
				   .free = beyond(gang->max_gpus, held),
				   .total = gang->n_present,
				   .held = held,
				   .uid = gang->context.uid };

	snprintf(refusal.gpu, sizeof(refusal.gpu), "%s",
		 gang->request->n_wants > 1 ? "any"
					    : gang->context.arbiter->gpus[gpu_of[0]].info.name);
	refusal_set_bound(&refusal, "max-gpus", gang->max_gpus, gang->context.tenant->name);
	return result_refuse_all(result, RESULT_QUOTA_EXCEEDED, &refusal);
}

/* Why there is no matching: the mildest outcome that would have to change. */
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
	const struct refusal *refusal;
	char line[REFUSAL_TEXT];
	int gpu_of[REQUEST_WANTS], r;
	size_t i = 0;

	while (i < ARRAY_SIZE(kinds) && !match(gang, kinds[i].worst, order, gpu_of))
		i++;
	if (i == ARRAY_SIZE(kinds))
		return refuse_number(gang, result);
	/* It would wait in vain. */
	if (kinds[i].worst == OUTCOME_NOT_NOW && !allows(gang, gpus_of(gang, gpu_of)))
		return above_max_gpus(gang, gpu_of, result);
	for (size_t j = 0; i == 0 && keeps_to_held(gang) && j < gang->request->n_wants; j++)
		gang->candidates[j] &= gang->held;
	r = keep_refusals(gang, kinds[i].worst, result);
	if (r < 0)
		return r;
	refusal = &result->refusals[result->deciding];
	refusal_line(refusal, NULL, line);
	return result_set(result, kinds[i].kind, "%s: %s: %s: %s%s", kinds[i].text, refusal->gpu,
			  reason_names[refusal->reason], line,
			  refusal->others ? "; other GPUs refuse too" : "");
}

static int init(struct gang *gang, const struct admit_context *admit_context,
		const struct request *request, struct result *result)
{
	const struct lease *previous = admit_context->previous;
	int r;

	gang->context = *admit_context;
	/* A lease keeps its terms when it is resized. */
	gang->context.alone = previous ? previous->partitions[0].alone
				       : admit_context->self->class == CLASS_REALTIME &&
						 admit_context->tenant->alone;
	gang->context.exclusive = previous ? previous->partitions[0].exclusive
					   : exclusive_asked(admit_context->tenant,
							     admit_context->self->class, request);
	gang->context.inactive = request->start_inactive;
	gang->context.adaptable = request->adaptable;
	gang->request = request;
	gang->held = 0;
	gang->judgements = NULL;
	gang->floors = NULL;
	find_present(admit_context->arbiter, gang);
	gang->max_gpus = limit_of(&admit_context->tenant->max_gpus, gang->n_present);
	r = find_candidates(gang, result);
	if (r < 0)
		return r;
	r = find_equal(gang, result);
	if (r < 0)
		return r;
	if (tenant_bounds_parts(admit_context->tenant)) {
		quota_shares(admit_context->arbiter, admit_context->tenant, admit_context->uid,
			     previous ? previous->id : 0, gang->shares);
		gang->context.shares = gang->shares;
	}
	if (gang->max_gpus != UINT64_MAX)
		gang->held = quota_gpus(admit_context->arbiter, admit_context->tenant,
					admit_context->uid, previous ? previous->id : 0);
	return 0;
}

/* Matches the judged wants with GPUs. */
static int assign(struct gang *gang, struct partition *partitions, struct result *result)
{
	size_t order[REQUEST_WANTS];
	int gpu_of[REQUEST_WANTS];

	held_first(gang, order);
	if (!match(gang, OUTCOME_FITS, order, gpu_of) || !allows(gang, gpus_of(gang, gpu_of)))
		return refuse(gang, order, result);
	if (choose(gang, order, gpu_of) < 0)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < gang->request->n_wants; i++)
		partitions[i] = judgement_of(gang, i, (size_t)gpu_of[i])->partition;
	return 0;
}

int gang_assign(const struct admit_context *admit_context, const struct request *request,
		struct partition *partitions, uint64_t *ret_candidates, struct result *result)
{
	struct gang gang;
	int r;

	*ret_candidates = 0;
	r = init(&gang, admit_context, request, result);
	if (r < 0)
		return r;
	if (judge(&gang) < 0) {
		r = result_set(result, RESULT_NO_MEMORY, "out of memory");
	} else {
		r = assign(&gang, partitions, result);
		/* Where a lease of its user ends, it may have another GPU. */
		*ret_candidates = gpus_with(&gang, OUTCOME_QUOTA) |
				  (keeps_to_held(&gang) ? gang.held : 0);
	}
	free(gang.judgements);
	free(gang.floors);
	return r;
}
