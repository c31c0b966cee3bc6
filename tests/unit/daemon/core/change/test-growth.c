/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How adaptable leases divide the CUs of a GPU: shares, promises, rounds of growth. */

#include "check.h"
#include "core/decide/borrow.h"
#include "lend-rig.h"
#include "wait-rig.h"

static bool overlaps(const struct lease *a, const struct lease *b)
{
	return cuset_overlap(&a->partitions[0].cus, &b->partitions[0].cus);
}

/* No mask changes although a minute passes. */
static bool is_stable(struct lending *l)
{
	uint64_t before = 0, after = 0;

	for (size_t i = 0; i < l->s.arbiter->n_leases; i++)
		before += l->s.arbiter->leases[i]->generation;
	for (int i = 0; i < 30; i++)
		pass(l, 2 * SECOND_USEC);
	for (size_t i = 0; i < l->s.arbiter->n_leases; i++)
		after += l->s.arbiter->leases[i]->generation;
	return after == before;
}

FIXTURE(struct lending, l, *l = lending_of(1), lending_done(l));

/* The bases are in different engines. */
TEST_WITH(second_borrower_has_its_share_when_the_first_has_acknowledged, struct lending *l)
{
	struct lease *a = borrow(l, 15, 60), *b = borrow(l, 15, 60);

	CHECK(b->state == STATE_ACTIVATING && a->generation == 2);
	CHECK(cus_of(a) == 30 && cus_of(b) == 30 && !overlaps(a, b));
	follow(l, a);
	CHECK(b->state == STATE_GRANTED && cus_of(b) == 30 && b->generation == 1);
	CHECK(cuset_empty(&b->partitions[0].adaptation->promised));
	CHECK(is_stable(l));
}

/* Each has its base in one of the two engines that nobody lends. */
TEST_WITH(two_borrowers_of_lent_engines_have_half_each, struct lending *l)
{
	struct lease *a, *b;

	CHECK(keep_inactive(l, 30));
	a = borrow(l, 1, 60);
	b = borrow(l, 1, 60);
	CHECK(cus_of(a) == 30 && cus_of(b) == 30);
	follow(l, a);
	CHECK(b->state == STATE_GRANTED && is_stable(l));
}

/* Two start at once: the third is admitted before the first has acknowledged anything. */
TEST_WITH(borrowers_that_start_at_once_have_their_shares_when_all_have_acknowledged,
	  struct lending *l)
{
	struct lease *a = borrow(l, 4, 60), *b = borrow(l, 4, 60), *c = borrow(l, 4, 60);

	CHECK(b->state == STATE_ACTIVATING && c->state == STATE_ACTIVATING);
	follow(l, a);
	CHECK(cus_of(a) == 20 && cus_of(b) == 20 && cus_of(c) == 20);
	CHECK(b->state == STATE_GRANTED && c->state == STATE_GRANTED);
	CHECK(b->generation == 2 && c->generation == 1); /* b was told less before it began */
	follow(l, b);
	CHECK(is_stable(l));
}

/* A lease that needs no CU of others begins with what is free. */
TEST_WITH(promised_mask_is_granted_at_once_when_the_others_have_acknowledged, struct lending *l)
{
	struct lease *a = borrow(l, 15, 45), *b = borrow(l, 15, 60);
	uint64_t now = l->now;

	CHECK(b->state == STATE_GRANTED && cus_of(b) == 15 && cus_of(a) == 30);
	CHECK(cuset_count(&b->partitions[0].adaptation->promised) == 30 && a->generation == 2);
	CHECK(a->deadline_usec == UINT64_MAX); /* the mask of b is no reason to enforce */
	follow(l, a);
	CHECK(cus_of(b) == 30 && b->generation == 2 && l->now == now);
	follow(l, b);
	CHECK(cuset_empty(&b->partitions[0].adaptation->promised) && is_stable(l));
}

/* Masks of a GPU grow once in activate-min-interval: gpuarbctl-rt(1) relies on it. */
TEST_WITH(promised_mask_waits_for_the_interval_of_growth, struct lending *l)
{
	struct lease *a = borrow(l, 15, 45), *b = borrow(l, 15, 60);

	l->s.arbiter->gpus[0].lend.grown_usec = l->now - SECOND_USEC / 2;
	follow(l, a);
	CHECK(cus_of(b) == 15);
	CHECK(arbiter_next_deadline(l->s.arbiter) == l->now + SECOND_USEC / 2);
	pass(l, SECOND_USEC / 2);
	CHECK(cus_of(b) == 30);
}

/* Each change of a mask stops queues on all GPUs of the lease. */
TEST(mask_on_one_gpu_waits_for_the_interval_after_one_on_another)
{
	_cleanup_(lending_done) struct lending l = lending_of(2);
	struct lease *fixed[] = { grant_on(&l.s, LAB, "0", 30), grant_on(&l.s, LAB, "1", 30) };
	struct lease *gang = reserve_as(
		&l, ANY, "cus=4 cus-min=4 cus-max=60 | cus=4 cus-min=4 cus-max=60; adaptable=1");

	release(l.s.arbiter, fixed[0]->id);
	release(l.s.arbiter, fixed[1]->id);
	settle(&l);
	pass(&l, 2 * SECOND_USEC);
	CHECK(gang->generation == 2);
	follow(&l, gang);
	CHECK(gang->generation == 2 && arbiter_next_deadline(l.s.arbiter) == l.now + SECOND_USEC);
	pass(&l, SECOND_USEC);
	follow(&l, gang);
	CHECK(gang->generation == 3);
	CHECK(gang->partitions[0].count == 60 && gang->partitions[1].count == 60);
}

TEST_WITH(lease_begins_without_the_promised_cus_that_one_lease_has_not_returned, struct lending *l)
{
	struct lease *a = borrow(l, 4, 30), *b = borrow(l, 4, 30), *c;

	c = borrow(l, 4, 60);
	CHECK(c->state == STATE_ACTIVATING && cus_of(c) == 20);
	CHECK(cus_of(a) < 30 && cus_of(b) < 30);
	follow(l, borrow_contested(l->s.arbiter, c));
	CHECK(c->state == STATE_GRANTED && cus_of(c) < 20);
	CHECK(cuset_count(&c->partitions[0].adaptation->promised) == 20);
	follow(l, a->acknowledged < a->generation ? a : b);
	CHECK(cus_of(c) == 20 && c->generation == 2);
}

TEST_WITH(realtime_lease_that_claims_promised_cus_ends_the_promise, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 30), *a = borrow(l, 15, 45), *b = borrow(l, 15, 60);
	struct cuset promised = b->partitions[0].adaptation->promised;

	CHECK(cuset_count(&promised) > cus_of(b));
	CHECK(cuset_overlap(&promised, &rt->partitions[0].cus));
	CHECK(activate(l, rt->id, true) == 0);
	CHECK(cuset_empty(&b->partitions[0].adaptation->promised));
	follow(l, a);
	follow(l, b);
	CHECK(rt->state == STATE_GRANTED);
	CHECK(!overlaps(a, b) && !overlaps(rt, a) && !overlaps(rt, b));
}

/* Two requests of one turn: the promise still names CUs that the first one was granted. */
TEST_WITH(lease_is_not_granted_promised_cus_that_a_fixed_lease_got_in_the_same_turn,
	  struct lending *l)
{
	struct lease *a = borrow(l, 15, 45), *b = borrow(l, 15, 60), *fixed, *c;

	l->s.arbiter->gpus[0].lend.grown_usec = l->now - SECOND_USEC / 2;
	follow(l, a);
	fixed = grant_as(&l->s, ANY, "cus=15");
	CHECK(fixed->state == STATE_GRANTED);
	CHECK(cuset_overlap(&b->partitions[0].adaptation->promised, &fixed->partitions[0].cus));
	c = borrow(l, 4, 60);
	CHECK(partition_is_promised(&c->partitions[0]) && !overlaps(fixed, c));
	follow(l, a);
	follow(l, b);
	CHECK(!overlaps(fixed, a) && !overlaps(fixed, b) && !overlaps(fixed, c));
}

TEST_WITH(end_of_a_lease_ends_its_promise, struct lending *l)
{
	struct lease *a = borrow(l, 15, 45), *b = borrow(l, 15, 60);

	release(l->s.arbiter, b->id);
	settle(l);
	follow(l, a);
	CHECK(cus_of(a) == 30);
	pass(l, 3 * SECOND_USEC);
	CHECK(cus_of(a) == 45 && a->generation == 3);
}

/* The lease of the same user refuses the exclusive one while it is active. */
TEST_WITH(activation_that_keeps_out_a_barring_lease_of_its_user_opens_the_gpu, struct lending *l)
{
	struct lease *own = keep_inactive(l, 8), *waiting, *small;

	CHECK(grant_on(&l->s, OTHER, "any", 22));
	for (size_t i = 0; i < l->s.arbiter->settings->n_tenants; i++)
		l->s.arbiter->settings->tenants[i].exclusive = EXCLUSIVE_ASK;
	waiting = ask(&l->s, VR, request_of("cus=10; exclusive=1"));
	CHECK(waiting && waiting->state == STATE_WAITING);
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		small = grant_on(&l->s, ANY, "any", 4);
		release(l->s.arbiter, small->id);
		CHECK(grant_waiting(&l->s, NULL) == 0);
	}
	CHECK(l->s.arbiter->gpus[0].barrier.rank.id == waiting->id);
	CHECK(activate(l, own->id, true) == 0 && grant_waiting(&l->s, NULL) == 0);
	CHECK(l->s.arbiter->gpus[0].barrier.rank.id == 0 && grant_on(&l->s, ANY, "any", 4));
}

/* Free CUs are not kept for ever while a lease does not answer. */
TEST_WITH(round_of_growth_ends_a_promise_that_was_not_kept, struct lending *l)
{
	struct lease *a = borrow(l, 15, 45), *b = borrow(l, 15, 60);

	CHECK(cuset_count(&b->partitions[0].adaptation->promised) == 30);
	pass(l, SECOND_USEC);
	CHECK(cuset_count(&b->partitions[0].adaptation->promised) == 30);
	pass(l, SECOND_USEC);
	CHECK(cuset_empty(&b->partitions[0].adaptation->promised));
	follow(l, a);
	pass(l, 2 * SECOND_USEC);
	CHECK(cus_of(a) == 30 && cus_of(b) == 30);
}

/* What a lease was promised before it was late is divided among the others. */
TEST_WITH(promise_to_a_lease_that_is_late_ends, struct lending *l)
{
	struct lease *rt = keep_inactive(l, 15), *fixed, *late, *other, *due;
	uint64_t generation = 0;

	fixed = reserve_as(l, LAB, "cus=15");
	late = borrow(l, 1, 60);
	other = borrow(l, 1, 60);
	follow(l, late);
	CHECK(activate(l, rt->id, true) == 0 && cus_of(late) + cus_of(other) == 30);
	release(l->s.arbiter, fixed->id);
	follow(l, borrow(l, 1, 1));
	CHECK(cuset_count(&late->partitions[0].adaptation->promised) > cus_of(late));
	l->now += SECOND_USEC;
	follow(l, other);
	CHECK(arbiter_next_enforce_step(l->s.arbiter, l->now, &due) == ENFORCE_STEP_REPORT);
	CHECK(due == late && late->lend.late);
	for (int i = 0; i < 10; i++) {
		generation = other->generation;
		pass(l, 2 * SECOND_USEC);
		follow(l, other);
	}
	CHECK(cus_of(other) > 15 && other->generation == generation);
	CHECK(cuset_empty(&late->partitions[0].adaptation->promised));
}

static struct lease *borrow_as(struct lending *l, uid_t uid, unsigned least, unsigned most)
{
	return reserve_as(l, uid, "cus=%u cus-min=%u cus-max=%u; class=besteffort adaptable=1",
			  least, least, most);
}

/* Lets time pass until all leases have followed and no mask changes any more. */
static void balance(struct lending *l)
{
	for (int i = 0; i < 20; i++) {
		for (size_t j = 0; j < l->s.arbiter->n_leases; j++)
			follow(l, l->s.arbiter->leases[j]);
		pass(l, 2 * SECOND_USEC);
	}
}

TEST(weights_divide_the_cus_that_are_borrowed)
{
	static const unsigned weights[][2] = { { 100, 100 }, { 300, 100 }, { 100, 300 }, { 0, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
		_cleanup_(lending_done) struct lending l = lending_of(1);
		struct settings *settings = l.s.arbiter->settings;
		struct lease *a, *b;
		uint64_t generation;
		double fairness;

		for (size_t j = 0; j < settings->n_tenants; j++)
			settings->tenants[j].weight =
				weights[i][strcmp(settings->tenants[j].name, "lab") == 0];
		CHECK(lend_fairness(l.s.arbiter, 0) == 1);
		a = borrow_as(&l, ANY, 4, 60);
		b = borrow_as(&l, LAB, 4, 60);
		balance(&l);
		fairness = lend_fairness(l.s.arbiter, 0);
		printf("weights %u and %u: %u and %u CUs, fairness %.3f\n", weights[i][0],
		       weights[i][1], cus_of(a), cus_of(b), fairness);
		CHECK(fairness > 0.89); /* whole rectangles */
		if (weights[i][0] > weights[i][1])
			CHECK(cus_of(a) >= 2 * cus_of(b));
		if (weights[i][0] < weights[i][1])
			CHECK(cus_of(b) >= 2 * cus_of(a));
		generation = a->generation + b->generation;
		balance(&l);
		CHECK(a->generation + b->generation == generation); /* it is settled */
	}
}

/* The third begins with what fits beside the present bases; then the CUs are divided anew. */
TEST_WITH(leases_shrink_until_none_is_far_below_its_weighted_share, struct lending *l)
{
	struct lease *heavy, *first, *second;

	add_tenant(l->s.arbiter, "heavy", OTHER, CLASS_BESTEFFORT)->weight = 3 * TENANT_WEIGHT;
	heavy = borrow_as(l, OTHER, 4, 60);
	first = borrow_as(l, ANY, 1, 60);
	second = borrow_as(l, ANY, 1, 60);
	balance(l);
	printf("%u, %u and %u CUs of 60\n", cus_of(heavy), cus_of(first), cus_of(second));
	/* The other two are of one user: 45, 7.5 and 7.5. */
	CHECK(cus_of(heavy) >= 42 && cus_of(first) >= 7 && cus_of(second) >= 7);
	CHECK(is_stable(l));
}

/* Beside the fixed lease, in its engine, 4 CUs in each engine would be the largest rectangle. */
TEST_WITH(lease_begins_with_its_base_in_engines_with_room, struct lending *l)
{
	struct lease *fixed = grant(&l->s, LAB, 11), *a = borrow(l, 4, 60);

	CHECK(fixed && cus_of(a) == 45 && !overlaps(a, fixed) && a->generation == 1);
	CHECK(cuset_within(&a->partitions[0].adaptation->base, &a->partitions[0].cus));
	CHECK(cuset_count(&a->partitions[0].adaptation->base) == 4);
	CHECK(is_stable(l));
}

TEST_WITH(bases_of_leases_move_within_their_masks, struct lending *l)
{
	struct lease *leases[4] = { 0 };
	unsigned moved = 0;

	for (unsigned i = 0; i < 40; i++) {
		size_t n = i * 5 % 7 % 4;
		struct cuset bases[4];

		for (size_t j = 0; j < 4; j++)
			if (leases[j])
				bases[j] = leases[j]->partitions[0].adaptation->base;
		if (leases[n])
			release(l->s.arbiter, leases[n]->id);
		leases[n] = borrow(l, 1 + i % 8, 60);
		balance(l);
		for (size_t j = 0; j < 4; j++) {
			const struct partition *p = leases[j] ? &leases[j]->partitions[0] : NULL;

			if (!p)
				continue;
			CHECK(leases[j]->state == STATE_GRANTED && leases[j]->lend.moves == 0);
			CHECK(cuset_within(&p->adaptation->base, &p->cus));
			moved += j != n && !cuset_equal(&bases[j], &p->adaptation->base);
		}
	}
	CHECK(moved > 0);
}

TEST(five_equal_leases_on_an_mi300x_have_nearly_the_same)
{
	_cleanup_(lending_done) struct lending l = { .now = 100 * SECOND_USEC };
	struct gpu_info info = radeon_vii("0000:03:00.0");
	struct lease *leases[5];

	info.geometry = (struct geometry){ .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };
	CHECK(geometry_spread(&info.geometry, 304) == 0);
	l.s.arbiter = arbiter_of(&info, 1);
	for (size_t i = 0; i < ARRAY_SIZE(leases); i++) {
		leases[i] = borrow(&l, 1, 304);
		balance(&l);
	}
	for (size_t i = 0; i < ARRAY_SIZE(leases); i++) {
		printf("%u ", cus_of(leases[i]));
		CHECK(cus_of(leases[i]) >= 56);
	}
	printf("CUs\n");
	CHECK(is_stable(&l));
}

/* Seven leases of one user, and one of another. Returns the CUs of this one. */
static unsigned beside_seven(bool by_lease, unsigned *ret_seven)
{
	struct lending l = lending_of(1);
	struct lease *seven[7], *one;
	unsigned cus;

	l.s.arbiter->settings->share_by_lease = by_lease;
	for (size_t i = 0; i < ARRAY_SIZE(seven); i++)
		seven[i] = borrow_as(&l, ANY, 1, 60);
	one = borrow_as(&l, OTHER, 1, 60);
	balance(&l);
	*ret_seven = 0;
	for (size_t i = 0; i < ARRAY_SIZE(seven); i++)
		*ret_seven += cus_of(seven[i]);
	cus = cus_of(one);
	CHECK(is_stable(&l));
	lending_done(&l);
	return cus;
}

TEST(users_share_before_their_leases_do)
{
	unsigned seven, one = beside_seven(false, &seven);

	printf("%u and %u CUs of 60\n", seven, one);
	CHECK(one >= 24 && seven >= 24); /* whole rectangles */
}

TEST(leases_share_alike_where_policy_says_so)
{
	unsigned seven, one = beside_seven(true, &seven);

	printf("%u and %u CUs of 60\n", seven, one);
	CHECK(one <= 12 && seven >= 48);
}

/* A lease that asks for less than its share leaves the rest to the others. */
TEST_WITH(share_of_a_lease_that_asks_for_less_goes_to_the_others, struct lending *l)
{
	struct lease *a = borrow_as(l, ANY, 4, 8), *b = borrow_as(l, LAB, 4, 60);

	balance(l);
	CHECK(cus_of(a) == 8 && cus_of(b) >= 25);
}

/* Otherwise the masks of all leases would be adjusted once for each GPU. */
TEST(one_round_divides_all_gpus_that_are_due)
{
	_cleanup_(lending_done) struct lending l = lending_of(2);
	struct arbiter *arbiter = l.s.arbiter;
	struct lease *fixed = grant_as(&l.s, ANY, "cus=15 | cus=15"), *next = NULL;

	CHECK(fixed && reserve_as(&l, ANY,
				  "cus=15 cus-min=15 cus-max=60 | cus=15 cus-min=15 cus-max=60; "
				  "adaptable=1"));
	arbiter_end(arbiter, fixed, RESULT_OK, "end");
	CHECK(arbiter_observe(arbiter, NULL, 0) == 0);
	settle(&l);
	CHECK(arbiter->gpus[0].lend.grow_usec && arbiter->gpus[1].lend.grow_usec);
	CHECK(arbiter_plan_growth(arbiter, l.now + 60 * SECOND_USEC, &next) == 1);
	CHECK(!arbiter->gpus[0].lend.grow_usec && !arbiter->gpus[1].lend.grow_usec);
	lease_free(next);
}

/* 250 in a long run. */
TEST(many_adaptable_leases_have_fair_shares)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");
	struct caller caller = caller_of(ANY);
	struct request request = request_for(1);
	struct result result = { 0 };
	const unsigned crowd = check_size(60, 250);
	struct arbiter *a;
	struct lease *lease;

	info.geometry = (struct geometry){ .xccs = 1, .engines = 8, .arrays = 2, .array_cus = 16 };
	CHECK(geometry_spread(&info.geometry, 256) == 0);
	info.queue_slots = info.process_slots = 1024;
	request.adaptable = true;
	request.wants[0].cus_min = 1;
	request.wants[0].cus_max = 4;
	a = arbiter_of(&info, 1);
	for (unsigned i = 0; i < crowd; i++) {
		CHECK(arbiter_plan(a, &caller, &request, &lease, &result) == 0);
		lease = arbiter_commit(a, lease);
		arbiter_add_holder(a, lease->id);
		for (size_t j = 0; j < a->n_leases; j++)
			arbiter_acknowledge(a, a->leases[j]->id, a->leases[j]->generation);
		arbiter_lend(a, (i + 1) * 10 * SECOND_USEC);
	}
	for (unsigned i = 0; i < 5; i++) {
		while (arbiter_plan_growth(a, (1000 + i) * 10 * SECOND_USEC, &lease) > 0)
			arbiter_commit(a, lease);
		for (size_t j = 0; j < a->n_leases; j++)
			arbiter_acknowledge(a, a->leases[j]->id, a->leases[j]->generation);
		arbiter_lend(a, (1000 + i) * 10 * SECOND_USEC);
	}
	CHECK(lend_fairness(a, 0) > 0.5);
	arbiter_free(a);
}

#define CROWDED_GPUS 64U

/* A thousand in a long run. */
TEST(many_leases_on_64_gpus_have_their_leasts)
{
	struct gpu_info infos[CROWDED_GPUS];
	_cleanup_(scene_done) struct scene s = { 0 };
	const unsigned crowd = check_size(100, 1000);
	struct lease *next;

	for (unsigned i = 0; i < CROWDED_GPUS; i++) {
		infos[i] = radeon_vii("");
		infos[i].queue_slots = infos[i].process_slots = 64;
		snprintf(infos[i].name, sizeof(infos[i].name), "gpu%02u", i);
	}
	s.arbiter = arbiter_of(infos, CROWDED_GPUS);
	for (unsigned i = 0; i < crowd; i++) {
		/* The last ones choose. */
		const char *gpu = i + 8 < crowd ? infos[i % CROWDED_GPUS].name : "any";

		CHECK(grant_as(&s, i % 32,
			       "gpu=%s cus=%u cus-min=%u cus-max=60 queues=1; adaptable=1", gpu,
			       1 + i % 3, 1 + i % 3));
	}
	for (unsigned turn = 1; turn <= 2; turn++) {
		uint64_t now = turn * 100 * SECOND_USEC;

		for (size_t i = 0; i < crowd; i++)
			arbiter_acknowledge(s.arbiter, s.arbiter->leases[i]->id,
					    s.arbiter->leases[i]->generation);
		arbiter_lend(s.arbiter, now);
		while (arbiter_plan_growth(s.arbiter, now, &next) > 0)
			arbiter_commit(s.arbiter, next);
	}
	check_promises(s.arbiter);
	for (size_t i = 0; i < crowd; i++)
		CHECK(s.arbiter->leases[i]->partitions[0].count >= 1 + i % 3);
	for (unsigned i = 0; i < CROWDED_GPUS; i++)
		CHECK(s.arbiter->gpus[i].n_partitions >= (crowd - 8) / CROWDED_GPUS);
}

/* The promise ends with the grant, and no other round was due. */
TEST_WITH(a_lease_grows_into_what_a_grant_leaves_of_its_promise, struct lending *l)
{
	struct settings *settings = l->s.arbiter->settings;
	struct lease *a, *fixed;

	settings->activate_min_interval_usec = 10 * SECOND_USEC;
	a = borrow(l, 4, 60);
	fixed = reserve_as(l, LAB, "cus=30");
	follow(l, a);
	CHECK(cus_of(a) == 30 && fixed->state == STATE_GRANTED);
	release(l->s.arbiter, fixed->id);
	pass(l, settings->grow_delay_usec);
	CHECK(cus_of(a) == 30 && cuset_count(&a->partitions[0].adaptation->promised) == 60);
	CHECK(reserve_as(l, LAB, "cus=15")->state == STATE_GRANTED);
	CHECK(cuset_empty(&a->partitions[0].adaptation->promised));
	pass(l, 10 * SECOND_USEC);
	CHECK(cus_of(a) == 45);
}

/* ---- a base that has no room in what the lease has ------------------------------------------ */

/* The lease has its base, one engine, and no more; then 9 CUs of each other engine are free. */
static struct lease *crowded(struct lending *l)
{
	struct lease *lease = borrow(l, 15, 60), *fixed = reserve_as(l, LAB, "cus=45");

	balance(l);
	CHECK(cus_of(lease) == 15);
	release(l->s.arbiter, fixed->id);
	settle(l);
	CHECK(cus_of(reserve_as(l, LAB, "cus=18")) == 18);
	return lease;
}

static const struct adaptation *adaptation_of(const struct lease *lease)
{
	return lease->partitions[0].adaptation;
}

/* Until the lease is promised a base on idle CUs, which it gets when it may change again. */
static void await_promised_base(struct lending *l, struct lease *lease)
{
	lease->lend.rests_usec = l->now + 60 * SECOND_USEC;
	for (int i = 0; i < 10 && cuset_empty(&adaptation_of(lease)->promised_base); i++)
		pass(l, SECOND_USEC);
	CHECK(!cuset_empty(&adaptation_of(lease)->promised_base) && cus_of(lease) == 15);
}

TEST_WITH(base_moves_to_idle_cus_with_the_growth, struct lending *l)
{
	struct lease *lease = crowded(l);

	balance(l);
	CHECK(cus_of(lease) == 36 && is_stable(l));
	CHECK(cuset_count(&adaptation_of(lease)->base) == 15);
	CHECK(cuset_within(&adaptation_of(lease)->base, &lease->partitions[0].cus));
	CHECK(reserve_as(l, LAB, "cus=18")); /* and only that is charged */
}

TEST_WITH(base_does_not_move_to_cus_that_a_lending_lease_has_got, struct lending *l)
{
	struct lease *lease = crowded(l), *lending;

	await_promised_base(l, lease);
	lending = keep_inactive(l, 27);
	CHECK(lending &&
	      cuset_overlap(&adaptation_of(lease)->promised_base, &lending->partitions[0].cus));
	pass(l, 60 * SECOND_USEC);
	balance(l);
	CHECK(!cuset_overlap(&adaptation_of(lease)->base, &lending->partitions[0].cus) &&
	      is_stable(l));
}

TEST_WITH(base_does_not_move_to_cus_that_a_floor_keeps_by_now, struct lending *l)
{
	struct lease *lease = crowded(l);

	await_promised_base(l, lease);
	add_tenant(l->s.arbiter, "floor", OTHER, CLASS_GUARANTEED)->reserved_cus =
		(struct limit){ LIMIT_COUNT, 27 };
	pass(l, 60 * SECOND_USEC);
	balance(l);
	CHECK(is_stable(l) && reserve_as(l, OTHER, "cus=27"));
}

/* max-shader-engines counts the engines of bases. */
TEST_WITH(base_does_not_move_to_more_engines_than_the_user_may_have, struct lending *l)
{
	struct lease *lease;

	add_tenant(l->s.arbiter, "engines", ANY, CLASS_BESTEFFORT)->max_engines =
		(struct limit){ LIMIT_COUNT, 2 };
	lease = crowded(l);
	balance(l);
	CHECK(__builtin_popcount(cuset_engines(&adaptation_of(lease)->base)) <= 2);
	CHECK(is_stable(l) && reserve_as(l, ANY, "cus=1"));
}

TEST_WITH(base_moves_where_the_user_may_have_all_engines, struct lending *l)
{
	add_tenant(l->s.arbiter, "engines", ANY, CLASS_BESTEFFORT)->max_engines =
		(struct limit){ LIMIT_PERCENT, 100 };
	await_promised_base(l, crowded(l));
}

/* ---- the drawing of gpuarb(7) ------------------------------------------------------------ */

/* Has it so many CUs in the engines 0 and 2, and in 1 and 3? */
static bool has(const struct lease *lease, unsigned even, unsigned odd)
{
	const struct cuset *cus = &lease->partitions[0].cus;

	for (unsigned e = 0; e < 4; e++)
		if (cuset_count_word(cus->pair[e]) != (e % 2 ? odd : even))
			return false;
	return true;
}

static void all_follow(struct lending *l)
{
	for (size_t i = 0; i < l->s.arbiter->n_leases; i++)
		follow(l, l->s.arbiter->leases[i]);
	pass(l, 10 * SECOND_USEC);
}

TEST_WITH(three_programs_have_what_the_manual_draws, struct lending *l)
{
	struct lease *a = borrow(l, 1, 60), *b, *c;

	CHECK(has(a, 15, 15));
	b = borrow(l, 1, 60);
	all_follow(l);
	CHECK(has(a, 0, 15) && has(b, 15, 0));
	c = borrow(l, 1, 60);
	all_follow(l);
	CHECK(has(a, 0, 10) && has(b, 10, 0) && has(c, 5, 5));
	release(l->s.arbiter, a->id);
	for (unsigned i = 0; i < 3; i++)
		all_follow(l);
	CHECK(has(b, 15, 0) && has(c, 0, 15));
}
