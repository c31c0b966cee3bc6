/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the programs of gpuarb-budget decide, without a kernel: no unit fills a map that others need. That they load and
 * count is seen in tests/system/kernel.
 */

#pragma GCC diagnostic ignored "-Wattributes"       /* of the kernel's structures */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of its functions */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include "helpers/budget/queues.bpf.c"

#include "check.h"

#define GREEDY 70 /* cgroups */
#define OTHER 71

static void add_unit(__u64 cgroup, int limit)
{
	const struct queue_budget budget = { .lease = cgroup, .limit = limit };
	const struct queue_use use = { 0 };

	CHECK(bpf_map_update_elem(&budgets, &cgroup, &budget, BPF_ANY) == 0);
	CHECK(bpf_map_update_elem(&uses, &cgroup, &use, BPF_ANY) == 0);
}

static const struct queue_use *use_of(__u64 cgroup)
{
	return bpf_map_lookup_elem(&uses, &cgroup);
}

/* Two units, of which the one may have 4 queues and the other 2. */
static void arrive(void)
{
	for (struct fake_map *map = fake_maps; map->id; map++) {
		free(map->entries);
		*map = (struct fake_map){ 0 };
	}
	add_unit(GREEDY, 4);
	add_unit(OTHER, 2);
}

/* Who makes the next calls: an address space with any number of threads. */
static void become(__u64 cgroup, __u64 mm, __u64 thread)
{
	fake_now.cgroup = cgroup;
	fake_now.mm = (struct mm_struct *)(uintptr_t)(mm << 12);
	fake_now.thread = thread;
}

static int begin(unsigned nr)
{
	struct inode inode = { .i_rdev = kfd_device };
	struct file file = { .f_inode = &inode };

	return before_ioctl(&file, nr, 0, 0);
}

/* A call that the driver answers so. */
static int call_driver(unsigned nr, int answer)
{
	int r = begin(nr);

	after_ioctl(NULL, r < 0 ? r : answer);
	return r < 0 ? r : answer;
}

static void other_works(void)
{
	become(OTHER, 1, 1);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == -ENOMEM);
	CHECK(call_driver(NR_DESTROY_QUEUE, 0) == 0 && use_of(OTHER)->queues == 1);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0 && use_of(OTHER)->queues == 2);
	CHECK(after_exit_mmap(fake_now.mm) == 0 && use_of(OTHER)->queues == 0);
	CHECK(use_of(OTHER)->in_flight == 0);
}

TEST(address_spaces_without_a_queue_take_no_room_of_other_units)
{
	arrive();
	for (__u64 i = 0; i < 2 * SPACES_MAX; i++) { /* they live on */
		become(GREEDY, 100 + i, 100 + i);
		CHECK(call_driver(NR_CREATE_QUEUE, -EBADF) == -EBADF);
	}
	CHECK(use_of(GREEDY)->queues == 0 && use_of(GREEDY)->refused == 0);
	other_works();
}

TEST(calls_that_destroy_no_queue_take_no_room_of_other_units)
{
	arrive();
	become(GREEDY, 100, 100);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0);
	for (__u64 i = 0; i < 2 * CALLS_MAX; i++) {
		become(GREEDY, 100, 100 + i);
		CHECK(begin(NR_DESTROY_QUEUE) == 0);
	}
	CHECK(use_of(GREEDY)->in_flight == 1);
	other_works();
	for (__u64 i = 0; i < 2 * CALLS_MAX; i++) {
		become(GREEDY, 100, 100 + i);
		after_ioctl(NULL, i == 0 ? 0 : -EINVAL);
	}
	CHECK(use_of(GREEDY)->queues == 0 && use_of(GREEDY)->in_flight == 0);
}

/* Each thread destroys a queue of its own. */
TEST(queues_that_are_destroyed_at_the_same_time_are_given_back)
{
	arrive();
	become(GREEDY, 100, 100);
	for (unsigned i = 0; i < 4; i++)
		CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0);
	CHECK(begin(NR_CREATE_QUEUE) == -ENOMEM);
	for (__u64 i = 0; i < 4; i++) {
		become(GREEDY, 100, 100 + i);
		CHECK(begin(NR_DESTROY_QUEUE) == 0);
	}
	for (__u64 i = 0; i < 4; i++) {
		become(GREEDY, 100, 100 + i);
		after_ioctl(NULL, 0);
	}
	CHECK(use_of(GREEDY)->queues == 0 && use_of(GREEDY)->in_flight == 0);
	CHECK(call_driver(NR_DESTROY_QUEUE, 0) == 0 && use_of(GREEDY)->queues == 0);
}

/* The unit has another lease, for which the queues of the first are older than the budget. */
TEST(queue_is_counted_for_the_budget_that_its_call_was_charged_to)
{
	struct queue_space *space;
	__u64 key;

	arrive();
	become(GREEDY, 100, 100);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0);
	become(OTHER, 100, 100); /* it has moved: its address space stays with the first */
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0 && use_of(GREEDY)->queues == 2);
	key = GREEDY;
	CHECK(bpf_map_delete_elem(&budgets, &key) == 0);
	CHECK(call_driver(NR_CREATE_QUEUE, 0) == 0 && use_of(OTHER)->queues == 1);
	key = (__u64)(uintptr_t)fake_now.mm;
	space = bpf_map_lookup_elem(&spaces, &key);
	CHECK(space && space->cgroup == OTHER && space->queues == 1);
}
