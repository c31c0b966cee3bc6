/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The rule by which processes belong to leases, with processes of several users. */

#include "core/observe/attribution.h"

#include "check.h"
#include "ledger-rig.h"

#define GPU_ID 4711
#define OWNER 7
#define OTHER 8
#define CONTAINER 55 /* a user in a container that root started */

static struct arbiter *one_gpu(void)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");

	info.kfd_gpu_id = GPU_ID;
	return arbiter_of(&info, 1);
}

static struct lease *held(struct arbiter *arbiter, uid_t uid)
{
	struct request request = request_for(10);
	struct result result = { 0 };
	struct lease *lease;

	request.wants[0].queues = 2;
	lease = reserve(arbiter, uid, &request, &result);
	CHECK(lease);
	result_done(&result);
	return lease;
}

static struct observed process(pid_t pid, uid_t uid)
{
	return (struct observed){ .pid = pid,
				  .start_time = 100 + (uint64_t)pid,
				  .uid = uid,
				  .kfd_gpu_id = GPU_ID,
				  .queues = 1 };
}

static struct observed child(pid_t pid, uid_t uid, pid_t parent, uid_t parent_uid)
{
	struct observed row = process(pid, uid);

	row.ancestors[0] = parent;
	row.ancestor_uids[0] = parent_uid;
	row.n_ancestors = 1;
	return row;
}

/* Scans one row; whether it counts for the lease. Otherwise it has to be listed as unmanaged. */
static bool counts(struct arbiter *arbiter, const struct lease *lease, const struct observed *row)
{
	const struct gpu_observed *observed = &arbiter->gpus[0].observed;

	CHECK(arbiter_observe(arbiter, row, 1) == 0);
	CHECK(lease->observed.processes + observed->n_processes == 1);
	CHECK(lease->partitions[0].used.queues + observed->unmanaged.queues == row->queues);
	return lease->observed.processes == 1;
}

static size_t n_killable(const struct arbiter *arbiter, const struct lease *lease)
{
	struct lease_process processes[4];

	return known_processes(arbiter, lease->id, true, processes, 4);
}

FIXTURE(struct arbiter, a, a = one_gpu(), arbiter_freep(&a));

TEST_WITH(processes_of_three_users_in_one_unit_count_for_their_own_leases, struct arbiter *a)
{
	struct lease *first = held(a, OWNER), *second = held(a, OTHER);
	struct observed rows[3] = { process(30, OWNER), process(31, OTHER), process(32, 9) };

	strcpy(first->unit, "jupyterhub.service");
	strcpy(second->unit, first->unit);
	for (unsigned i = 0; i < 3; i++)
		strcpy(rows[i].unit, first->unit);
	CHECK(arbiter_observe(a, rows, 3) == 0);
	CHECK(first->observed.processes == 1 && second->observed.processes == 1);
	CHECK(a->gpus[0].observed.n_processes == 1 && a->gpus[0].observed.processes[0].pid == 32);
	rows[0].mixed = true; /* a setuid program */
	rows[0].start_time++;
	CHECK(arbiter_observe(a, rows, 1) == 0 && first->observed.processes == 0);
}

TEST_WITH(use_of_another_user_in_the_unit_is_no_drift, struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed rows[2] = { process(30, OWNER), process(31, OTHER) };

	strcpy(lease->unit, "cron.service");
	strcpy(rows[0].unit, lease->unit);
	strcpy(rows[1].unit, lease->unit);
	rows[0].queues = 2;
	rows[1].queues = 9;
	CHECK(arbiter_observe(a, rows, 2) == 0);
	arbiter_judge_drift(a, 1);
	CHECK(!lease->partitions[0].drift[DRIFT_QUEUES].since_usec);
	rows[0].queues = 3;
	CHECK(arbiter_observe(a, rows, 2) == 0);
	arbiter_judge_drift(a, 2);
	CHECK(lease->partitions[0].drift[DRIFT_QUEUES].since_usec == 2);
}

TEST_WITH(child_of_another_user_neither_counts_nor_may_be_killed, struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed row = child(21, OTHER, 20, OWNER);

	CHECK(arbiter_bind(a, lease->id, 20, false) == 0);
	CHECK(!counts(a, lease, &row) && n_killable(a, lease) == 0);
	row.uid = OWNER; /* su to another user, and back */
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 1);
	row.uid = OTHER; /* it was attributed, and then became that of another user */
	CHECK(!counts(a, lease, &row) && n_killable(a, lease) == 0);
	row.uid = OWNER;
	row.mixed = true;
	CHECK(!counts(a, lease, &row));
}

TEST_WITH(bound_process_that_became_that_of_another_user_does_not_count, struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed row = process(20, OTHER);

	CHECK(arbiter_bind(a, lease->id, 20, false) == 0);
	CHECK(!counts(a, lease, &row) && n_killable(a, lease) == 0);
	arbiter_bound_gone(a, lease->id, 20);
	row.start_time = 0; /* it died, and is still torn down */
	CHECK(!counts(a, lease, &row));
}

TEST_WITH(process_that_root_bound_counts_with_its_descendants_of_the_same_user, struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed row = process(20, CONTAINER);

	CHECK(arbiter_bind(a, lease->id, 19, false) == 0 &&
	      arbiter_bind(a, lease->id, 20, true) == 0);
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 1);
	row = child(21, CONTAINER, 20, CONTAINER);
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 1);
	arbiter_bound_gone(a, lease->id, 19); /* the bit moves with the process */
	arbiter_bound_gone(a, lease->id, 20);
	CHECK(lease->delegated == 0);
	row.n_ancestors = 0;
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 1);
	row.uid = OTHER;
	CHECK(!counts(a, lease, &row));
	CHECK(arbiter_bind(a, lease->id, 30, true) == 0);
	row = child(31, OTHER, 30, CONTAINER);
	CHECK(!counts(a, lease, &row));
	row = child(31, 0, 30, 0); /* the uid of its parent may be hidden */
	CHECK(!counts(a, lease, &row));
}

TEST_WITH(saved_process_counts_by_its_user_unless_root_bound_it, struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed row = process(40, OTHER);
	struct lease_process saved = { 40, 140, false, 0 };

	CHECK(known_add(a, lease->id, &saved) == 0);
	CHECK(!counts(a, lease, &row));
	row = process(41, OWNER);
	saved = (struct lease_process){ 41, 141, false, 0 };
	CHECK(known_add(a, lease->id, &saved) == 0);
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 0);
	row = process(42, CONTAINER);
	saved = (struct lease_process){ 42, 142, true, CONTAINER };
	CHECK(known_add(a, lease->id, &saved) == 0);
	CHECK(counts(a, lease, &row));
	row.start_time++; /* another process with its pid */
	CHECK(!counts(a, lease, &row));
}

static bool find_owner(void *, const char *name, uid_t *ret)
{
	*ret = strcmp(name, "owner") == 0 ? OWNER : OTHER;
	return true;
}

TEST_WITH(subordinate_uids_are_those_of_their_owner, struct arbiter *a)
{
	char text[] = "owner:100000:65536\nother:165536:65536\n";
	struct lease *lease = held(a, OWNER);
	struct observed row = child(21, 100005, 20, 100000);

	CHECK(subuids_parse(text, find_owner, NULL, &a->settings->subuids) == 0);
	CHECK(arbiter_bind(a, lease->id, 20, false) == 0);
	CHECK(counts(a, lease, &row) && n_killable(a, lease) == 1);
	row.uid = 165536;
	CHECK(!counts(a, lease, &row));
}

TEST_WITH(dead_process_with_the_pid_of_the_caller_counts_for_an_ending_lease_alone,
	  struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	struct observed row = process(lease->pid, (uid_t)-1);

	row.start_time = 0;
	CHECK(!counts(a, lease, &row));
	arbiter_holder_gone(a, lease->id);
	CHECK(lease->state == STATE_ENDING && counts(a, lease, &row));
}

/* ---- processes that hold the device ------------------------------------------------------------ */

static struct observed idle(pid_t pid, uid_t uid)
{
	struct observed row = process(pid, uid);

	row.queues = 0;
	row.idle = true;
	return row;
}

TEST_WITH(process_that_holds_the_device_is_listed_and_takes_nothing, struct arbiter *a)
{
	struct gpu_observed *observed = &a->gpus[0].observed;
	struct observed rows[2] = { idle(10, OTHER), process(11, OTHER) };

	CHECK(arbiter_observe(a, rows, 2) == 0);
	CHECK(observed->n_processes == 1 && observed->processes[0].pid == 11);
	CHECK(observed->n_idle == 1 && observed->processes[1].pid == 10);
	CHECK(observed->unmanaged.processes == 1 && a->n_known == 1);
	a->gpus[0].changed = false;
	CHECK(arbiter_observe(a, rows + 1, 1) == 0 && observed->n_idle == 0 && a->gpus[0].changed);
}

TEST_WITH(process_of_a_lease_that_holds_the_device_is_not_listed_and_does_not_keep_the_lease,
	  struct arbiter *a)
{
	struct lease *lease = held(a, OWNER);
	uint64_t id = lease->id;
	struct observed row = idle(lease->pid, OWNER);

	CHECK(arbiter_observe(a, &row, 1) == 0);
	CHECK(lease->observed.processes == 0 && a->gpus[0].observed.n_idle == 0);
	arbiter_holder_gone(a, id);
	CHECK(arbiter_observe(a, &row, 1) == 0 && !ledger_find(a, id));
}
