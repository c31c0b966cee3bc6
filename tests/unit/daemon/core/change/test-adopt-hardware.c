/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adoption of saved leases on changed hardware, of waiting leases, and of known processes. */

#include "adopt-rig.h"
#include "check.h"

/* ---- changed hardware -------------------------------------------------------------- */

TEST(adopted_gang_with_a_missing_gpu_is_ending_and_its_other_gpus_stay_charged)
{
	_cleanup_(pair_done) struct pair p = pair_of(2);
	struct request request = request_for(20);
	struct lease *lease;
	unsigned touched;

	request.n_wants = 2;
	request.wants[1] = request.wants[0];
	strcpy(request.wants[0].gpu, "0");
	lease = saved(reserve(p.old.arbiter, ANY, &request, &p.old.result));
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
	struct request request = request_for(30);
	struct lease *lease;

	strcpy(request.wants[0].gpu, gpu);
	request.wait_usec = 1000000;
	lease = reserve(p->old.arbiter, uid, &request, &p->old.result);
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
	struct request request = request_for(60);
	struct lease *a, *b, *next;

	for (size_t i = 0; i < 2; i++) {
		a = reserve(p.old.arbiter, ANY, &request, &p.old.result);
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
	struct request request = request_for(60);
	struct lease *lease, *next;
	uint64_t id;

	strcpy(request.wants[0].gpu, "1");
	CHECK(reserve(p.old.arbiter, ANY, &request, &p.old.result));
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
		struct pair p = pair_of(1);
		struct lease *lease;

		grant(&p.old, ANY, 45);
		lease = saved(waiting(&p, ANY, "any"));
		lease->wait.passed = counts[i][0];
		CHECK(adopt(&p, lease) == 0 && lease->wait.passed == counts[i][1]);
		pair_done(&p);
	}
}
