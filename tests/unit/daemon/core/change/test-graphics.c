/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/graphics.h"

#include "check.h"
#include "ledger-rig.h"
#include "request-text.h"

#define GPU_ID 4711
#define RT 1  /* a realtime user */
#define ANY 3 /* everybody else */
#define DEVICE "0000:03:00.0"
#define SECOND_USEC UINT64_C(1000000)

static struct arbiter *arbiter_with(const char *gpu, enum graphics graphics)
{
	struct gpu_info info = radeon_vii(gpu);
	struct arbiter *arbiter;

	info.kfd_gpu_id = GPU_ID;
	arbiter = arbiter_of(&info, 1);
	add_tenant(arbiter, "rt", RT, CLASS_REALTIME);
	arbiter->settings->graphics = graphics;
	return arbiter;
}

static struct observed_client client(pid_t pid, uint64_t gfx_nsec, uint64_t vram)
{
	return (struct observed_client){ .process = { .pid = pid,
						      .start_time = 100 + (uint64_t)pid,
						      .uid = 7,
						      .command = "Xorg" },
					 .device = DEVICE,
					 .busy.gfx = gfx_nsec,
					 .vram = vram };
}

static void observe(struct arbiter *arbiter, const struct observed_client *rows, size_t n)
{
	arbiter_observe_clients(arbiter, rows, n, SECOND_USEC, true);
}

static struct lease *ask(struct arbiter *arbiter, uid_t uid, struct result *result)
{
	struct request request = request_for(15);

	result_done(result);
	return reserve(arbiter, uid, &request, result);
}

static bool names_gap(const struct gpu *gpu, const char *gap)
{
	const char *gaps[GPU_GAPS];
	size_t n = gpu_gaps(gpu, gaps);

	for (size_t i = 0; i < n; i++)
		if (strcmp(gaps[i], gap) == 0)
			return true;
	return false;
}

TEST(the_state_of_a_gpu_is_drawn_none_or_unknown)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct gpu *gpu = &a->gpus[0];
	struct observed_client rows[] = { client(10, 0, 5), client(11, 1, 5) };

	CHECK(gpu->graphics.state == GRAPHICS_UNKNOWN && names_gap(gpu, "graphics"));
	observe(a, rows, 1);
	CHECK(gpu->graphics.state == GRAPHICS_NONE && gpu->graphics.n_clients == 1);
	CHECK(!names_gap(gpu, "graphics") && names_gap(gpu, "memory-bandwidth"));
	observe(a, rows, 2);
	CHECK(gpu->graphics.state == GRAPHICS_DRAWN && names_gap(gpu, "graphics"));
	CHECK(gpu->graphics.clients[0].pid == 11 && !gpu->graphics.clients[1].draws);
	arbiter_observe_clients(a, rows, 1, SECOND_USEC, false);
	CHECK(gpu->graphics.state == GRAPHICS_UNKNOWN && gpu->graphics.n_clients == 1);
	arbiter_observe_clients(a, rows, 2, SECOND_USEC, false);
	CHECK(gpu->graphics.state == GRAPHICS_DRAWN);
	arbiter_observe_clients(a, NULL, 0, 0, false);
	CHECK(gpu->graphics.state == GRAPHICS_UNKNOWN && gpu->graphics.n_clients == 0);
}

TEST(compute_through_the_graphics_driver_draws_and_copies_do_not)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct observed_client row = client(10, 0, 5);

	row.busy.dma = 5;
	observe(a, &row, 1);
	CHECK(a->gpus[0].graphics.state == GRAPHICS_NONE);
	row.busy.compute = 5;
	observe(a, &row, 1);
	CHECK(a->gpus[0].graphics.state == GRAPHICS_DRAWN);
}

TEST(shares_are_of_the_elapsed_time_and_never_above_1_or_below_0)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	const struct gpu_graphics *graphics = &a->gpus[0].graphics;
	struct observed_client row = client(10, 1000000, 5);

	observe(a, &row, 1);
	CHECK(graphics->clients[0].shares.gfx == 0); /* nothing to compare with */
	row.busy.gfx += 250000000;
	observe(a, &row, 1);
	CHECK(graphics->clients[0].shares.gfx > 0.2499 && graphics->clients[0].shares.gfx < 0.2501);
	row.busy.gfx = UINT64_MAX;
	observe(a, &row, 1);
	CHECK(graphics->clients[0].shares.gfx == 1);
	row.busy.gfx = 7; /* it closed a client */
	observe(a, &row, 1);
	CHECK(graphics->clients[0].shares.gfx == 0);
	row.busy.gfx = 500000007;
	arbiter_observe_clients(a, &row, 1, 0, true);
	CHECK(graphics->clients[0].shares.gfx == 0);
	row.process.start_time++; /* another process with this pid */
	row.busy.gfx = UINT64_MAX;
	observe(a, &row, 1);
	CHECK(graphics->clients[0].shares.gfx == 0);
}

TEST(those_that_draw_are_listed_first_then_those_with_most_memory)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	const struct gpu_graphics *graphics = &a->gpus[0].graphics;
	struct observed_client rows[80];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = client((pid_t)i + 1, i == 70, i);
	observe(a, rows, ARRAY_SIZE(rows));
	CHECK(graphics->n_clients == ARRAY_SIZE(rows) && graphics->clients[0].pid == 71);
	CHECK(graphics->clients[1].vram == ARRAY_SIZE(rows) - 1);
	for (size_t i = 2; i < graphics->n_clients; i++)
		CHECK(graphics->clients[i].vram < graphics->clients[i - 1].vram);
}

TEST(a_device_is_that_of_all_its_partitions_and_of_no_other_gpu)
{
	struct arbiter *partition = arbiter_with(DEVICE "/2", GRAPHICS_WARN);
	struct arbiter *other = arbiter_with("0000:03:00.1", GRAPHICS_WARN);
	struct observed_client row = client(10, 1, 5);

	observe(partition, &row, 1);
	observe(other, &row, 1);
	CHECK(partition->gpus[0].graphics.state == GRAPHICS_DRAWN);
	CHECK(other->gpus[0].graphics.state == GRAPHICS_NONE);
	snprintf(row.device, sizeof(row.device), "0000:03:00");
	observe(partition, &row, 1);
	CHECK(partition->gpus[0].graphics.state == GRAPHICS_NONE);
	arbiter_free(partition);
	arbiter_free(other);
}

TEST(only_a_strict_policy_refuses_and_only_realtime_requests)
{
	struct observed_client row = client(10, 1, 5);
	_cleanup_(result_done) struct result result = { 0 };

	for (enum graphics graphics = GRAPHICS_IGNORE; graphics <= GRAPHICS_REFUSE_REALTIME;
	     graphics++) {
		struct arbiter *a = arbiter_with(DEVICE, graphics);
		bool strict = graphics == GRAPHICS_REFUSE_REALTIME;

		observe(a, &row, 1);
		CHECK(ask(a, ANY, &result));
		CHECK(!ask(a, RT, &result) == strict);
		if (strict) {
			CHECK(result.kind == RESULT_NO_CAPACITY && result.n_refusals == 1);
			CHECK(result.refusals[0].reason == REASON_GRAPHICS &&
			      result.refusals[0].retry && result.refusals[0].n_processes == 1);
			CHECK(result.refusals[0].processes[0].pid == 10 &&
			      result.refusals[0].processes[0].uid == 7);
			observe(a, NULL, 0);
			CHECK(ask(a, RT, &result));
		}
		arbiter_free(a);
	}
}

TEST(a_strict_policy_refuses_where_it_is_unknown_but_not_on_simulated_gpus)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_REFUSE_REALTIME);
	_cleanup_(result_done) struct result result = { 0 };

	CHECK(!ask(a, RT, &result) && result.refusals[0].reason == REASON_GRAPHICS &&
	      result.refusals[0].n_processes == 0);
	a->gpus[0].info.kfd_gpu_id = 0;
	CHECK(ask(a, RT, &result));
}

TEST(user_queue_that_computes_refuses_realtime_leases_on_its_gpu_alone)
{
	struct gpu_info infos[] = { radeon_vii(DEVICE), radeon_vii("0000:c4:00.0") };
	struct observed_user_queues rows[] = { { DEVICE, 0 }, { "0000:c4:00.0", 1 } };
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(arbiter_freep) struct arbiter *a = NULL;
	struct lease *lease;

	for (unsigned i = 0; i < 2; i++) {
		infos[i].kfd_gpu_id = GPU_ID + i;
		infos[i].drm_queues = true;
	}
	a = arbiter_of(infos, 2);
	add_tenant(a, "rt", RT, CLASS_REALTIME);
	a->settings->graphics = GRAPHICS_IGNORE; /* has no say */
	CHECK(arbiter_has_user_queues(a) && ask(a, ANY, &result));
	CHECK(!ask(a, RT, &result) && result.refusals[0].reason == REASON_GRAPHICS &&
	      result.refusals[0].user_queues == -1 && result.refusals[0].retry);
	arbiter_count_user_queues(a, rows, 2);
	lease = ask(a, RT, &result);
	CHECK(lease && lease->partitions[0].gpu == 0);
	rows[0].compute = 2;
	arbiter_count_user_queues(a, rows, 2);
	CHECK(!ask(a, RT, &result) && result.refusals[0].user_queues == 2);
	rows[0].compute = 0;
	arbiter_count_user_queues(a, rows, 1);
	CHECK(ask(a, RT, &result));
	arbiter_count_user_queues(a, NULL, 0);
	CHECK(!ask(a, RT, &result) && result.refusals[0].user_queues == -1);
	a->gpus[0].info.drm_queues = a->gpus[1].info.drm_queues = false;
	CHECK(!arbiter_has_user_queues(a) && ask(a, RT, &result));
}

TEST(waiting_realtime_lease_is_granted_when_the_last_user_queue_has_gone)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_IGNORE);
	struct observed_user_queues row = { DEVICE, 1 };
	_cleanup_(result_done) struct result result = { 0 };
	struct request request = request_of("cus=15; wait-usec=1000000");
	struct lease *lease;
	uint64_t changes;

	a->gpus[0].info.drm_queues = true;
	arbiter_count_user_queues(a, &row, 1);
	lease = reserve(a, RT, &request, &result);
	CHECK(lease && lease->state == STATE_WAITING);
	changes = a->changes;
	row.compute = 0;
	arbiter_count_user_queues(a, &row, 1);
	CHECK(a->freed[0] > changes);
}

TEST(the_caller_itself_may_draw)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_REFUSE_REALTIME);
	struct caller caller = caller_of(RT);
	struct request request = request_for(15);
	struct observed_client row = client(10, 1, 5);
	struct result result = { 0 };
	struct lease *proposal;

	observe(a, &row, 1); /* another user */
	caller.pid = 10;
	CHECK(arbiter_plan(a, &caller, &request, &proposal, &result) < 0);
	result_done(&result);
	row.process.uid = RT;
	observe(a, &row, 1);
	caller.pid = 11;
	CHECK(arbiter_plan(a, &caller, &request, &proposal, &result) < 0);
	result_done(&result);
	caller.pid = 10;
	CHECK(arbiter_plan(a, &caller, &request, &proposal, &result) == 0);
	lease_free(proposal);
	result_done(&result);
}

TEST(a_strict_policy_activates_no_lease_where_a_process_draws)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_REFUSE_REALTIME);
	const struct caller caller = caller_of(RT);
	struct observed_client row = client(10, 1, 5);
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *lease;

	observe(a, NULL, 0);
	lease = ask(a, RT, &result);
	CHECK(lease && set_active(a, &caller, lease->id, false, &result) == 0);
	observe(a, &row, 1);
	CHECK(set_active(a, &caller, lease->id, true, &result) < 0);
	CHECK(result.kind == RESULT_NO_CAPACITY && result.n_refusals == 1);
	CHECK(result.refusals[0].reason == REASON_GRAPHICS);
	CHECK(result.refusals[0].processes[0].pid == 10 && lease->state == STATE_INACTIVE);
	CHECK(arbiter_bind(a, lease->id, 10, false) == 0); /* its own process draws */
	row.process.uid = RT;
	observe(a, &row, 1);
	CHECK(set_active(a, &caller, lease->id, true, &result) == 0);
	row = client(11, 1, 5);
	observe(a, &row, 1);
	arbiter_lend(a, 1);
	CHECK(lease->state == STATE_ACTIVATING && strstr(lease->reason, "pid 11"));
	observe(a, NULL, 0);
	arbiter_lend(a, 2);
	CHECK(lease->state == STATE_GRANTED);
}

TEST(process_that_draws_beside_many_of_the_lease_is_seen)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_REFUSE_REALTIME);
	const struct caller caller = caller_of(RT);
	_cleanup_(result_done) struct result result = { 0 };
	struct observed_client rows[400];
	struct lease *lease;

	observe(a, NULL, 0);
	lease = ask(a, RT, &result);
	CHECK(lease && set_active(a, &caller, lease->id, false, &result) == 0);
	for (pid_t pid = 1; pid < (pid_t)ARRAY_SIZE(rows); pid++) {
		rows[pid] = client(pid, 1, 1000);
		rows[pid].process.uid = rows[pid].process.ancestor_uids[0] = RT;
		rows[pid].process.ancestors[0] = 5000;
		rows[pid].process.n_ancestors = 1;
	}
	CHECK(arbiter_bind(a, lease->id, 5000, false) == 0);
	rows[0] = client(10000, 1, 0);
	observe(a, rows, ARRAY_SIZE(rows));
	CHECK(set_active(a, &caller, lease->id, true, &result) < 0);
	CHECK(result.refusals[0].n_processes == 1 && result.refusals[0].processes[0].pid == 10000);
}

TEST(leases_are_published_again_when_a_process_begins_or_stops_to_draw)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct observed_client row = client(10, 1, 5);
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *lease = ask(a, ANY, &result);
	unsigned touched;

	while (ledger_take_touched(a, &touched))
		continue;
	observe(a, NULL, 0);
	CHECK(ledger_take_touched(a, &touched) == lease && (touched & TOUCH_CHANGED));
	observe(a, NULL, 0);
	CHECK(!ledger_take_touched(a, &touched));
	a->gpus[0].changed = false;
	observe(a, &row, 1);
	CHECK(ledger_take_touched(a, &touched) == lease && a->gpus[0].changed);
	a->gpus[0].changed = false;
	row.busy.gfx++;
	observe(a, &row, 1);
	CHECK(!ledger_take_touched(a, &touched) && !a->gpus[0].changed);
}

/* ---- VRAM ---------------------------------------------------------------------------------- */

TEST(vram_of_a_lease_is_the_larger_of_what_kfd_and_drm_count)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct request request = request_of("cus=15 queues=2 vram=140");
	struct observed rows[] = {
		{ .pid = 20,
		  .start_time = 1,
		  .uid = ANY,
		  .kfd_gpu_id = GPU_ID,
		  .queues = 1,
		  .vram = 100 },
		{ .pid = 21,
		  .start_time = 1,
		  .uid = ANY,
		  .kfd_gpu_id = GPU_ID,
		  .drm_vram = 50,
		  .drm_only = true },
	};
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *lease;

	lease = reserve(a, ANY, &request, &result);
	CHECK(lease && arbiter_bind(a, lease->id, 20, false) == 0 &&
	      arbiter_bind(a, lease->id, 21, false) == 0);
	CHECK(arbiter_observe(a, rows, 1) == 0);
	arbiter_judge_drift(a, 1);
	CHECK(!lease->partitions[0].drift[DRIFT_VRAM].since_usec);
	CHECK(lease->partitions[0].used.vram == 100);
	rows[0].drm_vram = 90;
	CHECK(arbiter_observe(a, rows, 1) == 0 && lease->partitions[0].used.vram == 100);
	rows[0].drm_vram = 120;
	CHECK(arbiter_observe(a, rows, 1) == 0 && lease->partitions[0].used.vram == 120);
	CHECK(arbiter_observe(a, rows, 2) == 0 && lease->partitions[0].used.vram == 170);
	arbiter_judge_drift(a, 1);
	CHECK(lease->partitions[0].drift[DRIFT_VRAM].observed == 170);
	CHECK(lease->observed.processes == 1);
}

TEST(vram_of_a_process_without_a_lease_is_not_free_for_leases)
{
	const uint64_t gib = UINT64_C(1) << 30;
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct observed_client row = client(10, 1, gib + 1);
	struct request request = request_for(15);
	_cleanup_(result_done) struct result result = { 0 };
	uint64_t all = gpu_free(&a->gpus[0]).vram, changes;
	struct lease *lease;

	observe(a, &row, 1);
	CHECK(gpu_free(&a->gpus[0]).vram == all - gib - (16 << 20));
	request.wants[0].vram = all - gib;
	CHECK(!reserve(a, ANY, &request, &result));
	CHECK(result.refusals[0].resource == RESOURCE_VRAM);
	CHECK(result.refusals[0].reason == REASON_UNMANAGED && result.refusals[0].n_processes == 1);
	CHECK(result.refusals[0].processes[0].pid == 10 &&
	      result.refusals[0].processes[0].uid == 7);
	CHECK(strcmp(result.refusals[0].processes[0].command, "Xorg") == 0);
	CHECK(strstr(result.sentence, "pid 10 (Xorg, uid 7) uses VRAM"));
	a->settings->unmanaged = UNMANAGED_IGNORE;
	observe(a, &row, 1);
	CHECK(gpu_free(&a->gpus[0]).vram == all);
	a->settings->unmanaged = UNMANAGED_COUNT;
	observe(a, &row, 1);
	changes = a->changes;
	observe(a, NULL, 0);
	CHECK(gpu_free(&a->gpus[0]).vram == all && a->freed[0] > changes);
	lease = ask(a, ANY, &result);
	CHECK(lease && arbiter_bind(a, lease->id, 10, false) == 0);
	row.process.uid = ANY;
	observe(a, &row, 1); /* it has a lease now, which counts its VRAM */
	CHECK(gpu_free(&a->gpus[0]).vram == all);
}

TEST(where_memory_of_the_machine_is_counted_gtt_is_used_instead_of_vram)
{
	const uint64_t gib = UINT64_C(1) << 30;
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct observed_client row = client(10, 1, gib); /* of what the firmware set aside */
	uint64_t all = gpu_free(&a->gpus[0]).vram;
	struct refusal refusal = { 0 };

	a->gpus[0].info.system_memory = true;
	observe(a, &row, 1);
	CHECK(gpu_free(&a->gpus[0]).vram == all);
	gpu_name_vram_users(&a->gpus[0], &refusal);
	CHECK(refusal.n_processes == 0);
	row.gtt = 2 * gib;
	observe(a, &row, 1);
	CHECK(gpu_free(&a->gpus[0]).vram == all - 2 * gib);
	gpu_name_vram_users(&a->gpus[0], &refusal);
	CHECK(refusal.n_processes == 1);
}

TEST(a_process_that_kfd_does_not_know_is_not_unmanaged)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_WARN);
	struct observed row = {
		.pid = 20, .start_time = 1, .kfd_gpu_id = GPU_ID, .drm_vram = 50, .drm_only = true
	};

	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(a->gpus[0].observed.n_processes == 0 && a->gpus[0].observed.unmanaged.vram == 0);
}

/* The first is a process of the realtime user. */
static void let_both_draw(struct arbiter *a, struct observed_client rows[static 2])
{
	rows[0].process.uid = RT;
	observe(a, rows, 2);
	rows[0].busy.gfx = rows[1].busy.gfx = 1000000;
	observe(a, rows, 2);
}

TEST(waiting_lease_of_the_process_that_draws_is_granted_behind_an_equal_one)
{
	_cleanup_(arbiter_freep) struct arbiter *a = arbiter_with(DEVICE, GRAPHICS_REFUSE_REALTIME);
	struct observed_client rows[] = { client(10, 0, 1), client(50, 0, 1) };
	struct caller caller = caller_of(RT);
	struct request request = request_for(15);
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *waiting, *next;

	let_both_draw(a, rows);
	request.wait_usec = SECOND_USEC;
	for (caller.pid = 9; caller.pid <= 10; caller.pid++) {
		CHECK(arbiter_plan(a, &caller, &request, &next, &result) == 0);
		waiting = arbiter_commit(a, next);
		CHECK(waiting->state == STATE_WAITING);
	}
	CHECK(arbiter_plan_next(a, &next) == 0);
	rows[0].busy.gfx = 2000000;
	observe(a, rows, 1);
	CHECK(a->gpus[0].graphics.state == GRAPHICS_DRAWN);
	CHECK(arbiter_plan_next(a, &next) == 1 && next->id == waiting->id);
	lease_free(next);
}
