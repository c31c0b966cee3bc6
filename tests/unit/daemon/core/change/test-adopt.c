/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adoption of saved leases: what is taken over, and which leases contradict themselves. */

#include <errno.h>

#include "adopt-rig.h"
#include "check.h"
#include "lend-rig.h"

TEST(adopted_lease_is_unchanged_and_not_touched)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = grant(&p.old, VR, 20), *again = saved(lease);
	const struct gpu *before = &p.old.arbiter->gpus[0], *gpu = &p.new.arbiter->gpus[0];

	again->n_bound = 1; /* holders and observed use are not adopted: they come later */
	again->observed.processes = 3;
	again->partitions[0].used.queues = 3;
	again->partitions[0].count = 7;
	CHECK(adopt(&p, again) == 0);
	CHECK(!again->touched && !p.new.arbiter->touched && again->state == STATE_GRANTED);
	CHECK(again->n_holders == 0 && again->n_bound == 0 && again->observed.processes == 0);
	CHECK(again->partitions[0].count == 20 && again->partitions[0].used.queues == 0);
	CHECK(cuset_equal(&before->taken, &gpu->taken) && gpu->n_realtime == 1);
	CHECK(gpu->charged.queues == before->charged.queues);
	CHECK(grant(&p.new, ANY, 10)->id == lease->id + 1);
}

TEST(leases_are_adopted_in_any_order_of_ids)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *a = grant(&p.old, ANY, 10), *b = grant(&p.old, ANY, 10);

	CHECK(adopt(&p, saved(b)) == 0 && adopt(&p, saved(a)) == 0);
	CHECK(p.new.arbiter->leases[0]->id == a->id &&p.new.arbiter->next_id == b->id + 1);
}

/* ---- contradictions within a lease ------------------------------------------------- */

static void lends(struct lease *lease)
{
	lease->class = CLASS_GUARANTEED;
	lease->state = STATE_INACTIVE;
}

static void adapts(struct lease *lease)
{
	lease->adaptable = true;
}

static void adapts_and_shares(struct lease *lease)
{
	make_adaptable(lease);
	for (size_t i = 0; i < 2; i++)
		lease->partitions[i].isolation = ISOLATION_SHARED;
}

static void adapts_without_base(struct lease *lease)
{
	make_adaptable(lease);
	for (size_t i = 0; i < 2; i++) {
		lease->partitions[i].isolation = ISOLATION_CU;
		*lease->partitions[i].adaptation = (struct adaptation){ 0 };
	}
}

static void base_elsewhere(struct lease *lease)
{
	adapts_without_base(lease);
	for (size_t i = 0; i < 2; i++) {
		struct partition *p = &lease->partitions[i];

		for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
			p->adaptation->base.pair[pair] = p->cus.pair[pair] << 16;
	}
}

static void is_idle(struct lease *lease)
{
	lease->lend.idle = true;
}

static void pauses_in_part(struct lease *lease)
{
	lease->partitions[0].paused = true;
}

static void inactive_without_partitions(struct lease *lease)
{
	lease->state = STATE_INACTIVE;
	lease->n_partitions = 0;
}

static void no_partition(struct lease *lease)
{
	lease->n_partitions = 0;
}

static void waits(struct lease *lease)
{
	lease->state = STATE_WAITING;
}

static void waits_for_nothing(struct lease *lease)
{
	lease->state = STATE_WAITING;
	lease->n_partitions = 0;
}

static void token_alone(struct lease *lease)
{
	strcpy(lease->token, "t");
}

static void give_request(struct lease *lease)
{
	struct request request = request_for(10);

	lease->request = request_keep(&request);
	CHECK(lease->request);
}

static void no_wants(struct lease *lease)
{
	give_request(lease);
	lease->request->n_wants = 0;
}

static void another_class(struct lease *lease)
{
	give_request(lease);
	lease->request->class = CLASS_BESTEFFORT;
}

static void bad_want(struct lease *lease)
{
	give_request(lease);
	lease->request->wants[0].priority = 17;
}

static void same_gpu(struct lease *lease)
{
	lease->partitions[1].gpu = lease->partitions[0].gpu;
}

static void shares(struct lease *lease)
{
	lease->partitions[0].isolation = ISOLATION_SHARED;
}

static void takes_engines(struct lease *lease)
{
	lease->class = CLASS_GUARANTEED;
	lease->partitions[0].isolation = ISOLATION_SHADER_ENGINE;
}

static void is_alone(struct lease *lease)
{
	lease->class = CLASS_GUARANTEED;
	lease->partitions[0].isolation = lease->partitions[1].isolation = ISOLATION_CU;
	lease->partitions[0].alone = true;
}

static void no_cus(struct lease *lease)
{
	memset(&lease->partitions[0].cus, 0, sizeof(lease->partitions[0].cus));
}

static void not_occupied(struct lease *lease)
{
	memset(&lease->partitions[0].occupied, 0, sizeof(lease->partitions[0].occupied));
}

static void not_charged(struct lease *lease)
{
	lease->partitions[0].charged.vram = 0;
}

TEST(lease_that_contradicts_itself_is_refused)
{
	static const struct {
		void (*spoil)(struct lease *);
		const char *words;
	} table[] = {
		{ lends, "class guaranteed cannot be inactive" },
		{ adapts, "class realtime cannot be adaptable" },
		{ adapts_without_base, "the base of an adaptable partition" },
		{ base_elsewhere, "the base of an adaptable partition" },
		{ adapts_and_shares, "the base of an adaptable partition" },
		{ is_idle, "is granted cannot be idle" },
		{ pauses_in_part, "does not adapt is paused" },
		{ inactive_without_partitions, "is inactive cannot have 0 partitions" },
		{ no_partition, "is granted cannot have 0 partitions" },
		{ waits, "is waiting cannot have 2 partitions" },
		{ waits_for_nothing, "waiting and has no request" },
		{ token_alone, "a token and no request" },
		{ no_wants, "0 wants" },
		{ another_class, "its request is of class" },
		{ bad_want, "its request is invalid: want 1: priority 17" },
		{ same_gpu, "two partitions are on 0000:0" },
		{ shares, "class realtime cannot have isolation shared" },
		{ takes_engines, "class guaranteed cannot have isolation shader-engine" },
		{ is_alone, "class guaranteed cannot have isolation cu, alone" },
		{ no_cus, "has no CUs" },
		{ not_occupied, "granted more than it is charged" },
		{ not_charged, "granted more than it is charged" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct pair p = pair_of(2);
		struct request request = request_for(10);
		struct lease *lease;

		request.wants[0].vram = 1 << 20;
		request.n_wants = 2;
		request.wants[1] = request.wants[0];
		lease = saved(reserve(p.old.arbiter, VR, &request, &p.old.result));
		table[i].spoil(lease);
		CHECK(refused_for(&p, adopt(&p, lease), -EINVAL, table[i].words));
		pair_done(&p);
	}
}

TEST(lease_belongs_to_the_caller_when_memory_is_short)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = saved(grant(&p.old, ANY, 10));
	size_t room = p.new.arbiter->room;

	p.new.arbiter->room = p.new.arbiter->n_leases;
	CHECK(refused_for(&p, adopt(&p, lease), -ENOMEM, "memory"));
	p.new.arbiter->room = room;
}

/* When masks last grew is not saved, and may have been just before the restart. */
TEST(growth_is_paced_across_a_restart)
{
	struct lending old = lending_of(1), l = lending_of(1);
	struct settings *settings = l.s.arbiter->settings;
	struct lease *lease;
	char why[256];

	settings->grow_delay_usec = 10000;
	settings->activate_min_interval_usec = 3600 * SECOND_USEC;
	grant(&old.s, ANY, 45);
	lease = saved(borrow(&old, 4, 60));
	l.now = ADOPTED_USEC;
	CHECK(cus_of(lease) == 15 && adopt_saved(l.s.arbiter, lease, "", why, sizeof(why)) == 0);
	settle(&l);
	pass(&l, settings->grow_delay_usec);
	CHECK(cus_of(lease) == 15);
	pass(&l, settings->activate_min_interval_usec - settings->grow_delay_usec - 1);
	CHECK(cus_of(lease) == 15);
	pass(&l, 1);
	CHECK(cus_of(lease) == 60);
	scene_done(&old.s);
	lending_done(&l);
}

/* It uses its CUs until it ends; only those that it was to get are not returned yet. */
TEST(revoked_lease_that_awaits_cus_of_a_resize_is_active_after_a_restart)
{
	struct lending old = lending_of(1), l = lending_of(1);
	struct request request = request_for(30);
	struct caller caller = caller_of(LAB);
	struct lease *lease = grant(&old.s, LAB, 15), *borrower = borrow(&old, 4, 60), *next;
	char why[256];

	CHECK(cus_of(borrower) == 45);
	CHECK(arbiter_plan_resize(old.s.arbiter, &caller, lease->id, &request, &next,
				  &old.s.result) == 0);
	arbiter_commit(old.s.arbiter, next);
	settle(&old);
	CHECK(lease_awaits_resize(lease));
	CHECK(arbiter_revoke(old.s.arbiter, lease->id, old.now, SECOND_USEC, "", &old.s.result) ==
	      0);
	lease = saved(lease);
	CHECK(adopt_saved(l.s.arbiter, lease, "", why, sizeof(why)) == 0);
	CHECK(adopt_saved(l.s.arbiter, saved(borrower), "", why, sizeof(why)) == 0);
	CHECK(lease->state == STATE_REVOKING && lease_is_active(lease));
	scene_done(&old.s);
	lending_done(&l);
}
