/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/advice.h"

#include "check.h"
#include "seed.h"
#include "util/base.h"
#include "ledger-rig.h"
#include "request-text.h"

#define RT 1
#define LAB 2

static struct arbiter *machine(unsigned n_gpus)
{
	struct gpu_info infos[4];
	struct arbiter *arbiter;

	for (unsigned i = 0; i < n_gpus; i++)
		infos[i] = radeon_vii((char[]){ 'g', 'p', 'u', (char)('0' + i), '\0' });
	arbiter = arbiter_of(infos, n_gpus);
	add_tenant(arbiter, "rt", RT, CLASS_REALTIME);
	add_tenant(arbiter, "lab", LAB, CLASS_GUARANTEED);
	return arbiter;
}

static uint64_t take(struct arbiter *arbiter, uid_t uid, unsigned cus)
{
	struct request request = request_for(cus);
	struct result result = { 0 };
	struct lease *lease;

	request.wants[0].queues = 1;
	lease = reserve(arbiter, uid, &request, &result);
	CHECK(lease);
	return lease->id;
}

static struct advice advise(const struct arbiter *arbiter, uid_t uid, const struct request *request)
{
	const struct caller caller = caller_of(uid);
	struct advice advice;

	CHECK(arbiter_advise(arbiter, &caller, request, &advice) == 0);
	return advice;
}

/* The only lease of an exact advice; 0: it has none. */
static uint64_t advised(const struct arbiter *arbiter, uid_t uid, const char *text)
{
	const struct request request = request_of("%s", text);
	struct advice advice = advise(arbiter, uid, &request);

	CHECK(advice.n <= 1 && advice.exact);
	return advice.n ? advice.ids[0] : 0;
}

TEST(request_that_fits_needs_no_advice)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);

	CHECK(advised(arbiter, LAB, "cus=30") == 0);
	take(arbiter, LAB, 15);
	CHECK(advised(arbiter, LAB, "cus=30") == 0);
}

TEST(advice_is_empty_for_a_request_that_can_never_fit)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);

	take(arbiter, LAB, 60);
	CHECK(advised(arbiter, LAB, "cus=90") == 0);
	arbiter->gpus[0].draining = true;
	CHECK(advised(arbiter, LAB, "cus=30") == 0);
}

TEST(one_large_lease_goes_before_two_small_ones)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);
	uint64_t large;

	take(arbiter, 0, 15);
	take(arbiter, 0, 15);
	large = take(arbiter, LAB, 30);
	CHECK(advised(arbiter, LAB, "cus=30") == large);
}

TEST(the_lower_class_goes_first_and_then_fewer_cus)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);
	uint64_t small;

	take(arbiter, RT, 15);
	take(arbiter, LAB, 15);
	small = take(arbiter, 0, 15);
	take(arbiter, LAB, 15);
	CHECK(advised(arbiter, RT, "cus=15") == small);
	release(arbiter, small);
	take(arbiter, 0, 13);
	small = take(arbiter, 0, 2);
	CHECK(advised(arbiter, LAB, "cus=2") == small);
}

TEST(advice_names_the_lease_with_enough_queues)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);
	const struct request request = request_of("cus=4 queues=20");
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *lease = reserve(arbiter, LAB, &request, &result);

	take(arbiter, 0, 4);
	CHECK(lease && advised(arbiter, LAB, "cus=4 queues=10") == lease->id);
}

TEST(one_s_own_quota_is_freed_by_one_s_own_leases)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(2);
	uint64_t mine;

	take(arbiter, 0, 10);
	mine = take(arbiter, LAB, 20);
	arbiter->settings->tenants[0].max_leases = (struct limit){ LIMIT_COUNT, 1 };
	CHECK(advised(arbiter, LAB, "cus=20") == mine);
}

TEST(leases_that_end_already_are_not_asked_to)
{
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);
	uint64_t first = take(arbiter, LAB, 30), second = take(arbiter, LAB, 30);

	arbiter_end(arbiter, ledger_find(arbiter, first), RESULT_OK, "");
	/* The end of the other alone does not help. */
	CHECK(advised(arbiter, LAB, "cus=60") == 0 && advised(arbiter, LAB, "cus=30") == second);
}

TEST(many_leases_are_given_up_on_and_it_is_said)
{
	static const struct {
		unsigned cus, least, most;
	} rows[] = {
		{ 60, 0, 0 },           /* all but three would have to go */
		{ 24, 11, ADVICE_MAX }, /* nine tenths of 24 are 22 */
		{ 4, 2, 2 },
	};
	_cleanup_(arbiter_freep) struct arbiter *arbiter = machine(1);

	arbiter->gpus[0].info.queue_slots = arbiter->gpus[0].info.process_slots = 64;
	for (unsigned i = 0; i < 30; i++)
		take(arbiter, LAB, 2);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct request request = request_for(rows[i].cus);
		struct advice advice = advise(arbiter, LAB, &request);

		CHECK(advice.n >= rows[i].least && advice.n <= rows[i].most && !advice.exact);
	}
}

/* ---- against every set ------------------------------------------------------------- */

#define LEASES 8

struct cheapest {
	unsigned n, realtime, guaranteed, cus;
};

static struct cheapest cost_of(const struct arbiter *arbiter, unsigned set)
{
	struct cheapest c = { 0 };

	for (unsigned i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (!(set >> i & 1))
			continue;
		c.n++;
		c.realtime += lease->class == CLASS_REALTIME;
		c.guaranteed += lease->class == CLASS_GUARANTEED;
		for (size_t j = 0; j < lease->n_partitions; j++)
			c.cus += lease->partitions[j].count;
	}
	return c;
}

static uint64_t rank(struct cheapest c)
{
	return (uint64_t)c.n << 48 | (uint64_t)c.realtime << 40 | (uint64_t)c.guaranteed << 32 |
	       c.cus;
}

static uint64_t rank_to_revoke(struct cheapest c)
{
	return (uint64_t)c.guaranteed << 48 | (uint64_t)c.n << 40 | c.cus;
}

/* Would the request fit a ledger that never had the leases of the set? */
static bool would_fit(const struct arbiter *arbiter, const struct caller *caller,
		      const struct request *request, unsigned set)
{
	struct gpu_info infos[4];
	struct arbiter *other;
	struct result result = { 0 };
	struct lease *lease = NULL;
	bool fits;

	for (size_t g = 0; g < arbiter->n_gpus; g++)
		infos[g] = arbiter->gpus[g].info;
	other = arbiter_of(infos, arbiter->n_gpus);
	add_tenant(other, "rt", RT, CLASS_REALTIME);
	add_tenant(other, "lab", LAB, CLASS_GUARANTEED)->max_leases =
		arbiter->settings->tenants[0].max_leases;
	other->settings->tenants[1].max_gpus = arbiter->settings->tenants[1].max_gpus;
	for (unsigned i = 0; i < arbiter->n_leases; i++) {
		const struct lease *from = arbiter->leases[i];

		if (set >> i & 1)
			continue;
		CHECK(lease_new(&lease) == 0);
		CHECK(lease_make_partitions(lease, from->n_partitions) == 0);
		lease->id = other->next_id;
		lease->state = STATE_GRANTED;
		lease->class = from->class;
		lease->owner = from->owner;
		memcpy(lease->tenant, from->tenant, sizeof(lease->tenant));
		lease_set_partitions(lease, from->partitions);
		arbiter_commit(other, lease);
		lease = NULL;
	}
	fits = arbiter_plan(other, caller, request, &lease, &result) == 0;
	lease_free(lease);
	result_done(&result);
	arbiter_free(other);
	return fits;
}

/* Of all sets of these leases; 0: none is needed, or none helps. */
static unsigned cheapest_set(const struct arbiter *arbiter, const struct caller *caller,
			     const struct request *request, unsigned leases,
			     uint64_t (*rank_of)(struct cheapest))
{
	unsigned best = 0;

	if (would_fit(arbiter, caller, request, 0))
		return 0;
	for (unsigned set = 1; set < 1U << arbiter->n_leases; set++)
		if (!(set & ~leases) &&
		    (!best || rank_of(cost_of(arbiter, set)) < rank_of(cost_of(arbiter, best))) &&
		    would_fit(arbiter, caller, request, set))
			best = set;
	return best;
}

static unsigned set_of(const struct arbiter *arbiter, const struct advice *advice)
{
	unsigned set = 0;

	for (size_t i = 0; i < advice->n; i++)
		for (unsigned j = 0; j < arbiter->n_leases; j++)
			if (arbiter->leases[j]->id == advice->ids[i])
				set |= 1U << j;
	return set;
}

static unsigned below(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n;
}

static void random_request(unsigned *seed, unsigned n_gpus, struct request *ret)
{
	*ret = request_for(1);
	ret->n_wants = below(seed, 4) ? 1 : 1 + below(seed, n_gpus);
	for (size_t i = 0; i < ret->n_wants; i++) {
		want_init(&ret->wants[i]);
		ret->wants[i].cus = 1 + below(seed, 60);
		ret->wants[i].queues = 1 + below(seed, 12);
		ret->wants[i].vram = (uint64_t)below(seed, 12) << 30;
	}
	if (below(seed, 2))
		snprintf(ret->wants[0].gpu, sizeof(ret->wants[0].gpu), "0");
}

/* As many GPUs and leases as there can be, and a request that all of them keep out. */
static struct arbiter *crowd(struct gpu_info infos[REQUEST_WANTS], struct request *ret)
{
	const struct caller caller = caller_of(3);
	struct result result = { 0 };
	struct arbiter *arbiter;
	struct lease *lease;

	for (unsigned i = 0; i < REQUEST_WANTS; i++) {
		infos[i] = radeon_vii("");
		snprintf(infos[i].name, sizeof(infos[i].name), "gpu%02u", i);
	}
	arbiter = arbiter_of(infos, REQUEST_WANTS);
	*ret = request_for(1);
	ret->wants[0].queues = 1;
	/* Without reserve(), which checks the whole ledger each time. */
	for (unsigned i = 0; i < 7 * REQUEST_WANTS; i++) {
		CHECK(arbiter_plan(arbiter, &caller, ret, &lease, &result) == 0);
		arbiter_add_holder(arbiter, arbiter_commit(arbiter, lease)->id);
	}
	*ret = request_for(37);
	ret->n_wants = REQUEST_WANTS;
	for (unsigned i = 0; i < REQUEST_WANTS; i++) {
		ret->wants[i] = ret->wants[0];
		ret->wants[i].any_shape = ret->wants[i].exact = true;
		ret->wants[i].queues = 24;
	}
	return arbiter;
}

TEST(long_search_for_advice_ends_early_and_tells_it)
{
	struct gpu_info infos[REQUEST_WANTS];
	struct request request;
	_cleanup_(arbiter_freep) struct arbiter *arbiter = crowd(infos, &request);
	struct advice advice = advise(arbiter, LAB, &request);

	CHECK(advice.n == 0 && advice.cut && !advice.exact);
}

TEST(different_wants_for_any_of_many_gpus_are_limited)
{
	const struct caller caller = caller_of(LAB);
	struct gpu_info infos[REQUEST_WANTS];
	struct result result = { 0 };
	struct request request;
	_cleanup_(arbiter_freep) struct arbiter *arbiter = crowd(infos, &request);
	struct lease *lease;

	for (unsigned i = 0; i < 8; i++) /* 8 different wants on 64 GPUs */
		request.wants[i].cus = 30 + i;
	CHECK(arbiter_plan(arbiter, &caller, &request, &lease, &result) < 0);
	CHECK(result.kind == RESULT_NO_CAPACITY);
	result_done(&result);
	request.wants[8].cus = 38;
	CHECK(arbiter_plan(arbiter, &caller, &request, &lease, &result) < 0);
	CHECK(result.kind == RESULT_INVALID_REQUEST && strstr(result.sentence, "576"));
	result_done(&result);
}

TEST(every_member_of_an_advice_is_needed_and_few_sets_are_cheaper)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), advised = 0, none = 0;
	unsigned cheapest = 0, extra = 0;

	for (unsigned round = 0; round < check_rounds(200, 4000); round++) {
		unsigned n_gpus = 1 + below(&seed, 3), best;
		struct arbiter *arbiter = machine(n_gpus);
		uid_t uid = below(&seed, 3);
		const struct caller caller = caller_of(uid);
		struct result result = { 0 };
		struct request request;
		struct advice advice;

		for (unsigned i = 0; i < LEASES; i++) {
			random_request(&seed, n_gpus, &request);
			reserve(arbiter, below(&seed, 3), &request, &result);
		}
		if (below(&seed, 3) == 0)
			arbiter->settings->tenants[0].max_leases = (struct limit){ LIMIT_COUNT, 1 };
		if (below(&seed, 3) == 0)
			arbiter->settings->tenants[1].max_gpus = (struct limit){ LIMIT_COUNT, 1 };
		random_request(&seed, n_gpus, &request);
		advice = advise(arbiter, uid, &request);
		best = cheapest_set(arbiter, &caller, &request, UINT_MAX, rank);
		if (advice.n > 0) {
			unsigned set = set_of(arbiter, &advice);
			bool same;

			CHECK(would_fit(arbiter, &caller, &request, set));
			for (unsigned j = 0; j < arbiter->n_leases; j++)
				CHECK(!(set >> j & 1) ||
				      !would_fit(arbiter, &caller, &request, set & ~(1U << j)));
			same = rank(cost_of(arbiter, set)) == rank(cost_of(arbiter, best));
			CHECK(best && (same || !advice.exact));
			CHECK(advice.n > 1 || advice.exact);
			cheapest += same;
			extra += cost_of(arbiter, set).n - cost_of(arbiter, best).n;
			advised++;
		} else {
			/* It says so if its steps were too few to find one. */
			CHECK(advice.cut ? !advice.exact : best == 0 && advice.exact);
			none++;
		}
		result_done(&result);
		arbiter_free(arbiter);
	}
	printf("%u with advice, %u without; %u are the cheapest, %u leases more than needed in all\n",
	       advised, none, cheapest, extra);
	CHECK_REACHED(advised > 50 && none > 10 && cheapest >= advised * 95 / 100);
}

/* The leases that advice_find() chooses to revoke for the request; *ret_best: the cheapest set of them. */
static unsigned revoked(struct arbiter *arbiter, uid_t uid, const struct request *request,
			unsigned *ret_best)
{
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;
	const struct caller caller = caller_of(uid);
	struct advice advice = { 0 };
	unsigned lower = 0;

	CHECK(plan_lease(arbiter, &caller, request, &lease, &result) == 0);
	for (unsigned j = 0; j < arbiter->n_leases; j++)
		lower |= arbiter->leases[j]->class < lease->class ? 1U << j : 0;
	CHECK(advice_find(arbiter, lease, ADVICE_REVOCABLE, &advice) >= 0 && !advice.cut);
	*ret_best = cheapest_set(arbiter, &caller, request, lower, rank_to_revoke);
	return set_of(arbiter, &advice);
}

TEST(leases_to_revoke_are_the_cheapest_set_almost_always)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), revokes = 0, cheapest = 0, spared = 0;

	for (unsigned round = 0; round < check_rounds(400, 4000); round++) {
		unsigned n_gpus = 1 + below(&seed, 3), set, best;
		struct arbiter *arbiter = machine(n_gpus);
		struct result result = { 0 };
		struct request request;

		for (size_t i = 0; i < arbiter->settings->n_tenants; i++)
			arbiter->settings->tenants[i].preempt = true;
		for (unsigned i = 0; i < LEASES; i++) {
			random_request(&seed, n_gpus, &request);
			reserve(arbiter, below(&seed, 2) ? LAB : 0, &request, &result);
		}
		random_request(&seed, n_gpus, &request);
		set = revoked(arbiter, RT, &request, &best);
		CHECK(!set == !best);
		revokes += set != 0;
		cheapest += set && rank_to_revoke(cost_of(arbiter, set)) ==
					   rank_to_revoke(cost_of(arbiter, best));
		spared += set &&
			  cost_of(arbiter, set).guaranteed == cost_of(arbiter, best).guaranteed;
		result_done(&result);
		arbiter_free(arbiter);
	}
	printf("%u with revocations; %u are the cheapest, %u revoke as few guaranteed leases\n",
	       revokes, cheapest, spared);
	CHECK_REACHED(revokes > 100 && cheapest >= revokes * 95 / 100 &&
		      spared >= revokes * 98 / 100);
}
