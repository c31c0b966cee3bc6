/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Small random machines: gang_assign() against all assignments of wants to GPUs, amounts
 * against asking for what they name. */

#include "core/decide/admit.h"

#include <errno.h>

#include "check.h"
#include "ledger-rig.h"
#include "seed.h"

#define GPUS 8

static unsigned below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static void random_want(unsigned *seed, struct want *want)
{
	want_init(want);
	if (below(seed, 3) == 0)
		snprintf(want->gpu, sizeof(want->gpu), "%u", below(seed, GPUS));
	want->cus = below(seed, 5) ? 1 + below(seed, 62) : 0;
	want->shader_engines = want->cus && below(seed, 4) ? 0 : 1 + below(seed, 4);
	want->exact = below(seed, 4) == 0;
	want->any_shape = below(seed, 6) == 0;
	want->queues = 1 + below(seed, 9);
	want->cooperative = below(seed, 9) == 0;
	want->isolation = below(seed, 3) == 0 ? ISOLATION_CU : ISOLATION_DEFAULT;
}

static void random_request(unsigned *seed, struct request *request, size_t n_wants)
{
	memset(request, 0, sizeof(*request));
	request->n_wants = n_wants;
	request->class = -1;
	for (size_t i = 0; i < n_wants; i++)
		random_want(seed, &request->wants[i]);
}

/* A machine with some leases of three users of three classes, and of strangers. */
static struct arbiter *random_machine(unsigned *seed)
{
	struct observed unmanaged_process = { .pid = 1,
					      .start_time = 1,
					      .kfd_gpu_id = 1 + below(seed, GPUS),
					      .queues = below(seed, 28) };
	struct result result = { 0 };
	struct gpu_info infos[GPUS];
	struct arbiter *arbiter;
	struct tenant *vr;

	for (unsigned i = 0; i < GPUS; i++) {
		infos[i] = radeon_vii((char[]){ 'g', 'p', 'u', (char)('0' + i), '\0' });
		infos[i].kfd_gpu_id = i + 1;
	}
	arbiter = arbiter_of(infos, 1 + below(seed, GPUS));
	add_tenant(arbiter, "lab", 1, CLASS_GUARANTEED)->max_cus =
		(struct limit){ LIMIT_PERCENT, 60 + below(seed, 60) };
	vr = add_tenant(arbiter, "vr", 2, CLASS_REALTIME);
	vr->max_gpus = (struct limit){ LIMIT_COUNT, 1 + below(seed, GPUS) };
	vr->alone = below(seed, 4) == 0;
	for (unsigned i = below(seed, 3 * GPUS); i > 0; i--) {
		struct request request;

		random_request(seed, &request, 1);
		reserve(arbiter, below(seed, 3), &request, &result);
	}
	result_done(&result);
	CHECK(arbiter_observe(arbiter, &unmanaged_process, below(seed, 2)) == 0);
	arbiter->gpus[0].draining = below(seed, 8) == 0;
	return arbiter;
}

/* The mildest outcome over all assignments of the wants. One to more GPUs than the user may have
 * is above the quota. */
struct tried {
	size_t n_wants, n_gpus;
	int outcome[GPUS][GPUS]; /* by want and GPU; -1: it names another */
	uint64_t max_gpus;
	enum outcome mildest;
};

/* Wants on different GPUs do not touch each other. */
static void judge_all(struct tried *t, const struct admit_context *admit_context,
		      const struct request *request)
{
	const struct arbiter *arbiter = admit_context->arbiter;

	t->n_wants = request->n_wants;
	t->n_gpus = arbiter->n_gpus;
	for (size_t i = 0; i < t->n_wants; i++) {
		const struct want *want = &request->wants[i];

		for (unsigned g = 0; g < t->n_gpus; g++) {
			struct partition partition;
			struct refusal refusal;
			bool named = strcmp(want->gpu, "any") == 0 ||
				     ledger_find_gpu(arbiter, want->gpu) == (int)g;

			t->outcome[i][g] = named ? (int)admit(admit_context, want, g, &partition,
							      &refusal)
						 : -1;
		}
	}
}

/* From `want` on. Goes on only where that can still be milder. */
static void try_all(struct tried *t, size_t want, uint64_t used, uint64_t on, enum outcome worst)
{
	if ((unsigned)__builtin_popcountll(on) > t->max_gpus && worst < OUTCOME_QUOTA)
		worst = OUTCOME_QUOTA;
	if (worst >= t->mildest)
		return;
	if (want == t->n_wants) {
		t->mildest = worst;
		return;
	}
	for (unsigned g = 0; g < t->n_gpus; g++) {
		int outcome = t->outcome[want][g];

		if (!(used >> g & 1) && outcome >= 0)
			try_all(t, want + 1, used | 1U << g, on | 1U << g,
				outcome > (int)worst ? (enum outcome)outcome : worst);
	}
}

static void check_gang(struct arbiter *arbiter, uid_t uid, const struct request *request)
{
	static const enum result_kind kinds[] = { RESULT_OK, RESULT_NO_CAPACITY,
						  RESULT_QUOTA_EXCEEDED, RESULT_NEVER_FITS };
	struct caller caller = caller_of(uid);
	struct admit_context admit_context = { .arbiter = arbiter, .uid = uid };
	struct share shares[REQUEST_WANTS];
	struct result result = { 0 }, unused = { 0 };
	struct request complete = *request;
	_cleanup_(lease_freep) struct lease *self = NULL;
	struct lease *lease = NULL;
	struct tried tried = { .mildest = OUTCOME_NEVER };

	CHECK(tenant_find(arbiter->settings, &caller, "", &admit_context.tenant, &unused) == 0);
	CHECK(plan_lease(arbiter, &caller, request, &self, &unused) == 0);
	admit_context.self = self;
	admit_context.alone = self->class == CLASS_REALTIME && admit_context.tenant->alone;
	if (request_complete(&complete, self->class, &unused) < 0 ||
	    arbiter_plan(arbiter, &caller, request, &lease, &result) == -EINVAL ||
	    result.kind == RESULT_NO_SUCH_GPU) {
		result_done(&result);
		return;
	}
	tried.max_gpus = limit_of(&admit_context.tenant->max_gpus, arbiter->n_gpus);
	quota_shares(arbiter, admit_context.tenant, uid, 0, shares);
	admit_context.shares = shares;
	judge_all(&tried, &admit_context, &complete);
	try_all(&tried, 0, 0, quota_gpus(arbiter, admit_context.tenant, uid, 0), OUTCOME_FITS);
	CHECK(result.kind == kinds[tried.mildest] && (lease != NULL) == (result.kind == RESULT_OK));
	lease_free(lease);
	result_done(&result);
}

TEST(a_gang_is_refused_only_where_no_assignment_would_do)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), rounds = check_rounds(250, 40000);

	for (unsigned round = 0; round < rounds; round++) {
		struct arbiter *arbiter = random_machine(&seed);
		struct request request;

		random_request(&seed, &request, 1 + below(&seed, (unsigned)arbiter->n_gpus));
		check_gang(arbiter, below(&seed, 3), &request);
		arbiter_free(arbiter);
	}
}

TEST(amounts_that_fit_now_are_granted)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), fits = 0, slots = 0;
	unsigned rounds = check_rounds(500, 80000);

	for (unsigned round = 0; round < rounds; round++) {
		struct arbiter *arbiter = random_machine(&seed);
		struct result result = { 0 }, again = { 0 };
		struct request request, next;
		uid_t uid = below(&seed, 3);
		const struct refusal *refusal;

		arbiter->settings->tenants[0].max_gpus.kind = LIMIT_NONE; /* is not about CUs */
		random_request(&seed, &request, 1);
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "0");
		next = request;
		if (reserve(arbiter, uid, &request, &result) || result.n_refusals != 1 ||
		    result.kind != RESULT_NO_CAPACITY) {
			result_done(&result);
			arbiter_free(arbiter);
			continue;
		}
		refusal = &result.refusals[0];
		for (unsigned i = 0; refusal->fit_resource == RESOURCE_CUS && i < refusal->n_fits;
		     i++) {
			struct caller caller = caller_of(uid);
			struct lease *lease = NULL;

			next.wants[0].cus = (unsigned)refusal->fits[i];
			CHECK(arbiter_plan(arbiter, &caller, &next, &lease, &again) == 0);
			CHECK(lease->partitions[0].count == refusal->fits[i]);
			lease_free(lease);
			fits++;
		}
		if (refusal->reason == REASON_QUEUES && refusal->n_fits > 0) {
			next.wants[0].queues = (unsigned)refusal->fits[0];
			CHECK(reserve(arbiter, uid, &next, &again) ||
			      again.refusals[0].reason != REASON_QUEUES);
			slots++;
		}
		result_done(&result);
		result_done(&again);
		arbiter_free(arbiter);
	}
	printf("%u amounts, %u times slots\n", fits, slots);
	CHECK_REACHED(fits > rounds / 10 && slots > rounds / 200);
}

/* As it may stand in a damaged file: the bus refuses such a number. */
TEST(a_want_of_any_number_of_cus_is_placed)
{
	const struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:43:00.0"),
					 radeon_vii("0000:83:00.0") };
	_cleanup_(result_done) struct result result = { 0 };
	struct arbiter *arbiter = arbiter_of(gpus, 3);
	struct request request = request_for(5);

	request.n_wants = 2;
	request.wants[1] = request.wants[0];
	request.wants[1].cus = UINT32_MAX;
	request.wants[1].cus_min = 1;
	CHECK(reserve(arbiter, 7, &request, &result)->n_partitions == 2);
	arbiter_free(arbiter);
}

TEST(policy_packs_gpus_or_spreads_over_them)
{
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:43:00.0"),
				   radeon_vii("0000:83:00.0") };
	static const unsigned cus[] = { 15, 30 }; /* on the first and the second */
	_cleanup_(result_done) struct result result = { 0 };

	for (unsigned spread = 0; spread < 2; spread++) {
		struct arbiter *arbiter = arbiter_of(gpus, 3);
		struct request request;

		for (unsigned i = 0; i < 2; i++) {
			request = request_for(cus[i]);
			snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", i);
			CHECK(reserve(arbiter, 7, &request, &result));
		}
		arbiter->settings->gpu_order = spread ? GPU_ORDER_SPREAD : GPU_ORDER_PACK;
		request = request_for(15);
		CHECK(reserve(arbiter, 7, &request, &result)->partitions[0].gpu ==
		      (spread ? 2 : 1));
		arbiter_free(arbiter);
	}
}
