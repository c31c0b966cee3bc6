/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adoption of saved leases: what is taken over, on changed hardware too, and which leases contradict each other. */

#include <errno.h>

#include "adopt-rig.h"
#include "check.h"
#include "lend-rig.h"

TEST(adopted_lease_is_unchanged_and_not_touched)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = grant(&p.old, VR, 20), *again = saved(lease);
	const struct gpu *before = &p.old.arbiter->gpus[0], *gpu = &p.new.arbiter->gpus[0];

	again->partitions[0].count = 7; /* what follows from the CUs is not saved */
	CHECK(adopt(&p, again) == 0);
	CHECK(!again->touched && !p.new.arbiter->touched && again->state == STATE_GRANTED);
	CHECK(again->partitions[0].count == 20);
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

/* A saved realtime lease on two GPUs, changed by the expressions, is refused in these words. */
#define CONTRADICTION(id, words, ...)                                                             \
	TEST(id)                                                                                  \
	{                                                                                         \
		_cleanup_(pair_done) struct pair p = pair_of(2);                                  \
		struct lease *lease =                                                             \
			saved(grant_as(&p.old, VR, "cus=10 vram=1048576 | cus=10 vram=1048576")); \
                                                                                                  \
		__VA_ARGS__;                                                                      \
		CHECK(refused_for(&p, adopt(&p, lease), -EINVAL, words));                         \
	}                                                                                         \
	struct check_test

static void isolate(struct lease *lease, enum isolation isolation)
{
	for (size_t i = 0; i < 2; i++)
		lease->partitions[i].isolation = isolation;
}

/* Its bases are what the masks are when their bits are shifted so far; 0: they are empty. */
static void adapt(struct lease *lease, unsigned shift)
{
	make_adaptable(lease);
	isolate(lease, ISOLATION_CU);
	for (size_t i = 0; i < 2; i++) {
		struct partition *p = &lease->partitions[i];

		*p->adaptation = (struct adaptation){ 0 };
		for (unsigned pair = 0; shift > 0 && pair < CUSET_PAIRS; pair++)
			p->adaptation->base.pair[pair] = p->cus.pair[pair] << shift;
	}
}

static struct request *give_request(struct lease *lease)
{
	struct request request = request_for(10);

	lease->request = request_keep(&request);
	CHECK(lease->request);
	return lease->request;
}

CONTRADICTION(a_guaranteed_lease_cannot_be_inactive, "class guaranteed cannot be inactive",
	      lease->class = CLASS_GUARANTEED, lease->state = STATE_INACTIVE);
CONTRADICTION(a_realtime_lease_cannot_be_adaptable, "class realtime cannot be adaptable",
	      lease->adaptable = true);
CONTRADICTION(an_adaptable_lease_has_a_base, "the base of an adaptable partition", adapt(lease, 0));
CONTRADICTION(a_base_is_within_its_mask, "the base of an adaptable partition", adapt(lease, 16));
CONTRADICTION(an_adaptable_lease_shares_nothing, "the base of an adaptable partition",
	      make_adaptable(lease), isolate(lease, ISOLATION_SHARED));
CONTRADICTION(a_granted_lease_is_not_idle, "is granted cannot be idle", lease->lend.idle = true);
CONTRADICTION(a_lease_that_does_not_adapt_is_not_paused, "does not adapt is paused",
	      lease->partitions[0].paused = true);
CONTRADICTION(an_inactive_lease_has_partitions, "is inactive cannot have 0 partitions",
	      lease->state = STATE_INACTIVE, lease->n_partitions = 0);
CONTRADICTION(a_granted_lease_has_partitions, "is granted cannot have 0 partitions",
	      lease->n_partitions = 0);
CONTRADICTION(a_waiting_lease_has_no_partitions, "is waiting cannot have 2 partitions",
	      lease->state = STATE_WAITING);
CONTRADICTION(a_waiting_lease_has_a_request, "waiting and has no request",
	      lease->state = STATE_WAITING, lease->n_partitions = 0);
CONTRADICTION(a_token_is_of_a_request, "a token and no request", strcpy(lease->token, "t"));
CONTRADICTION(a_request_has_wants, "0 wants", give_request(lease)->n_wants = 0);
CONTRADICTION(a_lease_has_the_class_of_its_request, "its request is of class",
	      give_request(lease)->class = CLASS_BESTEFFORT);
CONTRADICTION(a_saved_request_is_valid, "its request is invalid: want 1: priority 17",
	      give_request(lease)->wants[0].priority = 17);
CONTRADICTION(partitions_are_on_different_gpus, "two partitions are on 0000:0",
	      lease->partitions[1].gpu = lease->partitions[0].gpu);
CONTRADICTION(a_realtime_lease_shares_no_cus, "class realtime cannot have isolation shared",
	      lease->partitions[0].isolation = ISOLATION_SHARED);
CONTRADICTION(a_guaranteed_lease_takes_no_engines,
	      "class guaranteed cannot have isolation shader-engine",
	      lease->class = CLASS_GUARANTEED,
	      lease->partitions[0].isolation = ISOLATION_SHADER_ENGINE);
CONTRADICTION(a_guaranteed_lease_is_not_alone, "class guaranteed cannot have isolation cu, alone",
	      lease->class = CLASS_GUARANTEED, isolate(lease, ISOLATION_CU),
	      lease->partitions[0].alone = true);
CONTRADICTION(a_partition_has_cus, "has no CUs", lease->partitions[0].cus = (struct cuset){ 0 });
CONTRADICTION(the_cus_of_a_mask_are_occupied, "granted more than it is charged",
	      lease->partitions[0].occupied = (struct cuset){ 0 });
CONTRADICTION(a_granted_budget_is_charged, "granted more than it is charged",
	      lease->partitions[0].charged.vram = 0);

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
	struct lease *lease = grant(&old.s, LAB, 15), *borrower = borrow(&old, 4, 60);
	char why[256];

	CHECK(cus_of(borrower) == 45);
	CHECK(resize_as(&old.s, lease, "cus=30") == 0);
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

/* gpuarbd was killed when it had saved the larger base, and not yet that the borrower had returned its CUs. */
TEST(lease_with_a_larger_base_proves_that_the_borrower_has_acknowledged)
{
	struct lending old = lending_of(1), l = lending_of(1);
	struct lease *first = borrow(&old, 4, 60), *second = borrow(&old, 4, 60);
	char why[256];

	follow(&old, first);
	follow(&old, second);
	follow(&old, first);
	CHECK(resize_as(&old.s, first, "cus-min=45 cus-max=60") == 0);
	settle(&old);
	CHECK(lease_awaits_resize(first));
	second = saved(second);
	follow(&old, ledger_find(old.s.arbiter, second->id));
	CHECK(!lease_awaits_resize(first));
	first = saved(first);
	CHECK(adopt_saved(l.s.arbiter, first, "", why, sizeof(why)) == 0);
	CHECK(adopt_saved(l.s.arbiter, second, "", why, sizeof(why)) == 0);
	arbiter_adopted(l.s.arbiter, l.now);
	CHECK(first->state == STATE_GRANTED && second->acknowledged == second->generation);
	scene_done(&old.s);
	lending_done(&l);
}

/* ---- changed hardware -------------------------------------------------------------- */

TEST(adopted_gang_with_a_missing_gpu_is_ending_and_its_other_gpus_stay_charged)
{
	_cleanup_(pair_done) struct pair p = pair_of(2);
	struct lease *lease;
	unsigned touched;

	lease = saved(grant_as(&p.old, ANY, "cus=20 gpu=0 | cus=20"));
	lease->partitions[0] = (struct partition){ .gpu = GPU_ABSENT };
	CHECK(adopt_saved(p.new.arbiter, lease, "0000:99:00.0", p.why, sizeof(p.why)) == 0);
	CHECK(lease->state == STATE_ENDING && lease->cause == RESULT_NO_SUCH_GPU);
	CHECK(strstr(lease->reason, "GPU 0000:99:00.0"));
	CHECK(lease->n_partitions == 1 && p.new.arbiter->gpus[1].n_partitions == 1);
	CHECK(ledger_take_touched(p.new.arbiter, &touched) == lease && touched == TOUCH_ENDING);
	CHECK(arbiter_observe(p.new.arbiter, NULL, 0) == 0 && p.new.arbiter->n_leases == 0);
}

TEST(adopted_lease_whose_gpus_are_all_missing_is_ending)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = saved(grant(&p.old, ANY, 20)), *again;

	lease->partitions[0].gpu = GPU_ABSENT;
	CHECK(adopt_saved(p.new.arbiter, lease, "0000:99:00.0", p.why, sizeof(p.why)) == 0);
	CHECK(lease->n_partitions == 0 && lease->state == STATE_ENDING);

	/* Saved like this, it is adopted again by the next daemon. */
	again = saved(lease);
	again->id = 2;
	CHECK(adopt(&p, again) == 0 && again->state == STATE_ENDING);
}

static void set_cus(struct partition *p, unsigned engine, uint32_t word)
{
	p->cus.pair[engine] = word;
	p->occupied = p->cus;
}

TEST(adopted_partition_that_the_gpu_cannot_have_ends_its_lease)
{
	for (unsigned i = 0; i < 6; i++) {
		struct pair p = pair_of(1);
		struct lease *lease = saved(grant(&p.old, ANY, 20));
		struct partition *partition = &lease->partitions[0];
		const char *words[] = { "the GPU has not", "the GPU has not", "effective",
					"than the GPU",    "than the GPU",    "than the GPU" };

		if (i == 0)
			set_cus(partition, 5, 1); /* there are four engines */
		else if (i == 1)
			partition->occupied.pair[0] |= UINT32_C(1) << 20;
		else if (i == 2)
			set_cus(partition, 0,
				partition->cus.pair[0] ^ 1); /* no rectangle any more */
		else if (i == 3)
			partition->charged.queues = 25;
		else if (i == 4)
			partition->charged.cooperative = 2;
		else
			partition->charged.vram = UINT64_MAX;
		CHECK(adopt(&p, lease) == 0 && lease->state == STATE_ENDING);
		CHECK(strstr(lease->reason, "GPU 0000:03:00.0"));
		CHECK(strstr(lease->reason, words[i]) && lease->n_partitions == 0);
		CHECK(gpu_cus_free(&p.new.arbiter->gpus[0]) == 60);
		pair_done(&p);
	}
}

TEST(adopted_mask_with_half_a_wgp_or_an_empty_xcc_ends_its_lease)
{
	static const struct geometry shapes[] = {
		{ .xccs = 1, .engines = 4, .arrays = 2, .array_cus = 10, .wgp = true },
		{ .xccs = 2, .engines = 4, .arrays = 1, .array_cus = 10 },
		{ .xccs = 1, .engines = 4, .arrays = 2, .array_cus = 10, .wgp = true },
		{ .xccs = 1, .engines = 4, .arrays = 2, .array_cus = 10, .wgp = true },
	};
	static const char *const words[] = { "splits a WGP", "an XCC without a CU", "splits a WGP",
					     "the base, or the mask before" };

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct gpu_info info = radeon_vii("0000:03:00.0");
		struct result result = { 0 };
		struct request request = request_for(16);
		struct arbiter *old, *new;
		struct lease *lease;
		char why[256];

		info.geometry = shapes[i];
		CHECK(geometry_spread(&info.geometry, 80) == 0);
		old = arbiter_of(&info, 1);
		new = arbiter_of(&info, 1);
		lease = saved(reserve(old, ANY, &request, &result));
		lease->partitions[0].any_shape = true;
		if (i == 0)
			set_cus(&lease->partitions[0], 0, lease->partitions[0].cus.pair[0] ^ 1);
		for (unsigned e = 0; i == 1 && e < 4; e++)
			set_cus(&lease->partitions[0], CUSET_ENGINES + e, 0);
		if (i == 2) /* occupied must have whole WGPs, too */
			lease->partitions[0].occupied.pair[0] |= UINT32_C(1) << 9;
		if (i == 3) {
			make_adaptable(lease);
			for (unsigned e = 0; e < 4; e++)
				lease->partitions[0].adaptation->base.pair[e] &= ~UINT32_C(1);
		}
		CHECK(adopt_saved(new, lease, "", why, sizeof(why)) == 0);
		CHECK(lease->state == STATE_ENDING && strstr(lease->reason, words[i]));
		result_done(&result);
		arbiter_free(old);
		arbiter_free(new);
	}
}

TEST(adopted_lease_cannot_await_a_base_that_is_no_rectangle)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = saved(grant(&p.old, ANY, 20));
	struct partition *part;

	make_adaptable(lease);
	part = &lease->partitions[0];
	part->resize.pair[0] = 3;
	part->resize.pair[1] = 1;
	CHECK(adopt(&p, lease) == 0 && lease->state == STATE_ENDING);
	CHECK(strstr(lease->reason, "rectangle"));
}

TEST(adopted_lease_cannot_await_cus_that_the_gpu_has_not)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = saved(grant(&p.old, ANY, 20));

	memset(lease->partitions[0].resize.pair, 0xff, sizeof(lease->partitions[0].resize.pair));
	CHECK(adopt(&p, lease) == 0 && lease->state == STATE_ENDING);
}

TEST(adopted_ending_lease_keeps_its_reason)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = grant(&p.old, ANY, 20);

	arbiter_end(p.old.arbiter, lease, RESULT_NOT_PERMITTED, "because");
	lease = saved(lease);
	lease->partitions[0].charged.queues = 25;
	CHECK(adopt(&p, lease) == 0 && lease->state == STATE_ENDING);
	CHECK(strcmp(lease->reason, "because") == 0 && lease->cause == RESULT_NOT_PERMITTED);
}

/* ---- waiting leases ---------------------------------------------------------------- */

static struct lease *waiting(struct pair *p, uid_t uid, const char *gpu)
{
	struct lease *lease = grant_as(&p->old, uid, "cus=30 gpu=%s; wait-usec=1000000", gpu);

	CHECK(lease && lease->state == STATE_WAITING);
	return lease;
}

/* Version 0.2 saved what was true then. */
TEST(reason_of_an_adopted_lease_follows_from_what_is_so_now)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease = saved(grant(&p.old, ANY, 40)), *waits;

	strcpy(lease->reason, "25 queues on 0000:03:00.0 (granted: 4)");
	CHECK(adopt(&p, lease) == 0 && lease->state == STATE_GRANTED);
	CHECK(!*reason_of(p.new.arbiter, lease));
	waits = saved(waiting(&p, ANY, "0")); /* not examined by the new gpuarbd yet */
	CHECK(adopt(&p, waits) == 0 && strstr(reason_of(p.new.arbiter, waits), "30 CUs"));
}

TEST(adopted_waiting_lease_keeps_its_position_and_is_examined_at_once)
{
	_cleanup_(pair_done) struct pair p = pair_of(2);
	struct lease *a, *b, *next;

	for (size_t i = 0; i < 2; i++) {
		a = grant_as(&p.old, ANY, "cus=60");
		CHECK(adopt(&p, saved(a)) == 0);
	}
	a = saved(waiting(&p, ANY, "any"));
	b = saved(waiting(&p, LAB, "1"));
	CHECK(adopt(&p, a) == 0 && adopt(&p, b) == 0);
	CHECK(queue_position(p.new.arbiter, b) == 1 && queue_position(p.new.arbiter, a) == 2);
	CHECK(!a->touched && arbiter_plan_next(p.new.arbiter, &next) == 0);
	CHECK(a->wait.candidates == 3 && b->wait.candidates == 2);

	arbiter_end(p.new.arbiter, ledger_find(p.new.arbiter, 2), RESULT_OK, "test");
	CHECK(arbiter_observe(p.new.arbiter, NULL, 0) == 0);
	CHECK(arbiter_plan_next(p.new.arbiter, &next) == 1 && next->id == b->id);
	CHECK(arbiter_commit(p.new.arbiter, next) == b && b->state == STATE_GRANTED);
}

TEST(adopted_waiting_lease_for_a_missing_gpu_ends)
{
	_cleanup_(pair_done) struct pair p = pair_of(2);
	struct lease *lease, *next;
	uint64_t id;

	CHECK(grant_as(&p.old, ANY, "cus=60 gpu=1"));
	lease = saved(waiting(&p, ANY, "0000:04:00.0"));
	id = lease->id;
	arbiter_free(p.new.arbiter);
	p.new = scene_of(1);
	CHECK(adopt(&p, lease) == 0 && lease->wait.candidates == 0);
	CHECK(arbiter_plan_next(p.new.arbiter, &next) == 0 && !ledger_find(p.new.arbiter, id));
}

/* ---- processes --------------------------------------------------------------------- */

TEST(dead_process_keeps_its_lease_after_a_restart)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");
	struct observed row = {
		.pid = 1000 + ANY, .start_time = 7, .uid = ANY, .kfd_gpu_id = 9, .queues = 2
	};
	struct observed dead = {
		.pid = 1000 + ANY, .uid = (uid_t)-1, .kfd_gpu_id = 9, .queues = 2
	};
	struct lease_process processes[2] = { 0 };
	struct scene old = scene_of(0), new = scene_of(0);
	struct lease *lease;
	char why[256];

	info.kfd_gpu_id = 9;
	CHECK(arbiter_set_gpus(old.arbiter, &info, 1) == 0);
	CHECK(arbiter_set_gpus(new.arbiter, &info, 1) == 0);
	lease = grant(&old, ANY, 10);
	CHECK(arbiter_observe(old.arbiter, &row, 1) == 0);
	CHECK(known_processes(old.arbiter, lease->id, false, processes, 2) == 1);
	CHECK(processes[0].pid == 1000 + ANY && processes[0].start_time == 7);
	arbiter_holder_gone(old.arbiter, lease->id);

	lease = saved(lease);
	lease->pid = 0; /* another process may have the pid of the owner now */
	CHECK(adopt_saved(new.arbiter, lease, "", why, sizeof(why)) == 0);
	CHECK(known_add(new.arbiter, lease->id, &processes[0]) == 0);
	CHECK(arbiter_observe(new.arbiter, &dead, 1) == 0);
	CHECK(new.arbiter->n_leases == 1 && lease->observed.processes == 1);
	CHECK(lease->partitions[0].used.queues == 2 &&
	      new.arbiter->gpus[0].observed.n_processes == 0);
	CHECK(arbiter_observe(new.arbiter, NULL, 0) == 0 && new.arbiter->n_leases == 0);
	scene_done(&old);
	scene_done(&new);
}

TEST(processes_are_listed_once_and_counted_beyond_the_array)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *a = grant(&s, ANY, 10), *b = grant(&s, LAB, 10);
	static const struct lease_process list[] = { { 30, 3, false, 0 },
						     { 10, 1, false, 0 },
						     { 20, 2, false, 0 },
						     { 10, 1, false, 0 },
						     { 10, 9, false, 0 } };
	struct lease_process got[4] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		CHECK(known_add(s.arbiter, a->id, &list[i]) == 0);
	CHECK(known_add(s.arbiter, b->id, &(struct lease_process){ 15, 1, false, 0 }) == 0);
	CHECK(known_processes(s.arbiter, a->id, false, got, 3) == 4 && got[3].pid == 0);
	CHECK(got[0].pid == 10 && got[1].pid == 10 && got[2].pid == 20);
	CHECK(known_processes(s.arbiter, b->id, false, got, 4) == 1 && got[0].pid == 15);
	CHECK(known_processes(s.arbiter, 77, false, NULL, 0) == 0);
}

TEST(process_on_two_gpus_is_listed_once)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease = grant(&s, ANY, 10);
	struct observed rows[2] = {
		{ .pid = 1000 + ANY, .start_time = 7, .uid = ANY, .kfd_gpu_id = 1 },
		{ .pid = 1000 + ANY, .start_time = 7, .uid = ANY, .kfd_gpu_id = 2 }
	};

	CHECK(arbiter_observe(s.arbiter, rows, 2) == 0);
	CHECK(known_processes(s.arbiter, lease->id, false, NULL, 0) == 1);
}

TEST(unsaved_passes_are_assumed_after_a_restart)
{
	static const unsigned counts[][2] = {
		{ 0, 3 }, { 4, 7 }, { 7, 7 }, { 15, 15 }, { 16, 16 }
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		_cleanup_(pair_done) struct pair p = pair_of(1);
		struct lease *lease;

		grant(&p.old, ANY, 45);
		lease = saved(waiting(&p, ANY, "any"));
		lease->wait.passed = counts[i][0];
		CHECK(adopt(&p, lease) == 0 && lease->wait.passed == counts[i][1]);
	}
}

/* ---- leases that contradict each other ----------------------------------- */

TEST(second_lease_with_the_same_id_or_token_is_refused)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct request request = request_of("cus=10; token=t");
	struct lease *a = grant_as(&p.old, ANY, "cus=10; token=t"), *b;

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
		_cleanup_(pair_done) struct pair p = pair_of(1);
		struct lease *lease = grant(&p.old, users[i], 10);

		CHECK(adopt(&p, saved(lease)) == 0);
		CHECK(refused_for(&p, adopt_twin(&p, lease), -EEXIST, "CUs of it on 0000:03:00.0"));
	}
}

TEST(adopted_cus_that_await_acknowledgement_stay_occupied)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *a = grant(&p.old, ANY, 60);
	struct gpu *gpu = &p.new.arbiter->gpus[0];

	CHECK(resize_as(&p.old, a, "cus=8") == 0 && adopt(&p, saved(a)) == 0);
	CHECK(gpu_cus_free(gpu) == 0);
	CHECK(arbiter_acknowledge(p.new.arbiter, a->id, 2) == 0 && gpu_cus_free(gpu) == 52);
}

TEST(shared_best_effort_leases_are_all_adopted)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *lease;

	lease = grant_as(&p.old, ANY, "cus=60 isolation=shared");
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

TEST(adopted_budgets_never_exceed_the_gpu)
{
	static const struct {
		enum resource resource;
		uint64_t each; /* of which the GPU has no two */
	} table[] = {
		{ RESOURCE_SDMA_QUEUES, 9 },
		{ RESOURCE_SDMA_XGMI_QUEUES, 9 },
		{ RESOURCE_VRAM, UINT64_C(9) << 30 },
		{ RESOURCE_COOPERATIVE_QUEUES, 1 },
		{ RESOURCE_QUEUES, 15 },
		{ RESOURCE_PROCESSES, 5 },
	};
	static const uid_t users[] = { VR, LAB, ANY };

	for (size_t i = 0; i < ARRAY_SIZE(table) * ARRAY_SIZE(users); i++) {
		enum resource resource = table[i / ARRAY_SIZE(users)].resource;
		uid_t user = users[i % ARRAY_SIZE(users)];
		_cleanup_(pair_done) struct pair p = pair_of(1);
		struct lease *leases[2];

		printf("  resource %d of user %u\n", resource, user);
		for (size_t j = 0; j < 2; j++) {
			struct partition *partition;

			leases[j] = saved(grant(&p.old, user, 15));
			partition = &leases[j]->partitions[0];
			partition->granted.of[resource] = partition->charged.of[resource] =
				table[i / ARRAY_SIZE(users)].each;
			/* Slots: policy may have allowed best-effort leases to oversubscribe them. */
			if (user == ANY &&
			    (resource == RESOURCE_QUEUES || resource == RESOURCE_PROCESSES))
				leases[j]->class = CLASS_GUARANTEED;
		}
		CHECK(adopt(&p, leases[0]) == 0);
		CHECK(refused_for(&p, adopt(&p, leases[1]), -EEXIST, "0000:03:00.0"));
	}
}

TEST(adopted_best_effort_beyond_the_slots_stays_and_marks_the_gpu_oversubscribed)
{
	_cleanup_(pair_done) struct pair p = pair_of(1);
	struct lease *a, *b;

	p.old.arbiter->settings->oversubscribe_besteffort = true;
	a = grant_as(&p.old, ANY, "cus=15 queues=20");
	b = grant_as(&p.old, ANY, "cus=15 queues=20");
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
