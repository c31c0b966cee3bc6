/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"
#include "ledger-rig.h"
#include "seed.h"

#define GPU_ID 4711

static struct arbiter *one_gpu(void)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");

	info.kfd_gpu_id = GPU_ID;
	return arbiter_of(&info, 1);
}

static struct observed process(pid_t pid, unsigned queues)
{
	return (struct observed){ .pid = pid,
				  .start_time = 100 + (uint64_t)pid,
				  .uid = 7,
				  .command = "python3",
				  .kfd_gpu_id = GPU_ID,
				  .queues = queues };
}

static bool names_process(const struct refusal *refusal, pid_t pid)
{
	for (size_t i = 0; i < refusal->n_processes && i < REFUSAL_PROCESSES; i++)
		if (refusal->processes[i].pid == pid)
			return strcmp(refusal->processes[i].command, "python3") == 0;
	return false;
}

static struct lease *held(struct arbiter *arbiter, uid_t uid, unsigned queues)
{
	struct request request = request_for(10);
	struct result result = { 0 };
	struct lease *lease;

	request.wants[0].queues = queues;
	lease = reserve(arbiter, uid, &request, &result);
	result_done(&result);
	return lease;
}

FIXTURE(struct arbiter, a, a = one_gpu(), arbiter_freep(&a));

TEST_WITH(unmanaged_processes_are_counted_and_listed_without_any_lease, struct arbiter *a)
{
	struct observed rows[] = { process(10, 5), process(11, 9) };

	CHECK(arbiter_observe(a, rows, 2) == 0);
	CHECK(a->gpus[0].observed.n_processes == 2 && a->gpus[0].observed.processes[0].pid == 11);
	CHECK(gpu_free(&a->gpus[0]).queues == 10 && gpu_free(&a->gpus[0]).processes == 6);
	CHECK(!a->gpus[0].observed.oversubscribed && a->gpus[0].changed);
	a->gpus[0].changed = false;
	CHECK(arbiter_observe(a, rows, 2) == 0 && !a->gpus[0].changed);
	CHECK(arbiter_observe(a, NULL, 0) == 0 && a->gpus[0].changed);
	CHECK(gpu_free(&a->gpus[0]).queues == 24);
}

TEST_WITH(unmanaged_processes_beyond_the_list_are_counted, struct arbiter *a)
{
	struct observed rows[GPU_UNMANAGED_MAX + 36];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = process((pid_t)i + 10, 1 + i % 3);
	CHECK(arbiter_observe(a, rows, ARRAY_SIZE(rows)) == 0);
	CHECK(a->gpus[0].observed.n_processes == GPU_UNMANAGED_MAX &&
	      a->gpus[0].observed.processes[0].queues == 3);
	CHECK(a->gpus[0].observed.unmanaged.processes == ARRAY_SIZE(rows));
}

TEST_WITH(slots_of_unmanaged_processes_are_not_granted, struct arbiter *a)
{
	struct observed row = process(10, 20);
	struct request request = request_for(10);
	_cleanup_(result_done) struct result result = { 0 };

	CHECK(arbiter_observe(a, &row, 1) == 0);
	request.wants[0].queues = 5;
	CHECK(!reserve(a, 1, &request, &result) && result.kind == RESULT_NO_CAPACITY);
	CHECK(result.refusals[0].reason == REASON_UNMANAGED);
	CHECK(result.refusals[0].free == 4 && names_process(&result.refusals[0], 10));
	a->settings->unmanaged = UNMANAGED_IGNORE;
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(reserve(a, 1, &request, &result) && a->gpus[0].observed.n_processes == 1);
}

TEST_WITH(oversubscribed_gpu_names_the_processes_and_grants_nothing, struct arbiter *a)
{
	struct observed rows[] = { process(10, 20), process(11, 5) };
	struct request request = request_for(1);
	_cleanup_(result_done) struct result result = { 0 };

	request.wants[0].queues = 1;
	CHECK(arbiter_observe(a, rows, 2) == 0 && a->gpus[0].observed.oversubscribed);
	CHECK(!reserve(a, 1, &request, &result) && result.kind == RESULT_NO_CAPACITY);
	CHECK(result.refusals[0].reason == REASON_OVERSUBSCRIBED);
	CHECK(names_process(&result.refusals[0], 10) && names_process(&result.refusals[0], 11));
	CHECK(arbiter_observe(a, rows, 1) == 0 && !a->gpus[0].observed.oversubscribed);
}

TEST_WITH(more_processes_than_vmids_oversubscribe_too, struct arbiter *a)
{
	struct observed rows[9];

	for (int i = 0; i < 9; i++)
		rows[i] = process(10 + i, 1);
	CHECK(arbiter_observe(a, rows, 8) == 0 && !a->gpus[0].observed.oversubscribed);
	CHECK(arbiter_observe(a, rows, 9) == 0 && a->gpus[0].observed.oversubscribed);
	rows[8].queues = 0; /* KFD does not count a process without a queue */
	CHECK(arbiter_observe(a, rows, 9) == 0 && !a->gpus[0].observed.oversubscribed);
}

TEST(best_effort_may_oversubscribe_if_policy_allows_it_and_no_realtime_lease_is_there)
{
	struct arbiter *a = one_gpu();
	struct request request = request_for(4);
	struct result result = { 0 };

	a->settings->oversubscribe_besteffort = true;
	request.wants[0].queues = 20;
	CHECK(reserve(a, 1, &request, &result) && reserve(a, 1, &request, &result));
	request.wants[0].queues = a->gpus[0].info.queue_slots + 1; /* of one lease */
	CHECK(reserve(a, 1, &request, &result));
	add_tenant(a, "vr", 9, CLASS_REALTIME);
	CHECK(!held(a, 9, 2));
	CHECK(arbiter_observe(a, NULL, 0) == 0 && !a->gpus[0].observed.oversubscribed);
	result_done(&result);
	arbiter_free(a);

	a = one_gpu();
	a->settings->oversubscribe_besteffort = true;
	add_tenant(a, "vr", 9, CLASS_REALTIME);
	CHECK(held(a, 9, 20) && !held(a, 1, 5));
	arbiter_free(a);
}

TEST_WITH(lease_has_its_owner_its_bound_processes_and_their_children, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 6);
	struct observed rows[] = { process(lease->pid, 2), process(20, 1), process(21, 1),
				   process(22, 1) };

	CHECK(arbiter_bind(a, lease->id, 20, false) == 0);
	rows[2].ancestors[0] = 5;
	rows[2].ancestors[1] = 20;
	rows[2].n_ancestors = 2;
	rows[3].uid = 8; /* a child of the owner, but of another user */
	rows[3].ancestors[0] = lease->pid;
	rows[3].n_ancestors = 1;
	CHECK(arbiter_observe(a, rows, 4) == 0);
	CHECK(lease->observed.processes == 3 && lease->partitions[0].used.queues == 4);
	CHECK(a->gpus[0].observed.n_processes == 1 && a->gpus[0].observed.processes[0].pid == 22);
}

TEST_WITH(process_belongs_to_the_only_lease_of_its_unit, struct arbiter *a)
{
	struct lease *first = held(a, 7, 2);
	struct observed row = process(30, 1);

	strcpy(first->unit, "train.service");
	strcpy(row.unit, "train.service");
	CHECK(arbiter_observe(a, &row, 1) == 0 && first->observed.processes == 1);
	row.pid = 31; /* not the process that was attributed before */
	strcpy(held(a, 7, 2)->unit, "train.service");
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(a->gpus[0].observed.n_processes == 1 && first->observed.processes == 0);
}

TEST_WITH(process_keeps_its_lease_when_its_parent_dies, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	struct observed row = process(40, 1);

	CHECK(arbiter_bind(a, lease->id, 39, false) == 0);
	row.ancestors[0] = 39;
	row.n_ancestors = 1;
	CHECK(arbiter_observe(a, &row, 1) == 0 && lease->observed.processes == 1);
	row.n_ancestors = 0; /* its parent died */
	CHECK(arbiter_observe(a, &row, 1) == 0 && lease->observed.processes == 1);
	row.start_time++; /* a new process with the same pid */
	CHECK(arbiter_observe(a, &row, 1) == 0 && lease->observed.processes == 0);
}

TEST_WITH(ending_lease_is_removed_when_its_queues_are_gone, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	uint64_t id = lease->id;
	struct observed row = process(50, 2);

	CHECK(arbiter_bind(a, id, 50, false) == 0 && arbiter_observe(a, &row, 1) == 0);
	arbiter_bound_gone(a, id, 50);
	arbiter_holder_gone(a, id);
	row.start_time = 0; /* dead, and the kernel still tears down its queues */
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(ledger_find(a, id) && lease->state == STATE_ENDING);
	CHECK(gpu_free(&a->gpus[0]).queues == 22);
	CHECK(arbiter_observe(a, NULL, 0) == 0 && !ledger_find(a, id));
	CHECK(gpu_free(&a->gpus[0]).queues == 24);
}

TEST_WITH(memory_that_the_driver_keeps_of_a_dead_process_outlives_its_lease, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	uint64_t id = lease->id, vram = gpu_free(&a->gpus[0]).vram;
	struct observed row = process(50, 2);

	a->settings->unmanaged = UNMANAGED_IGNORE;
	CHECK(arbiter_bind(a, id, 50, false) == 0 && arbiter_observe(a, &row, 1) == 0);
	row = (struct observed){
		.pid = 50, .uid = (uid_t)-1, .kfd_gpu_id = GPU_ID, .vram = UINT64_C(5) << 30
	};
	row.leaked = true;
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(lease->partitions[0].used.vram == row.vram && !a->gpus[0].observed.unmanaged.vram);
	arbiter_bound_gone(a, id, 50);
	arbiter_holder_gone(a, id);
	row.leaked = false;
	CHECK(arbiter_observe(a, &row, 1) == 0 && ledger_find(a, id));
	row.leaked = true;
	CHECK(arbiter_observe(a, &row, 1) == 0 && !ledger_find(a, id));
	for (int i = 0; i < 2; i++) {
		CHECK(gpu_free(&a->gpus[0]).queues == 24 && gpu_cus_free(&a->gpus[0]) == 60);
		CHECK(gpu_free(&a->gpus[0]).vram == vram - row.vram);
		CHECK(strcmp(a->gpus[0].observed.processes[0].command, "dead, 5120 MiB") == 0);
		CHECK(arbiter_observe(a, &row, 1) == 0);
	}
	CHECK(arbiter_observe(a, NULL, 0) == 0 && gpu_free(&a->gpus[0]).vram == vram);
}

TEST_WITH(newly_attributed_process_is_saved_with_its_lease, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	struct observed row = process(lease->pid, 1);
	struct lease_process known[2];
	unsigned touched;

	while (ledger_take_touched(a, &touched))
		;
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(ledger_take_touched(a, &touched) == lease && touched == TOUCH_SAVE);
	CHECK(known_processes(a, lease->id, false, known, 2) == 1 && known[0].pid == row.pid);
	CHECK(arbiter_observe(a, &row, 1) == 0 && !ledger_take_touched(a, &touched));
}

TEST(process_is_unmanaged_on_a_gpu_that_its_lease_does_not_have)
{
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:04:00.0") };
	struct arbiter *a;
	struct lease *lease;
	struct observed row;

	gpus[0].kfd_gpu_id = GPU_ID;
	gpus[1].kfd_gpu_id = GPU_ID + 1;
	a = arbiter_of(gpus, 2);
	lease = held(a, 7, 2);
	row = process(lease->pid, 4);
	row.kfd_gpu_id = GPU_ID + (lease->partitions[0].gpu == 0);
	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(a->gpus[1 - lease->partitions[0].gpu].observed.n_processes == 1);
	row.kfd_gpu_id = 5; /* an unknown GPU is ignored */
	CHECK(arbiter_observe(a, &row, 1) == 0 && a->gpus[1].observed.n_processes == 0);
	arbiter_free(a);
}

TEST_WITH(the_second_lease_of_a_process_ends_only_when_its_queues_are_gone, struct arbiter *a)
{
	struct lease *first = held(a, 7, 2), *second = held(a, 7, 3);
	uint64_t id = second->id;
	struct observed row = process(first->pid, 5);

	arbiter_holder_gone(a, id);
	CHECK(arbiter_observe(a, &row, 1) == 0 && ledger_find(a, id));
	row.queues = 2;
	CHECK(arbiter_observe(a, &row, 1) == 0 && !ledger_find(a, id));
}

/* ---- memory -------------------------------------------------------------------------------- */

#define GIB (UINT64_C(1) << 30)

/* A process of the lease that uses so much memory. */
static int uses_vram(struct arbiter *arbiter, const struct lease *lease, uint64_t bytes)
{
	struct observed row = process(lease->pid, 1);

	row.uid = lease->owner;
	row.vram = bytes;
	return arbiter_observe(arbiter, &row, bytes > 0);
}

static int ask(struct arbiter *arbiter, uid_t uid, uint64_t vram, struct result *result)
{
	struct request request = request_for(10);
	struct lease *lease;

	request.wants[0].vram = vram;
	*result = (struct result){ 0 };
	lease = reserve(arbiter, uid, &request, result);
	return lease ? 0 : (int)result->kind;
}

TEST_WITH(memory_that_was_not_promised_is_not_free_while_it_is_used, struct arbiter *a)
{
	struct gpu *gpu = &a->gpus[0];
	struct lease *lease = held(a, 7, 2);
	struct result result;

	CHECK(lease && gpu->info.vram_bytes == 16 * GIB);
	CHECK(uses_vram(a, lease, 12 * GIB + 1) == 0);
	CHECK(gpu_free(gpu).vram == 4 * GIB - (16 << 20));
	CHECK(ask(a, 8, 4 * GIB, &result) == RESULT_NO_CAPACITY &&
	      result.refusals[0].reason == REASON_VRAM);
	result_done(&result);
	CHECK(ask(a, 8, 3 * GIB, &result) == 0 && !gpu->vram_pressure);
	result_done(&result);

	/* Its own use can be promised to it, and no more than is left beside the other lease. */
	CHECK(gpu_free_beside(gpu, &lease->partitions[0]).vram >= 13 * GIB - (16 << 20));
	CHECK(gpu_free_beside(gpu, &lease->partitions[0]).vram < 14 * GIB);

	/* What the other was promised is not there any more. */
	gpu->changed = false;
	CHECK(uses_vram(a, lease, 14 * GIB) == 0 && gpu->vram_pressure && gpu->changed);
	CHECK(gpu_free(gpu).vram == 0 && !gpu->observed.oversubscribed);
	CHECK(uses_vram(a, lease, 0) == 0 && !gpu->vram_pressure);
	CHECK(gpu_free(gpu).vram == 13 * GIB);
}

TEST_WITH(pressure_begins_near_the_end_of_the_memory_and_ends_well_before, struct arbiter *a)
{
	static const struct {
		uint64_t gib;
		bool pressure;
	} table[] = { { 14, false }, { 15, false }, { 16, true }, { 15, true },
		      { 14, false }, { 15, false }, { 100, true } };
	struct lease *lease = held(a, 7, 2);

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		CHECK(uses_vram(a, lease, table[i].gib * GIB) == 0 &&
		      a->gpus[0].vram_pressure == table[i].pressure);
	a->gpus[0].info.vram_bytes = 0; /* unknown */
	CHECK(uses_vram(a, lease, GIB) == 0 && !a->gpus[0].vram_pressure);
}

TEST_WITH(max_vram_bounds_what_is_used_and_ends_no_lease, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	struct result result;

	a->settings->tenants[a->settings->n_tenants - 1].max_vram = (struct limit){ LIMIT_COUNT,
										    4 * GIB };
	CHECK(uses_vram(a, lease, 5 * GIB) == 0);
	CHECK(ask(a, 7, 0, &result) == RESULT_QUOTA_EXCEEDED &&
	      strcmp(result.refusals[0].key, "max-vram") == 0);
	result_done(&result);
	CHECK(ask(a, 8, 0, &result) == 0);
	result_done(&result);
	arbiter_review(a);
	CHECK(ledger_find(a, lease->id) && lease->state == STATE_GRANTED);
	CHECK(uses_vram(a, lease, 2 * GIB) == 0 && ask(a, 7, 2 * GIB, &result) == 0);
	result_done(&result);
}

TEST_WITH(default_vram_is_promised_to_a_request_without_any, struct arbiter *a)
{
	_cleanup_(result_done) struct result result;

	a->settings->tenants[a->settings->n_tenants - 1].default_vram = 6 * GIB;
	CHECK(ask(a, 7, 0, &result) == 0 && ask(a, 7, 2 * GIB, &result) == 0);
	CHECK(gpu_free(&a->gpus[0]).vram == 8 * GIB);
	CHECK(ask(a, 7, 0, &result) == 0 && ask(a, 7, 0, &result) == RESULT_NO_CAPACITY);
}

/* Programs that take and free memory, leases that come and go: after each scan, what is free is what neither was
 * promised nor is used. */
TEST_WITH(free_memory_is_one_scan_behind_at_the_most, struct arbiter *a)
{
	enum { LEASES = 5, STEPS = 2000 };
	struct gpu *gpu = &a->gpus[0];
	unsigned seed = SEED_OF_RUN("MODEL_SEED");
	uint64_t promised[LEASES], all = gpu->info.vram_bytes;
	struct lease *leases[LEASES] = { 0 };

	for (unsigned step = 0; step < STEPS; step++) {
		struct observed rows[LEASES + 1];
		uint64_t taken = 0, excess = 0;
		unsigned at = (unsigned)rand_r(&seed) % LEASES, n = 0;

		if (leases[at] && rand_r(&seed) % 2)
			ledger_remove(a, leases[at]), leases[at] = NULL;
		else if (!leases[at]) {
			struct request request = request_for(1);
			_cleanup_(result_done) struct result result = { 0 };

			promised[at] = rand_r(&seed) % 2 ? (uint64_t)(rand_r(&seed) % 6) << 30 : 0;
			request.wants[0].vram = promised[at];
			leases[at] = reserve(a, 100 + at, &request, &result);
			if (leases[at])
				leases[at]->pid = 1000 + (pid_t)at;
		}
		rows[n] = process(999, 1);
		taken += gpu_round_vram(rows[n++].vram = (uint64_t)rand_r(&seed) % (3 * GIB));
		for (unsigned i = 0; i < LEASES; i++) {
			uint64_t used = (uint64_t)rand_r(&seed) * 4;

			if (!leases[i])
				continue;
			rows[n] = process(leases[i]->pid, 1);
			rows[n].uid = leases[i]->owner;
			rows[n++].vram = used;
			taken += promised[i];
			excess += beyond(used, promised[i]);
		}
		CHECK(arbiter_observe(a, rows, n) == 0);
		CHECK(gpu_free(gpu).vram == beyond(all, taken + gpu_round_vram(excess)));
	}
}

static struct lease *resized(struct arbiter *arbiter, const struct lease *lease, unsigned cus)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct caller caller = caller_of(lease->owner);
	struct request request = request_for(cus);
	struct lease *next;

	if (arbiter_plan_resize(arbiter, &caller, lease->id, &request, &next, &result) < 0)
		return NULL;
	return arbiter_commit(arbiter, next);
}

TEST_WITH(a_lease_can_give_up_cus_while_its_user_has_more_memory_than_max_vram, struct arbiter *a)
{
	struct lease *lease = held(a, 7, 2);
	struct request request = request_for(20);
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *other = reserve(a, 7, &request, &result);

	CHECK(lease && other);
	a->settings->tenants[a->settings->n_tenants - 1].max_vram = (struct limit){ LIMIT_COUNT,
										    4 * GIB };
	CHECK(uses_vram(a, lease, 5 * GIB) == 0);
	CHECK(!resized(a, other, 25));
	CHECK(resized(a, other, 10) && other->partitions[0].count == 10);
}

TEST_WITH(a_resize_is_not_promised_default_vram_that_the_lease_never_had, struct arbiter *a)
{
	struct tenant *tenant = &a->settings->tenants[a->settings->n_tenants - 1];
	struct lease *lease = held(a, 7, 2);
	_cleanup_(result_done) struct result result;

	tenant->default_vram = 12 * GIB; /* a policy that came later */
	CHECK(ask(a, 8, 0, &result) == 0);
	CHECK(resized(a, lease, 5) && lease->partitions[0].granted.vram == 0);
	CHECK(resized(a, a->leases[1], 5) && a->leases[1]->partitions[0].granted.vram == 12 * GIB);
}
