/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which of several GPUs a request gets: what a person would choose. */

#include "check.h"
#include "core/decide/borrow.h"
#include "core/ledger/cover.h"
#include "lend-rig.h"
#include "wait-rig.h"

#define MOST 10000U /* CUs: of every GPU all */

static struct gpu_info card(const char *name, unsigned engines, unsigned cus)
{
	struct gpu_info info = radeon_vii(name);

	info.geometry.engines = engines;
	info.process_slots = info.queue_slots = 128;
	CHECK(geometry_spread(&info.geometry, cus) == 0);
	return info;
}

static struct gpu_info vii(unsigned i)
{
	char name[GPU_NAME_MAX];

	snprintf(name, sizeof(name), "0000:%02x:00.0", 3 + i);
	return card(name, 4, 60);
}

static struct gpu_info igpu(const char *name)
{
	return card(name, 1, 2);
}

static struct lending machine(const struct gpu_info *gpus, size_t n)
{
	struct lending l = { .s.arbiter = arbiter_of(gpus, n), .now = 100 * SECOND_USEC };

	add_tenant(l.s.arbiter, "vr", VR, CLASS_REALTIME);
	add_tenant(l.s.arbiter, "lab", LAB, CLASS_GUARANTEED);
	return l;
}

static struct lending equal_machine(size_t n)
{
	struct gpu_info gpus[16];

	for (unsigned i = 0; i < n; i++)
		gpus[i] = vii(i);
	return machine(gpus, n);
}

/* A plain program on the GPU that is chosen; all holders follow their masks. */
static unsigned run_as(struct lending *l, unsigned most)
{
	struct lease *lease = borrow(l, 1, most);
	const struct arbiter *arbiter = l->s.arbiter;

	CHECK(lease);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->acknowledged < arbiter->leases[i]->generation)
			follow(l, arbiter->leases[i]);
	pass(l, 10 * SECOND_USEC);
	return lease->partitions[0].gpu;
}

static unsigned run(struct lending *l)
{
	return run_as(l, MOST);
}

/* On a named GPU. */
static struct lease *fix_on(struct lending *l, uid_t uid, const char *gpu, unsigned cus)
{
	return reserve_as(l, uid, "cus=%u gpu=%s queues=2", cus, gpu);
}

static unsigned fix(struct lending *l, uid_t uid, unsigned cus)
{
	struct lease *lease = fix_on(l, uid, "any", cus);

	CHECK(lease);
	return lease->partitions[0].gpu;
}

static unsigned run_on(struct lending *l, const char *gpu, unsigned most)
{
	struct lease *lease = reserve_as(
		l, ANY, "gpu=%s cus=1 cus-min=1 cus-max=%u queues=2; adaptable=1", gpu, most);

	CHECK(lease);
	return cus_of(lease);
}

/* Enforcement steps that are due. */
static void enforce(struct lending *l)
{
	struct lease *lease;

	while (arbiter_next_enforce_step(l->s.arbiter, l->now, &lease) != ENFORCE_STEP_NONE)
		;
	settle(l);
}

/* Leases that can be granted elsewhere wait again, and are granted. */
static void wait_again(struct lending *l)
{
	struct lease *next;

	while (arbiter_plan_requeue(l->s.arbiter, &next) > 0 ||
	       arbiter_plan_next(l->s.arbiter, &next) > 0)
		arbiter_commit(l->s.arbiter, next);
	settle(l);
}

/* ---- plain programs ------------------------------------------------------------------------ */

TEST(as_many_programs_as_equal_gpus_use_all_of_them)
{
	static const enum gpu_order orders[] = { GPU_ORDER_BALANCE, GPU_ORDER_PACK,
						 GPU_ORDER_SPREAD };

	for (size_t o = 0; o < ARRAY_SIZE(orders); o++)
		for (unsigned n = 2; n <= 16; n *= 2) {
			_cleanup_(lending_done) struct lending l = equal_machine(n);
			uint64_t used = 0;

			l.s.arbiter->settings->gpu_order = orders[o];
			for (unsigned i = 0; i < n; i++)
				used |= UINT64_C(1) << run(&l);
			CHECK(used == (UINT64_C(1) << n) - 1);
		}
}

TEST(eight_programs_on_four_gpus_use_two_each)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);
	unsigned on[4] = { 0 };

	for (unsigned i = 0; i < 8; i++)
		on[run(&l)]++;
	for (unsigned i = 0; i < 4; i++)
		CHECK(on[i] == 2);
}

/* A plain program of this user; all holders follow. */
static unsigned run_of(struct lending *l, uid_t uid)
{
	struct lease *lease = reserve_as(l, uid, "cus=1 cus-min=1 cus-max=%u queues=2; adaptable=1",
					 MOST);

	CHECK(lease);
	pass(l, 10 * SECOND_USEC);
	return lease->partitions[0].gpu;
}

TEST(programs_shrink_for_others_of_their_user_before_those_of_other_users)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	_cleanup_(lending_done) struct lending m = equal_machine(2);
	const uid_t other = ANY + 1;

	CHECK(run_of(&l, ANY) == 0 && run_of(&l, other) == 1);
	CHECK(run_of(&l, other) == 1 && l.s.arbiter->leases[0]->partitions[0].count == 60);
	CHECK(run_of(&l, ANY) == 0);

	CHECK(run_of(&m, ANY) == 0 && run_of(&m, other) == 1);
	CHECK(fix(&m, other, 30) == 1);
}

/* Two programs of a user on each of three GPUs, and one of another user on the first. Returns the GPU of
 * the next program of the one with many. */
static unsigned next_beside_one(struct lending *l)
{
	CHECK(run_of(l, ANY) == 0);
	for (unsigned i = 0; i < 6; i++)
		CHECK(run_of(l, OTHER) == 1 + i % 3);
	return run_of(l, OTHER);
}

TEST(users_share_the_machine_before_their_programs_do)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);
	_cleanup_(lending_done) struct lending by_lease = equal_machine(4);

	CHECK(next_beside_one(&l) != 0);
	CHECK(fix(&l, OTHER, 10) != 0);
	CHECK(l.s.arbiter->leases[0]->partitions[0].count == 60);

	by_lease.s.arbiter->settings->share_by_lease = true;
	CHECK(next_beside_one(&by_lease) == 0);
}

static void run_there(struct lending *l, uid_t uid, const char *gpu)
{
	CHECK(reserve_as(l, uid, "gpu=%s cus=1 cus-min=1 cus-max=%u queues=2; adaptable=1", gpu,
			 MOST));
	pass(l, 10 * SECOND_USEC);
}

/* Beside its own program, a second one of a user gains nothing for it. */
TEST(a_user_with_little_gets_the_gpu_where_it_gains_most)
{
	const struct gpu_info gpus[] = { card("large", 4, 60), card("small", 1, 14) };
	_cleanup_(lending_done) struct lending l = equal_machine(2), m = machine(gpus, 2);

	run_there(&l, OTHER, "0");
	run_there(&l, ANY, "0");
	for (unsigned i = 0; i < 2; i++)
		run_there(&l, OTHER, "1");
	CHECK(run_of(&l, ANY) == 1);

	for (unsigned i = 0; i < 5; i++)
		run_there(&m, OTHER, i < 4 ? "large" : "small");
	CHECK(run_of(&m, ANY) == 0); /* 30 CUs, and on the small GPU 7 */
}

/* A program of OTHER on the first of three GPUs, those of another user on the others. */
static struct lending one_beside_two(unsigned weight)
{
	struct lending l = equal_machine(3);

	add_tenant(l.s.arbiter, "other", OTHER, CLASS_BESTEFFORT)->weight = weight;
	CHECK(run_of(&l, OTHER) == 0 && run_of(&l, ANY) == 1 && run_of(&l, ANY) == 2);
	return l;
}

TEST(a_user_with_little_takes_from_one_with_much)
{
	_cleanup_(lending_done) struct lending l = one_beside_two(TENANT_WEIGHT);
	_cleanup_(lending_done) struct lending heavy = one_beside_two(2 * TENANT_WEIGHT);

	CHECK(run_of(&l, OTHER) == 1); /* 90 CUs of 180 */
	CHECK(run_of(&l, OTHER) == 0);

	CHECK(run_of(&heavy, OTHER) == 1); /* 100, and 80 for who weighs half as much */
}

TEST(a_program_gets_the_card_beside_an_igpu_in_both_orders)
{
	const struct gpu_info before[] = { card("0000:03:00.0", 6, 84), igpu("0000:10:00.0") };
	const struct gpu_info behind[] = { igpu("0000:03:00.0"), card("0000:10:00.0", 6, 84) };
	struct lending l = machine(before, 2);

	CHECK(run(&l) == 0 && run(&l) == 0 && run(&l) == 0);
	lending_done(&l);
	l = machine(behind, 2);
	CHECK(run(&l) == 1 && run(&l) == 1 && run(&l) == 1);
	lending_done(&l);
}

TEST(programs_are_divided_by_the_size_of_gpus)
{
	const struct gpu_info gpus[] = { card("0000:03:00.0", 2, 20), card("0000:04:00.0", 4, 60) };
	_cleanup_(lending_done) struct lending l = machine(gpus, 2);
	unsigned small = 0;

	for (unsigned i = 0; i < 8; i++)
		small += run(&l) == 0;
	CHECK(small == 2);
}

TEST(a_fixed_lease_joins_one_where_programs_have_the_rest)
{
	static const struct {
		enum gpu_order order;
		unsigned most; /* CUs of the program beside the fixed lease */
		unsigned gpu;
	} cases[] = { { GPU_ORDER_BALANCE, 5, 1 },
		      { GPU_ORDER_PACK, 60, 1 },
		      { GPU_ORDER_SPREAD, 60, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(lending_done) struct lending l = equal_machine(2);

		CHECK(reserve_as(&l, ANY, "cus=10 gpu=1; class=besteffort"));
		run_on(&l, "0", min_u(cases[i].most * 4, 60));
		run_on(&l, "1", cases[i].most);
		l.s.arbiter->settings->gpu_order = cases[i].order;
		CHECK(reserve_as(&l, ANY, "cus=15; class=besteffort")->partitions[0].gpu ==
		      cases[i].gpu);
	}
}

TEST(a_program_of_few_cus_disturbs_nobody)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	run_on(&l, "0", MOST);
	CHECK(run_as(&l, 8) == 1);
	/* There it takes nothing from the first one of few. */
	CHECK(run_as(&l, 8) == 1);
}

TEST(a_program_gets_what_its_quota_leaves_it)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	add_tenant(l.s.arbiter, "few", ANY, CLASS_BESTEFFORT)->max_cus =
		(struct limit){ LIMIT_COUNT, 30 };
	CHECK(run_on(&l, "0", 20) == 20);
	CHECK(run(&l) == 1);
}

TEST(a_heavy_neighbour_is_avoided)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct request request = request_for(1);

	add_tenant(l.s.arbiter, "heavy", OTHER, CLASS_BESTEFFORT)->weight = 10000;
	add_tenant(l.s.arbiter, "light", ANY, CLASS_BESTEFFORT)->weight = 1;
	request.wants[0].cus_min = 1;
	request.wants[0].cus_max = MOST;
	request.adaptable = true;
	CHECK(reserve(l.s.arbiter, OTHER, &request, &l.s.result)->partitions[0].gpu == 0);
	for (unsigned i = 0; i < 6; i++)
		CHECK(run(&l) == 1);
}

TEST(a_program_avoids_a_gpu_that_is_used_without_a_lease)
{
	struct gpu_info gpus[] = { vii(0), vii(1) };
	struct observed outside = { .pid = 7, .start_time = 1, .kfd_gpu_id = 1, .queues = 1 };
	_cleanup_(lending_done) struct lending l;

	gpus[0].kfd_gpu_id = 1;
	gpus[1].kfd_gpu_id = 2;
	l = machine(gpus, 2);
	CHECK(arbiter_observe(l.s.arbiter, &outside, 1) == 0);
	CHECK(fix(&l, LAB, 15) == 1);
	CHECK(arbiter_observe(l.s.arbiter, &outside, 1) == 0);
	CHECK(run(&l) == 0); /* half of the other one is taken */
}

TEST(a_paused_program_and_a_new_one_are_not_on_the_gpu_of_an_exclusive_lease)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	tenant_of(&l.s, "vr")->exclusive = EXCLUSIVE_ASK;
	run_on(&l, "0", MOST);
	CHECK(reserve_as(&l, VR, "cus=15 queues=2; exclusive=1")->partitions[0].gpu == 1);
	/* The other GPU has room, but its exclusive lease would pause the program. */
	CHECK(run(&l) == 0);
}

/* ---- a program that does not answer ------------------------------------------------------------ */

/* On each of two GPUs a program has all CUs; that on the first one does not return any. A request that takes some of
 * them is granted those of the other one, when it is known. */
static void avoid_one_that_is_late(bool adaptable)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *late, *lease;

	CHECK(run(&l) == 0 && run(&l) == 1);
	late = l.s.arbiter->leases[0];
	if (adaptable)
		lease = borrow(&l, 20, MOST);
	else
		lease = fix_on(&l, ANY, "any", 20);
	CHECK(lease && lease->state == STATE_ACTIVATING && lease->partitions[0].gpu == 0);
	lease->lend.give_up_usec = l.now + 3 * SECOND_USEC;
	arbiter_expire(l.s.arbiter, l.now += 2 * SECOND_USEC);
	enforce(&l);
	CHECK(late->lend.late);
	wait_again(&l);
	follow(&l, l.s.arbiter->leases[1]);
	CHECK(lease->state == STATE_GRANTED && lease->partitions[0].gpu == 1 && !lease->request);
	/* So are later ones, although there is less on the other GPU. */
	CHECK(fix_on(&l, ANY, "any", 20)->partitions[0].gpu == 1);
	CHECK(borrow(&l, 2, MOST)->partitions[0].gpu == 1);
	follow(&l, late);
	CHECK(!late->lend.late && fix_on(&l, ANY, "any", 20)->partitions[0].gpu == 0);
}

TEST(a_request_avoids_a_program_that_does_not_answer)
{
	avoid_one_that_is_late(false);
	avoid_one_that_is_late(true);
}

/* It goes back where that one has answered; but it does not go to and fro for ever. */
TEST(a_request_waits_again_once_for_each_program_that_does_not_answer)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *programs[2], *lease, *next;
	struct cover *covers = calloc(1, sizeof(*covers));

	CHECK(covers);
	l.s.arbiter->covers = covers;
	for (unsigned i = 0; i < 2; i++)
		CHECK(run(&l) == i);
	for (unsigned i = 0; i < 2; i++)
		programs[i] = l.s.arbiter->leases[i];
	lease = fix_on(&l, ANY, "any", 20);
	lease->lend.give_up_usec = l.now + 60 * SECOND_USEC;
	for (unsigned i = 0; i < 2; i++) {
		CHECK(lease->state == STATE_ACTIVATING && lease->partitions[0].gpu == i);
		arbiter_expire(l.s.arbiter, l.now += 2 * SECOND_USEC);
		enforce(&l);
		CHECK(programs[i]->lend.late && !programs[1 - i]->lend.late);
		lease->observed.processes = 1; /* its queues may cover any CUs */
		CHECK(arbiter_plan_requeue(l.s.arbiter, &next) == 0);
		lease->observed.processes = 0;
		covers[0] = (struct cover){ .lease = lease->id, .queues = 1 };
		l.s.arbiter->n_covers = 1;
		CHECK(arbiter_plan_requeue(l.s.arbiter, &next) == 0);
		l.s.arbiter->n_covers = 0;
		wait_again(&l);
		CHECK(lease->partitions[0].gpu == 1 - i);
		follow(&l, programs[i]);
	}
	programs[0]->lend.late = true;
	settle(&l);
	ledger_examine_again(l.s.arbiter, UINT64_MAX);
	CHECK(lease->state == STATE_ACTIVATING && arbiter_plan_requeue(l.s.arbiter, &next) == 0);
}

/* It waits for CUs that a program does not return, and would fit on the other GPU. */
TEST(a_lease_that_has_ended_before_it_began_does_not_wait_again)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *lease, *next;

	for (unsigned i = 0; i < 2; i++)
		CHECK(run(&l) == i);
	lease = fix_on(&l, ANY, "any", 20);
	CHECK(lease->state == STATE_ACTIVATING);
	arbiter_expire(l.s.arbiter, l.now += 2 * SECOND_USEC);
	enforce(&l);
	arbiter_end(l.s.arbiter, lease, RESULT_OK, "released");
	CHECK(arbiter_plan_requeue(l.s.arbiter, &next) == 0 && lease->state == STATE_ENDING);
}

TEST(a_request_waits_for_a_program_that_does_not_answer_where_nothing_else_fits)
{
	_cleanup_(lending_done) struct lending l = equal_machine(1);
	struct lease *lease;

	run(&l);
	lease = fix_on(&l, ANY, "any", 20);
	lease->lend.give_up_usec = l.now + 3 * SECOND_USEC;
	arbiter_expire(l.s.arbiter, l.now += 2 * SECOND_USEC);
	enforce(&l);
	wait_again(&l);
	CHECK(lease->state == STATE_ACTIVATING);
	CHECK(fix_on(&l, ANY, "any", 20)->state == STATE_ACTIVATING);
	pass(&l, 2 * SECOND_USEC);
	CHECK(lease->state == STATE_ENDING); /* it gave up */
}

/* A lease alone in its engines waits for all of their CUs, an exclusive one for all of the GPU. */
TEST(leases_that_exclude_others_wait_in_vain_for_cus_beside_their_own)
{
	_cleanup_(lending_done) struct lending l = equal_machine(1);
	struct lease *late = fix_on(&l, ANY, "0", 7);
	const struct gpu *gpu = &l.s.arbiter->gpus[0];
	struct cuset engines = late->partitions[0].cus;
	struct partition beside = { .occupied = engines }, far = { .occupied = gpu->all };

	gpu_add_engines(gpu, &engines);
	cuset_remove(&far.occupied, &engines);
	cuset_remove(&engines, &beside.occupied);
	late->lend.late = true;
	borrow_sum_up(l.s.arbiter);
	CHECK(borrow_waits_in_vain(l.s.arbiter, &beside));
	beside.occupied = engines;
	CHECK(!borrow_waits_in_vain(l.s.arbiter, &beside));
	CHECK(!borrow_waits_in_vain(l.s.arbiter, &far));
	beside.alone = far.alone = true;
	CHECK(borrow_waits_in_vain(l.s.arbiter, &beside));
	CHECK(!borrow_waits_in_vain(l.s.arbiter, &far));
	far.exclusive = true;
	CHECK(borrow_waits_in_vain(l.s.arbiter, &far));
}

/* ---- an empty GPU beside one with an adaptable lease ----------------------------------------- */

TEST(nobody_is_disturbed_where_a_gpu_is_empty)
{
	static const uid_t uids[] = { ANY, LAB, VR };
	static const unsigned sizes[] = { 2, 15, 40, 60 };

	for (size_t i = 0; i < ARRAY_SIZE(uids) * ARRAY_SIZE(sizes); i++) {
		_cleanup_(lending_done) struct lending l = equal_machine(2);
		const struct lease *first;

		CHECK(run(&l) == 0);
		first = l.s.arbiter->leases[0];
		CHECK(fix(&l, uids[i % ARRAY_SIZE(uids)], sizes[i / ARRAY_SIZE(uids)]) == 1);
		CHECK(cus_of(first) == 60 && first->generation == 1);
	}
}

TEST(whole_engines_come_from_an_empty_gpu)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	CHECK(run(&l) == 0);
	CHECK(grant_as(&l.s, VR, "shader-engines=1 queues=2")->partitions[0].gpu == 1);
}

TEST(a_gang_takes_the_empty_gpus)
{
	for (unsigned adaptable = 0; adaptable < 2; adaptable++) {
		_cleanup_(lending_done) struct lending l = equal_machine(4);
		struct request request = request_for(20);
		const struct lease *lease;

		run_on(&l, "0", MOST);
		run_on(&l, "2", MOST);
		request.n_wants = 2;
		request.wants[0].queues = 2;
		request.wants[1] = request.wants[0];
		request.adaptable = adaptable;
		lease = reserve(l.s.arbiter, ANY, &request, &l.s.result);
		CHECK(lease && lease_gpus(lease) == (2 | 8));
	}
}

/* GPU 0 has half of its CUs free, 1 and 2 a program each, 3 is idle. */
TEST(each_want_of_a_gang_gets_the_gpu_that_it_would_get_alone)
{
	static const char *const requests[] = { "cus=40 queues=2 | cus=5 queues=2",
						"cus=5 queues=2 | cus=40 queues=2",
						"cus=5 queues=2 | shader-engines=3 queues=2" };

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		_cleanup_(lending_done) struct lending l = equal_machine(4);
		const struct lease *lease;

		CHECK(fix_on(&l, LAB, "0", 30) && run_on(&l, "1", MOST) && run_on(&l, "2", MOST));
		lease = grant_as(&l.s, ANY, "%s", requests[i]);
		CHECK(lease && lease->partitions[i > 0].gpu == 3 &&
		      lease->partitions[i == 0].gpu == 0);
	}
}

TEST(a_small_want_leaves_a_large_one_the_gpu_that_it_needs)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	const struct lease *lease;

	/* The small one would be better off on GPU 1, but the large one fits nowhere else. */
	CHECK(fix_on(&l, LAB, "0", 30) && fix_on(&l, LAB, "1", 20));
	lease = grant_as(&l.s, ANY, "cus=5 queues=2 gpu=0,1 | cus=40 queues=2");
	CHECK(lease && lease->partitions[0].gpu == 0 && lease->partitions[1].gpu == 1);
	release(l.s.arbiter, lease->id);
	/* And the large one would be on GPU 1. */
	lease = grant_as(&l.s, ANY, "cus=10 queues=2 | cus=5 queues=2 gpu=0");
	CHECK(lease && lease->partitions[0].gpu == 1 && lease->partitions[1].gpu == 0);
}

/* ---- a quota of GPUs ------------------------------------------------------------------------- */

static void limit_gpus(struct lending *l, uint64_t gpus)
{
	add_tenant(l->s.arbiter, "few", ANY, CLASS_BESTEFFORT)->max_gpus =
		(struct limit){ LIMIT_COUNT, gpus };
}

TEST(programs_use_as_many_gpus_as_the_quota_allows)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);
	unsigned on[4] = { 0 };

	limit_gpus(&l, 3);
	for (unsigned i = 0; i < 6; i++)
		on[run(&l)]++;
	for (unsigned i = 0; i < 4; i++)
		CHECK(on[i] == (i < 3 ? 2 : 0));
}

TEST(a_gang_has_as_many_new_gpus_as_the_quota_leaves)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);

	limit_gpus(&l, 2);
	CHECK(fix_on(&l, LAB, "0", 10) && fix_on(&l, LAB, "1", 10) && fix_on(&l, ANY, "3", 5));
	/* GPU 0 and 1 have fewer free CUs. */
	CHECK(lease_gpus(grant_as(&l.s, ANY, "cus=5 queues=2 | cus=5 queues=2")) == (1 | 8));
	CHECK(!grant_as(&l.s, ANY, "cus=5 | cus=5 | cus=5") &&
	      l.s.result.kind == RESULT_QUOTA_EXCEEDED);
	/* Of different wants the largest has the new one, if the other can have one that is held. */
	release(l.s.arbiter, l.s.arbiter->leases[3]->id);
	CHECK(lease_gpus(grant_as(&l.s, ANY, "cus=40 queues=2 | cus=30 queues=2")) == (1 | 8));
}

/* At first the small want has GPU 1 and the large one GPU 0: for GPU 3, both have to change theirs. */
TEST(a_large_want_gets_the_best_new_gpu_that_the_quota_leaves)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);
	const struct lease *lease;

	limit_gpus(&l, 2);
	CHECK(fix_on(&l, ANY, "0", 5) && fix_on(&l, LAB, "3", 30));
	lease = grant_as(&l.s, ANY, "cus=5 queues=2 | cus=15 queues=2");
	CHECK(lease && lease->partitions[0].gpu == 0 && lease->partitions[1].gpu == 3);
}

/* Where the held GPU is full, revocations and moves there help, and nothing else. */
TEST(a_request_waits_for_the_gpu_that_the_quota_leaves)
{
	_cleanup_(lending_done) struct lending l = equal_machine(3);
	struct lease *other, *waiting;

	limit_gpus(&l, 1);
	CHECK(fix_on(&l, ANY, "1", 10) && fix_on(&l, LAB, "0", 50));
	other = fix_on(&l, LAB, "1", 40);
	CHECK(!grant_as(&l.s, ANY, "cus=30") && l.s.result.kind == RESULT_NO_CAPACITY);
	CHECK(l.s.result.n_refusals == 1 &&
	      strcmp(l.s.result.refusals[0].gpu, "0000:04:00.0") == 0);
	waiting = grant_as(&l.s, ANY, "cus=30 queues=2; wait-usec=forever");
	CHECK(waiting->state == STATE_WAITING && waiting->wait.candidates == 2);
	release(l.s.arbiter, other->id);
	CHECK(grant_waiting(&l.s, NULL) == 1);
	CHECK(ledger_find(l.s.arbiter, waiting->id)->partitions[0].gpu == 1);
	/* A GPU that is named and not allowed is refused at once, and so is what the held one can never have. */
	CHECK(!grant_as(&l.s, ANY, "cus=1 gpu=2") && l.s.result.kind == RESULT_QUOTA_EXCEEDED);
	CHECK(!grant_as(&l.s, ANY, "cus=1 gpu=0,2") && l.s.result.kind == RESULT_QUOTA_EXCEEDED);
}

TEST(the_end_of_the_last_lease_on_a_held_gpu_wakes_a_request_that_did_not_fit_there)
{
	const struct gpu_info gpus[] = { card("0000:03:00.0", 2, 20), vii(1), vii(2) };
	_cleanup_(lending_done) struct lending l = machine(gpus, 3);
	struct lease *held, *waiting;

	limit_gpus(&l, 2);
	held = fix_on(&l, ANY, "0", 5);
	CHECK(held && fix_on(&l, ANY, "1", 5) && fix_on(&l, LAB, "1", 50));
	waiting = grant_as(&l.s, ANY, "cus=30 queues=2; wait-usec=forever");
	CHECK(waiting->state == STATE_WAITING);
	CHECK(grant_waiting(&l.s, NULL) == 0);
	release(l.s.arbiter, held->id);
	CHECK(grant_waiting(&l.s, NULL) == 1);
	CHECK(ledger_find(l.s.arbiter, waiting->id)->partitions[0].gpu == 2);
}

TEST(the_end_of_the_last_lease_on_a_held_gpu_wakes_a_request_that_is_barred_there)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *held, *barring, *waiting, *passing;

	limit_gpus(&l, 1);
	held = fix_on(&l, ANY, "0", 5);
	CHECK(held && fix_on(&l, OTHER, "0", 40));
	barring = grant_as(&l.s, LAB, "gpu=0 cus=30 queues=2; class=guaranteed wait-usec=forever");
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		passing = fix_on(&l, OTHER, "0", 1);
		CHECK(passing);
		release(l.s.arbiter, passing->id);
		CHECK(grant_waiting(&l.s, NULL) == 0);
	}
	CHECK(l.s.arbiter->gpus[0].barrier.rank.id == barring->id);

	waiting = grant_as(&l.s, ANY, "cus=30 queues=2; wait-usec=forever");
	CHECK(waiting->state == STATE_WAITING && grant_waiting(&l.s, NULL) == 0);
	release(l.s.arbiter, held->id);
	CHECK(grant_waiting(&l.s, NULL) == 1);
	CHECK(ledger_find(l.s.arbiter, waiting->id)->partitions[0].gpu == 1);
}

TEST(a_waiting_lease_gets_the_gpu_where_nobody_loses)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *full[2], *waiting;

	for (unsigned i = 0; i < 2; i++)
		full[i] = fix_on(&l, LAB, i ? "1" : "0", 60);
	waiting = grant_as(&l.s, ANY, "cus=30 queues=2; wait-usec=forever");
	CHECK(waiting->state == STATE_WAITING);
	release(l.s.arbiter, full[0]->id);
	/* A program comes first. */
	run_on(&l, "0", MOST);
	release(l.s.arbiter, full[1]->id);
	CHECK(grant_waiting(&l.s, NULL) == 1);
	CHECK(ledger_find(l.s.arbiter, waiting->id)->partitions[0].gpu == 1);
}

/* ---- fixed leases ------------------------------------------------------------------------- */

TEST(a_small_fixed_lease_keeps_an_empty_gpu_free)
{
	_cleanup_(lending_done) struct lending l = equal_machine(3);

	CHECK(fix_on(&l, LAB, "1", 15));
	CHECK(fix(&l, LAB, 15) == 1 && fix(&l, ANY, 15) == 1 && fix(&l, VR, 15) == 1);
	CHECK(fix(&l, VR, 15) == 0);
	/* Also beside a program that has all that it asked for. */
	run_on(&l, "2", 8);
	CHECK(fix(&l, ANY, 50) == 2);
}

/* Adaptable leases return what they borrow, and large requests stay possible. */
TEST(packing_counts_no_borrowed_cus_for_a_fixed_lease)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	l.s.arbiter->settings->gpu_order = GPU_ORDER_PACK;
	CHECK(fix_on(&l, LAB, "0", 20) && run_on(&l, "1", MOST) == 60);
	CHECK(fix(&l, LAB, 10) == 0);
	CHECK(fix(&l, VR, 56) == 1);
}

/* May be beside others on their CUs, and is not while others are idle. */
TEST(leases_share_cus_only_where_no_others_are_free)
{
	static const unsigned gpus[] = { 0, 0, 1, 1, 0, 0 };
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		struct request request = request_for(30);
		const struct lease *lease;

		request.wants[0].isolation = ISOLATION_SHARED;
		request.wants[0].queues = 2;
		CHECK(lease = reserve(l.s.arbiter, ANY, &request, &l.s.result));
		CHECK(lease->partitions[0].gpu == gpus[i]);
		if (i == 3)
			for (size_t g = 0; g < 2; g++)
				CHECK(cuset_equal(&l.s.arbiter->gpus[g].shared,
						  &l.s.arbiter->gpus[g].all));
	}
}

TEST(a_fixed_lease_goes_where_the_worst_off_keeps_most)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	for (unsigned i = 0; i < 3; i++)
		run_on(&l, i == 0 ? "0" : "1", MOST);
	CHECK(fix(&l, LAB, 20) == 0);
}

/* ---- partitions of one card ---------------------------------------------------------------- */

TEST(a_program_gets_a_card_of_its_own_before_a_neighbour)
{
	struct gpu_info gpus[8];
	struct lending l;
	uint64_t used = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(gpus); i++) {
		gpus[i] = card("", 4, 36);
		gpu_info_name_simulated(&gpus[i], i / 4, i % 4, 4);
	}
	l = machine(gpus, 8);
	CHECK(run(&l) / 4 == 0 && run(&l) / 4 == 1 && run(&l) / 4 == 0 && run(&l) / 4 == 1);
	for (unsigned i = 0; i < 4; i++)
		run(&l);
	for (size_t i = 0; i < l.s.arbiter->n_leases; i++)
		used |= lease_gpus(l.s.arbiter->leases[i]);
	CHECK(used == 0xff);
	lending_done(&l);
	l = machine(gpus, 8);
	CHECK(fix(&l, LAB, 36) == 0 && fix(&l, LAB, 36) == 4);
	lending_done(&l);
}

/* ---- GPUs that are not chosen -------------------------------------------------------------- */

TEST(a_gpu_with_any_no_is_used_only_by_name)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	l.s.arbiter->gpus[0].named_only = true;
	CHECK(run(&l) == 1 && run(&l) == 1 && fix(&l, ANY, 10) == 1);
	CHECK(fix_on(&l, ANY, "0", 10)->partitions[0].gpu == 0);
	CHECK(!grant_as(&l.s, ANY, "cus=10 | cus=10") && l.s.result.kind == RESULT_NEVER_FITS);
	l.s.arbiter->gpus[1].named_only = true;
	CHECK(!grant_as(&l.s, ANY, "cus=10") && l.s.result.kind == RESULT_NEVER_FITS);
}

/* Is refusal i that of a GPU with any = no, which would grant so many CUs if it were named? */
static bool is_unnamed(const struct lending *l, size_t i, unsigned gpu, unsigned fits)
{
	const struct refusal *refusal = &l->s.result.refusals[i];

	return i < l->s.result.n_refusals && refusal->reason == REASON_POLICY &&
	       strcmp(refusal->key, "any") == 0 &&
	       strcmp(refusal->gpu, l->s.arbiter->gpus[gpu].info.name) == 0 &&
	       refusal->n_fits == (fits > 0) && (fits == 0 || refusal->fits[0] == fits);
}

TEST(a_refusal_names_the_gpus_with_any_no)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);

	l.s.arbiter->gpus[0].named_only = true;
	l.s.arbiter->gpus[1].draining = true;
	CHECK(!grant_as(&l.s, ANY, "cus=10") && l.s.result.kind == RESULT_NO_CAPACITY);
	CHECK(l.s.result.n_refusals == 2 && l.s.result.deciding == 0);
	CHECK(is_unnamed(&l, 1, 0, 10));
	CHECK(!grant_as(&l.s, ANY, "cus=10 gpu=1") && l.s.result.n_refusals == 1);
	CHECK(!grant_as(&l.s, ANY, "cus=10 gpu=0 | cus=10") && l.s.result.n_refusals == 1);
	CHECK(fix_on(&l, ANY, "0", 30)); /* it would not help to name it */
	CHECK(!grant_as(&l.s, ANY, "cus=50") && l.s.result.n_refusals == 1);
	l.s.arbiter->gpus[1].named_only = true; /* no GPU can be chosen: both are told */
	CHECK(!grant_as(&l.s, ANY, "cus=10") && l.s.result.kind == RESULT_NEVER_FITS);
	CHECK(l.s.result.n_refusals == 3 && l.s.result.refusals[0].reason == REASON_ABSENT);
	CHECK(l.s.result.refusals[0].free == 0 && l.s.result.refusals[0].total == 2);
	CHECK(is_unnamed(&l, 1, 0, 10) && is_unnamed(&l, 2, 1, 0));
}

TEST(a_drained_and_a_resetting_gpu_are_not_chosen)
{
	_cleanup_(lending_done) struct lending l = equal_machine(3);

	l.s.arbiter->gpus[0].draining = true;
	l.s.arbiter->gpus[1].reset_until_usec = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++)
		CHECK(run(&l) == 2);
}

/* ---- GPUs that are named, and shares of them ------------------------------------------------- */

/* The GPUs of the lease that is granted, as bits; 0: it is refused. */
static uint64_t gpus_for(struct lending *l, const char *request)
{
	const struct lease *lease = grant_as(&l->s, ANY, "%s", request);

	return lease ? lease_gpus(lease) : 0;
}

TEST(one_of_several_named_gpus_is_chosen)
{
	static const char *const unknown[] = { "0,4", "0,any", "0," };
	_cleanup_(lending_done) struct lending l = equal_machine(4);

	CHECK(gpus_for(&l, "cus=60 gpu=1,0000:06:00.0") == 2);
	CHECK(gpus_for(&l, "cus=60 gpu=1,0000:06:00.0") == 8);
	CHECK(gpus_for(&l, "cus=60 gpu=1,0000:06:00.0") == 0 &&
	      l.s.result.kind == RESULT_NO_CAPACITY && l.s.result.n_refusals == 2);
	/* It may have other GPUs for other wants of the same. */
	CHECK(gpus_for(&l, "cus=60 gpu=1,3 | cus=60 gpu=1,3 | cus=60 gpu=1,3") == 0 &&
	      l.s.result.kind == RESULT_NEVER_FITS);
	CHECK(gpus_for(&l, "cus=60 gpu=0,2 | cus=60 gpu=0,2") == 5);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		CHECK(!reserve_as(&l, ANY, "cus=60 gpu=%s", unknown[i]) &&
		      l.s.result.kind == RESULT_NO_SUCH_GPU);
}

TEST(a_named_gpu_that_is_gone_leaves_the_others)
{
	_cleanup_(lending_done) struct lending l = equal_machine(3);

	l.s.arbiter->gpus[1].absent = true;
	CHECK(gpus_for(&l, "cus=15 gpu=0000:04:00.0,0000:05:00.0") == 4);
	l.s.arbiter->gpus[2].absent = true;
	CHECK(gpus_for(&l, "cus=15 gpu=0000:04:00.0,0000:05:00.0") == 0 &&
	      l.s.result.kind == RESULT_NO_SUCH_GPU);
	l.s.arbiter->gpus[2].absent = false;
}

TEST(named_gpus_get_names_that_outlive_a_restart)
{
	_cleanup_(lending_done) struct lending l = equal_machine(4);
	struct request request = request_of("cus=1 gpu=3,0000:03:00.0,7");

	ledger_name_gpus(l.s.arbiter, &request);
	CHECK(strcmp(request.wants[0].gpu, "0000:06:00.0,0000:03:00.0,7") == 0);
	/* So many names have no room. */
	memset(request.wants[0].gpu, 0, sizeof(request.wants[0].gpu));
	for (unsigned i = 0; i < 300; i++)
		strcat(request.wants[0].gpu, i ? ",1" : "0");
	ledger_name_gpus(l.s.arbiter, &request);
	CHECK(strncmp(request.wants[0].gpu, "0,1,1,", 6) == 0);
}

TEST(a_share_is_one_of_each_gpu)
{
	const struct gpu_info gpus[] = { igpu("0000:03:00.0"), card("0000:10:00.0", 6, 84) };
	static const unsigned cus[] = { 42, 42, 1 };
	_cleanup_(lending_done) struct lending l = machine(gpus, 2);

	for (size_t i = 0; i < ARRAY_SIZE(cus); i++) {
		const struct lease *lease = reserve_as(&l, ANY, "cus-percent=50");

		CHECK(lease && lease->partitions[0].gpu == (i < 2) && cus_of(lease) == cus[i]);
	}
	/* Not one CU of two. */
	CHECK(gpus_for(&l, "cus-percent=49 gpu=0") == 0 && l.s.result.kind == RESULT_NEVER_FITS &&
	      strstr(l.s.result.sentence, "49% of 2 CUs"));
}

TEST(bounds_are_shares_of_each_gpu)
{
	const struct gpu_info gpus[] = { card("0000:03:00.0", 2, 20), card("0000:04:00.0", 4, 60) };
	_cleanup_(lending_done) struct lending l = machine(gpus, 2);

	for (unsigned i = 0; i < 2; i++) {
		const struct lease *lease = reserve_as(
			&l, ANY,
			"gpu=%u cus-percent=10 cus-min-percent=10 cus-max-percent=50; adaptable=1",
			i);

		CHECK(lease && cus_of(lease) == (i ? 30 : 10) &&
		      cuset_count(&lease->partitions[0].adaptation->base) == (i ? 6 : 2));
	}
}

TEST(a_share_of_a_card_is_more_than_one_of_an_igpu)
{
	const struct gpu_info gpus[] = { igpu("0000:03:00.0"), card("0000:10:00.0", 6, 84) };
	_cleanup_(lending_done) struct lending l = machine(gpus, 2);

	for (unsigned i = 0; i < 3; i++) {
		CHECK(gpus_for(&l, "cus=1 cus-min=1 cus-max-percent=100; adaptable=1") == 2);
		settle(&l);
	}
}

/* On the larger GPU a share has a few CUs more, and the program there would lose it. */
TEST(a_share_is_taken_of_an_idle_gpu_that_is_little_smaller)
{
	static const char *const shares[] = {
		"cus-percent=25; adaptable=1",
		"cus-percent=50; adaptable=1",
		"cus-percent=25",
		"cus-percent=50",
	};
	const struct gpu_info gpus[] = { card("0000:03:00.0", 6, 84), card("0000:04:00.0", 5, 70),
					 igpu("0000:10:00.0") };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		for (uid_t uid = ANY; uid <= OTHER; uid += OTHER - ANY) {
			_cleanup_(lending_done) struct lending l = machine(gpus, 3);
			const struct lease *lease;

			CHECK(run(&l) == 0);
			lease = reserve_as(&l, uid, "%s", shares[i]);
			CHECK(lease && lease->partitions[0].gpu == 1);
			follow_each(&l);
			lease = reserve_as(&l, uid, "%s", shares[i]);
			CHECK(lease && lease->partitions[0].gpu < 2);
		}
}

/* However GPUs are ordered. */
TEST(a_fixed_share_is_not_taken_of_a_gpu_that_has_little_of_it)
{
	static const enum gpu_order orders[] = { GPU_ORDER_BALANCE, GPU_ORDER_PACK,
						 GPU_ORDER_SPREAD };
	static const char *const wants[] = {
		"cus-percent=50 cus-min=1",
		"cus=30 cus-min-percent=1",
		"shader-engines=2 cus-min-percent=1",
	};
	const struct gpu_info gpus[] = { igpu("0000:03:00.0"), card("0000:10:00.0", 4, 60) };

	for (size_t o = 0; o < ARRAY_SIZE(orders); o++)
		for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
			_cleanup_(lending_done) struct lending l = equal_machine(2);
			_cleanup_(lending_done) struct lending m = machine(gpus, 2);
			const struct lease *lease;

			l.s.arbiter->settings->gpu_order = orders[o];
			m.s.arbiter->settings->gpu_order = orders[o];
			CHECK(reserve_as(&l, LAB, "gpu=0 cus=52 exact=1"));
			lease = reserve_as(&l, ANY, "%s", wants[i]);
			CHECK(lease && lease->partitions[0].count == 30);
			lease = reserve_as(&m, ANY, "%s", wants[i]);
			CHECK(lease && lease->partitions[0].count == 30);
		}
}

TEST(shares_that_contradict_are_refused)
{
	static const char *const rows[][2] = {
		{ "cus=3 cus-percent=5", "cus and cus-percent exclude each other" },
		{ "cus=3 cus-min=1 cus-min-percent=5",
		  "cus-min and cus-min-percent exclude each other" },
		{ "cus-percent=3 cus-max=30 cus-max-percent=5",
		  "cus-max and cus-max-percent exclude each other" },
		{ "cus-percent=30 cus-min-percent=31",
		  "cus-min-percent 31 is above cus-percent 30" },
		{ "cus-percent=30 cus-max-percent=29",
		  "cus-max-percent 29 is below cus-percent 30" },
		{ "cus-percent=30 cus-max-percent=31 exact=1",
		  "exact and cus-max contradict each other" },
		{ "cus-min-percent=30", "cus or shader-engines must say how much" },
	};
	_cleanup_(lending_done) struct lending l = equal_machine(1);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(gpus_for(&l, rows[i][0]) == 0 && l.s.result.kind == RESULT_INVALID_REQUEST &&
		      strstr(l.s.result.sentence, rows[i][1]));
}

TEST(a_resize_takes_a_share_of_its_gpu)
{
	_cleanup_(lending_done) struct lending l = equal_machine(2);
	struct lease *lease = fix_on(&l, ANY, "1", 60);

	CHECK(resize_as(&l.s, lease, "cus-percent=1 gpu=0,1") < 0);
	CHECK(strstr(l.s.result.sentence, "1% of 60 CUs"));
	CHECK(resize_as(&l.s, lease, "cus-percent=25 gpu=0") < 0);
	CHECK(resize_as(&l.s, lease, "cus-percent=25 gpu=0,1") == 0 && cus_of(lease) == 15);
}

TEST(plan_and_moves_choose_among_named_gpus)
{
	_cleanup_(lending_done) struct lending l = equal_machine(3);
	struct request request = request_of("cus=60 gpu=1,2");
	struct caller caller = caller_of(LAB);
	struct advice advice = { 0 };
	struct lease *lease;

	l.s.arbiter->settings->tenants[2].preempt = true;
	for (unsigned i = 0; i < 3; i++)
		CHECK(fix_on(&l, ANY, (const char *[]){ "0", "1", "2" }[i], 60));
	CHECK(plan_lease(l.s.arbiter, &caller, &request, &lease, &l.s.result) == 0);
	CHECK(advice_find(l.s.arbiter, lease, ADVICE_REVOCABLE, &advice) == 1);
	CHECK(advice.n == 1 && advice.ids[0] != 1);
	lease_free(lease);
}
