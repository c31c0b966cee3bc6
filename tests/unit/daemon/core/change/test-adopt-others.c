/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adoption of saved leases that contradict each other. */

#include <errno.h>

#include "adopt-rig.h"
#include "check.h"

TEST(second_lease_with_the_same_id_or_token_is_refused)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct request request = request_for(10);
	struct lease *a, *b;

	strcpy(request.token, "t");
	a = reserve(p.old.arbiter, ANY, &request, &p.old.result);
	CHECK(adopt(&p, saved(a)) == 0);
	CHECK(refused_for(&p, adopt(&p, saved(a)), -EEXIST, "lease 1"));
	b = saved(grant(&p.old, ANY, 10));
	strcpy(b->token, "t");
	b->request = request_keep(&request);
	CHECK(refused_for(&p, adopt(&p, b), -EEXIST, "lease 1"));

	b = saved(p.old.arbiter->leases[1]);
	strcpy(b->token, "t");
	b->state = STATE_ENDING; /* its token is free again */
	CHECK(adopt(&p, b) == 0);
}

/* A copy of the lease under the next id, as a file that was tampered with would have it. */
static int adopt_twin(struct pair *p, const struct lease *lease)
{
	struct lease *twin = saved(lease);

	twin->id++;
	return adopt(p, twin);
}

TEST(adopted_leases_never_share_a_cu)
{
	static const uid_t users[] = { VR, LAB, ANY };

	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		struct pair p = pair_of(1);
		struct lease *lease = grant(&p.old, users[i], 10);

		CHECK(adopt(&p, saved(lease)) == 0);
		CHECK(refused_for(&p, adopt_twin(&p, lease), -EEXIST, "CUs of it on 0000:03:00.0"));
		pair_done(&p);
	}
}

TEST(adopted_cus_that_await_acknowledgement_stay_occupied)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct caller caller = caller_of(ANY);
	struct request request = request_for(8);
	struct lease *a = grant(&p.old, ANY, 60), *next;
	struct gpu *gpu = &p.new.arbiter->gpus[0];

	CHECK(arbiter_plan_resize(p.old.arbiter, &caller, a->id, &request, &next, &p.old.result) ==
	      0);
	CHECK(arbiter_commit(p.old.arbiter, next) == a && adopt(&p, saved(a)) == 0);
	CHECK(gpu_cus_free(gpu) == 0);
	CHECK(arbiter_acknowledge(p.new.arbiter, a->id, 2) == 0 && gpu_cus_free(gpu) == 52);
}

TEST(shared_best_effort_leases_are_all_adopted)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct request request = request_for(60);
	struct lease *lease;

	request.wants[0].isolation = ISOLATION_SHARED;
	lease = reserve(p.old.arbiter, ANY, &request, &p.old.result);
	CHECK(adopt(&p, saved(lease)) == 0 && adopt_twin(&p, lease) == 0);
	CHECK(p.new.arbiter->gpus[0].n_partitions == 2);
}

TEST(adopted_leases_that_exclude_each_other_never_share_an_engine)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *a = grant(&p.old, VR, 10), *b = saved(a);

	CHECK(adopt(&p, saved(a)) == 0);
	for (unsigned i = 0; i < CUSET_PAIRS; i++) /* other CUs of the same engine */
		b->partitions[0].cus.pair[i] = b->partitions[0].cus.pair[i] ? 0x7c00 : 0;
	b->partitions[0].occupied = b->partitions[0].cus;
	b->id = 2;
	CHECK(refused_for(&p, adopt(&p, b), -EEXIST, "lease 1"));
}

static void many_queues(struct partition *p)
{
	p->granted.queues = p->charged.queues = 15;
}

static void many_processes(struct partition *p)
{
	p->granted.processes = p->charged.processes = 5;
}

static void many_sdma_queues(struct partition *p)
{
	p->granted.sdma_queues = p->charged.sdma_queues = 9;
}

static void many_sdma_xgmi_queues(struct partition *p)
{
	p->granted.sdma_xgmi_queues = p->charged.sdma_xgmi_queues = 9;
}

static void much_vram(struct partition *p)
{
	p->granted.vram = p->charged.vram = UINT64_C(9) << 30;
}

static void cooperates(struct partition *p)
{
	p->granted.cooperative = p->charged.cooperative = 1;
}

TEST(adopted_budgets_never_exceed_the_gpu)
{
	static void (*const budgets[])(struct partition *) = {
		many_sdma_queues, many_sdma_xgmi_queues, much_vram,
		cooperates,       many_queues,           many_processes,
	};
	static const uid_t users[] = { VR, LAB, ANY };

	for (size_t i = 0; i < ARRAY_SIZE(budgets) * ARRAY_SIZE(users); i++) {
		void (*spend)(struct partition *) = budgets[i / ARRAY_SIZE(users)];
		uid_t user = users[i % ARRAY_SIZE(users)];
		struct pair p = pair_of(1);
		struct lease *a = saved(grant(&p.old, user, 15)),
			     *b = saved(grant(&p.old, user, 15));

		/* Slots: policy may have allowed best-effort leases to oversubscribe them. */
		if (user == ANY && i >= 9)
			b->class = a->class = CLASS_GUARANTEED;
		spend(&a->partitions[0]);
		spend(&b->partitions[0]);
		CHECK(adopt(&p, a) == 0);
		CHECK(refused_for(&p, adopt(&p, b), -EEXIST, "0000:03:00.0"));
		pair_done(&p);
	}
}

TEST(adopted_best_effort_beyond_the_slots_stays_and_marks_the_gpu_oversubscribed)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct request request = request_for(15);
	struct lease *a, *b;

	p.old.arbiter->settings->oversubscribe_besteffort = true;
	request.wants[0].queues = 20;
	a = reserve(p.old.arbiter, ANY, &request, &p.old.result);
	b = reserve(p.old.arbiter, ANY, &request, &p.old.result);
	CHECK(adopt(&p, saved(a)) == 0 && !p.new.arbiter->gpus[0].observed.oversubscribed);
	CHECK(adopt(&p, saved(b)) == 0 && p.new.arbiter->gpus[0].observed.oversubscribed);
	CHECK(p.new.arbiter->leases[1]->state == STATE_GRANTED);
	CHECK(!grant(&p.new, ANY, 4) && refused(&p.new, RESULT_NO_CAPACITY, REASON_OVERSUBSCRIBED));

	/* Beside a realtime lease the slots cannot have been oversubscribed. */
	b = saved(b);
	b->id = 3;
	b->class = CLASS_REALTIME;
	b->partitions[0].cus = p.new.arbiter->gpus[0].all; /* the CUs that are left */
	cuset_remove(&b->partitions[0].cus, &p.new.arbiter->gpus[0].taken);
	b->partitions[0].occupied = b->partitions[0].cus;
	b->partitions[0].any_shape = true;
	CHECK(refused_for(&p, adopt(&p, b), -EEXIST, "slots"));
}
