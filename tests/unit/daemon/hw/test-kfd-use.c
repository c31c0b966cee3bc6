/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "check.h"
#include "kfd-rig.h"
#include "store-rig.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define A 0x1000U
#define B 0x1101U

static void start(struct rig *rig)
{
	struct gpu_info infos[2] = { kfd_radeon_vii(), kfd_radeon_vii() };

	strcpy(infos[1].name, "0000:04:00.0");
	kfd_rig_start(rig, infos, 2);
}

static bool row_is(const struct hw_use *row, pid_t pid, uint32_t gpu_id, unsigned queues,
		   unsigned sdma_queues, uint64_t vram)
{
	return row->pid == pid && row->kfd_gpu_id == gpu_id && row->queues == queues &&
	       row->sdma_queues == sdma_queues && row->vram == vram;
}

FIXTURE(struct rig, rig, start(rig), kfd_rig_end(rig));

TEST_WITH(process_that_holds_the_device_has_rows_of_zeros, struct rig *rig)
{
	struct hw_use uses[8];

	CHECK(hw_uses(rig->hw, uses, 8) == 0);
	CHECK(fake_sysfs_process(rig->dir, 4711) == 0); /* it has only opened /dev/kfd */
	CHECK(hw_uses(rig->hw, uses, 8) == 2);
	CHECK(row_is(&uses[0], 4711, A, 0, 0, 0) && row_is(&uses[1], 4711, B, 0, 0, 0));
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC) == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 0);
}

TEST_WITH(queues_are_counted_by_process_and_gpu, struct rig *rig)
{
	static const unsigned types[] = { 0, 1, 4, 0, 2, 3, 0 };
	struct hw_use uses[8];

	CHECK(fake_sysfs_process(rig->dir, 1000) == 0 && fake_sysfs_process(rig->dir, 99) == 0);
	for (unsigned i = 0; i < 7; i++)
		CHECK(fake_sysfs_queue(rig->dir, 1000, i, B, types[i]) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 1000, 7, A, 0) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 99, 0, A, 1) == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 4 && row_is(&uses[1], 99, B, 0, 0, 0));
	CHECK(row_is(&uses[0], 99, A, 0, 1, 0) && row_is(&uses[2], 1000, A, 1, 0, 0));
	CHECK(row_is(&uses[3], 1000, B, 3, 1, 0) && uses[3].sdma_xgmi_queues == 1);

	CHECK(fake_sysfs_queue_gone(rig->dir, 1000, 7) == 0);
	CHECK(fake_sysfs_process_gone(rig->dir, 99) == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 2 && row_is(&uses[1], 1000, B, 3, 1, 0));
}

/* Without rows of zeros. */
static int use_all_of(struct rig *rig, pid_t pid, struct hw_use *uses, size_t max)
{
	struct hw_process *process = NULL;
	unsigned steps = UINT_MAX;
	const struct hw_use *rows;
	int all = hw_read(rig->hw, pid, &process, &steps, &rows), n = 0;

	for (int i = 0; i < all; i++)
		if (!hw_use_is_idle(&rows[i]) && (size_t)n++ < max)
			uses[n - 1] = rows[i];
	hw_forget(process);
	return all < 0 ? all : n;
}

TEST_WITH(one_process_is_read_alone, struct rig *rig)
{
	struct hw_use uses[8];

	CHECK(use_all_of(rig, 1000, uses, 8) == 0); /* it has never opened /dev/kfd */
	CHECK(fake_sysfs_process(rig->dir, 1000) == 0 && fake_sysfs_process(rig->dir, 99) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 99, 0, A, 0) == 0);
	CHECK(use_all_of(rig, 1000, uses, 8) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 1000, 0, B, 0) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 1000, 1, A, 1) == 0);
	CHECK(use_all_of(rig, 1000, uses, 8) == 2);
	CHECK(row_is(&uses[0], 1000, A, 0, 1, 0) && row_is(&uses[1], 1000, B, 1, 0, 0));
	CHECK(use_all_of(rig, 1000, uses, 1) == 2);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC) == 0);
	CHECK(use_all_of(rig, 1000, uses, 8) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC, "file") == 0);
	CHECK(use_all_of(rig, 1000, uses, 8) == -ENOTDIR);
}

TEST_WITH(process_with_memory_only_has_a_row, struct rig *rig)
{
	struct hw_use uses[8];

	CHECK(fake_sysfs_process(rig->dir, 5) == 0);
	CHECK(fake_sysfs_vram(rig->dir, 5, B, UINT64_C(6) << 30) == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 2 && row_is(&uses[0], 5, A, 0, 0, 0));
	CHECK(row_is(&uses[1], 5, B, 0, 0, UINT64_C(6) << 30));
}

TEST_WITH(contexts_are_counted_for_their_process, struct rig *rig)
{
	struct hw_use uses[8];

	CHECK(fake_sysfs_process(rig->dir, 5) == 0 && fake_sysfs_queue(rig->dir, 5, 0, A, 0) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/5/context_0/vram_4096", "512\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/5/context_0/queues/0/gpuid", "%u", A) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/5/context_0/queues/0/type", "0") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/5/context_0/context_2/vram_4096", "8") == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 2 && row_is(&uses[0], 5, A, 2, 0, 512));
}

TEST_WITH(short_array_returns_the_full_number, struct rig *rig)
{
	struct hw_use one;

	for (pid_t pid = 10; pid < 20; pid++) {
		CHECK(fake_sysfs_process(rig->dir, pid) == 0);
		CHECK(fake_sysfs_queue(rig->dir, pid, 0, A, 0) == 0);
	}
	CHECK(hw_uses(rig->hw, &one, 1) == 20 && one.pid == 10);
	CHECK(hw_uses(rig->hw, NULL, 0) == 20);
}

TEST_WITH(vanishing_and_invalid_entries_are_left_out, struct rig *rig)
{
	struct hw_use uses[8];

	CHECK(fake_sysfs_process(rig->dir, 7) == 0);
	for (unsigned i = 0; i < 6; i++)
		CHECK(fake_sysfs_queue(rig->dir, 7, i, A, 0) == 0);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC "/7/queues/0/gpuid") == 0);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC "/7/queues/1/type") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/queues/2/gpuid", "-1") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/queues/3/type", "compute") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/queues/nine/type", "0") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/queues/8", "file") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/vram_", "1\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/vram_4096", "none\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/8", "file") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/9/queues", "file") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/9/context_1", "file") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/self/vram_4096", "1\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/007/vram_4096", "1\n") == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/99999999999/vram_4096", "1\n") == 0);
	CHECK(hw_uses(rig->hw, uses, 8) == 2 && row_is(&uses[0], 7, A, 2, 0, 0));
}

TEST_WITH(process_on_too_many_gpus_is_truncated, struct rig *rig)
{
	for (unsigned i = 0; i < 300; i++) {
		CHECK(fake_sysfs_vram(rig->dir, 7, 5000 + i, 1) == 0);
		CHECK(fake_sysfs_queue(rig->dir, 7, i, 6000 + i, 0) == 0);
	}
	CHECK(hw_uses(rig->hw, NULL, 0) == 256);
}

static void make_many(struct rig *rig, const char *where, unsigned n)
{
	char path[256];

	CHECK(fake_sysfs_mkdir(rig->dir, where) == 0);
	for (unsigned i = 1; i <= n; i++) {
		snprintf(path, sizeof(path), "%s/%s/%u", rig->dir, where, i);
		CHECK(mkdir(path, 0755) == 0);
	}
}

TEST_WITH(however_many_processes_queues_and_files_there_are_they_are_read, struct rig *rig)
{
	const unsigned many = check_size(5000, 5000), files = check_size(16384, 16384);
	struct hw_use uses[2];

	make_many(rig, FAKE_PROC, many);
	make_many(rig, FAKE_PROC "/6000/queues", many);
	CHECK(fake_sysfs_queue(rig->dir, 6000, many, A, 0) == 0);
	for (unsigned i = 0; i <= files; i++) {
		char file[64];

		snprintf(file, sizeof(file), FAKE_PROC "/7/x%u", i);
		CHECK(fake_sysfs_write(rig->dir, file, "", 0) == 0);
	}
	CHECK(fake_sysfs_queue(rig->dir, 7, 1, B, 0) == 0);
	CHECK(hw_uses(rig->hw, uses, 2) == 2);
	CHECK(row_is(&uses[0], 7, B, 1, 0, 0) && row_is(&uses[1], 6000, A, 1, 0, 0));
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC, "file") == 0);
	CHECK(hw_uses(rig->hw, NULL, 0) == -ENOTDIR);
}

static int list_all(struct rig *rig, struct hw_pid **ret)
{
	struct hw_listing *listing = NULL;
	unsigned steps = UINT_MAX;

	return hw_processes(rig->hw, &listing, &steps, ret);
}

TEST_WITH(processes_are_listed_by_pid_with_what_tells_them_apart, struct rig *rig)
{
	struct hw_pid *pids = NULL;

	CHECK(list_all(rig, &pids) == 0);
	CHECK(fake_sysfs_process(rig->dir, 1000) == 0 && fake_sysfs_process(rig->dir, 99) == 0);
	CHECK(fake_sysfs_process(rig->dir, 200) == 0);
	CHECK(list_all(rig, &pids) == 3);
	CHECK(pids[0].pid == 99 && pids[1].pid == 200 && pids[2].pid == 1000);
	CHECK(pids[0].inode != pids[1].inode && pids[1].inode != pids[2].inode);
	free(pids);
	CHECK(fake_sysfs_remove(rig->dir, FAKE_PROC) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC, "file") == 0);
	CHECK(list_all(rig, &pids) == -ENOTDIR);
}

/* Reads on with so few steps until the process is read; returns its rows, how often it was read, and the
 * steps. */
static int read_in_parts(struct rig *rig, pid_t pid, struct hw_process **process, unsigned part,
			 const struct hw_use **ret, unsigned *ret_times, unsigned *ret_steps)
{
	int r = -EAGAIN;

	*ret_times = *ret_steps = 0;
	while (r == -EAGAIN) {
		unsigned steps = part;

		r = hw_read(rig->hw, pid, process, &steps, ret);
		*ret_steps += steps;
		++*ret_times;
	}
	return r;
}

TEST_WITH(process_is_read_in_parts_and_known_queues_are_not_read_again, struct rig *rig)
{
	struct hw_process *process = NULL;
	const struct hw_use *uses;
	unsigned times, steps;

	for (unsigned i = 0; i < 100; i++)
		CHECK(fake_sysfs_queue(rig->dir, 7, i, i < 40 ? A : B, 0) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/context_3/queues/5/gpuid", "%u", B) == 0);
	CHECK(fake_sysfs_print(rig->dir, FAKE_PROC "/7/context_3/queues/5/type", "1") == 0);
	CHECK(read_in_parts(rig, 7, &process, 20, &uses, &times, &steps) == 2);
	CHECK(row_is(&uses[0], 7, A, 40, 0, 0) && row_is(&uses[1], 7, B, 60, 1, 0));
	CHECK(times > 5 && steps >= 202);

	CHECK(fake_sysfs_queue_gone(rig->dir, 7, 99) == 0 &&
	      fake_sysfs_vram(rig->dir, 7, A, 4096) == 0);
	CHECK(fake_sysfs_queue(rig->dir, 7, 200, A, 0) == 0);
	CHECK(read_in_parts(rig, 7, &process, 64, &uses, &times, &steps) == 2 && times == 1);
	CHECK(row_is(&uses[0], 7, A, 41, 0, 4096) && row_is(&uses[1], 7, B, 59, 1, 0));
	CHECK(steps < 64);
	hw_forget(process);
	hw_forget(NULL);
}

TEST_WITH(process_that_changes_or_ends_while_it_is_read_in_parts_leaves_what_is_there,
	  struct rig *rig)
{
	struct hw_process *process = NULL;
	const struct hw_use *uses;
	unsigned steps = 10;

	for (unsigned i = 0; i < 100; i++)
		CHECK(fake_sysfs_queue(rig->dir, 7, i, A, 0) == 0);
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == -EAGAIN);
	for (unsigned i = 0; i < 100; i += 2)
		CHECK(fake_sysfs_queue_gone(rig->dir, 7, i) == 0);
	steps = 10;
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == -EAGAIN);
	steps = 1000;
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == 1);
	CHECK(uses[0].queues >= 50 && uses[0].queues < 100);
	steps = 1000; /* those that had gone are not known */
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == 1 && uses[0].queues == 50);

	CHECK(fake_sysfs_queue(rig->dir, 7, 500, B, 0) == 0);
	steps = 1;
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == -EAGAIN);
	CHECK(fake_sysfs_process_gone(rig->dir, 7) == 0);
	steps = 1000; /* what was listed of it before is that of the moment before */
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) <= 1);
	steps = 1000;
	CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == 0);
	hw_forget(process);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

TEST_WITH(listing_of_queues_takes_the_steps_that_it_may_and_can_be_left, struct rig *rig)
{
	struct hw_process *process = NULL;
	const struct hw_use *uses;
	unsigned times, steps, before;

	before = count_descriptors();
	make_many(rig, FAKE_PROC "/7/queues", 4000);
	CHECK(fake_sysfs_queue(rig->dir, 7, 4001, A, 0) == 0);
	for (unsigned i = 0; i < 3; i++) { /* never so far that a queue is read */
		steps = 8;
		CHECK(hw_read(rig->hw, 7, &process, &steps, &uses) == -EAGAIN);
		CHECK(steps <= 8 && count_descriptors() > before);
	}
	hw_leave(process);
	hw_leave(NULL);
	CHECK(count_descriptors() == before);
	CHECK(read_in_parts(rig, 7, &process, 8, &uses, &times, &steps) == 1 && times > 60);
	CHECK(row_is(&uses[0], 7, A, 1, 0, 0) && count_descriptors() == before);
	hw_forget(process);
}

TEST_WITH(processes_are_listed_in_parts, struct rig *rig)
{
	struct hw_listing *listing = NULL;
	struct hw_pid *pids = NULL;
	unsigned steps = 1, times = 1;
	int r;

	make_many(rig, FAKE_PROC, 1000);
	while ((r = hw_processes(rig->hw, &listing, &steps, &pids)) == -EAGAIN)
		times++, steps = 1;
	CHECK(r == 1000 && times > 10 && !listing && pids[999].pid == 1000);
	free(pids);
	steps = 1;
	CHECK(hw_processes(rig->hw, &listing, &steps, &pids) == -EAGAIN && listing);
	hw_end_listing(listing);
	hw_end_listing(NULL);
}

TEST_WITH(gpus_that_cannot_be_read_for_want_of_descriptors_are_an_error, struct rig *rig)
{
	struct gpu_info whole;
	unsigned n = 0;
	int r, all;

	all = kfd_rig_list(rig);
	whole = rig->gpus[0];
	do {
		struct rlimit before = leave_fds(n++);

		r = kfd_rig_list(rig);
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
		CHECK(r < 0 || (r == all && memcmp(&whole, &rig->gpus[0], sizeof(whole)) == 0));
	} while (r < 0);
	CHECK(n > 3);
}

TEST_WITH(processes_that_cannot_be_read_for_want_of_descriptors_are_an_error, struct rig *rig)
{
	struct hw_use uses[8];
	unsigned n = 0;
	int r;

	CHECK(fake_sysfs_queue(rig->dir, 7, 1, A, 0) == 0);
	CHECK(fake_sysfs_vram(rig->dir, 7, A, 4096) == 0);
	do {
		struct rlimit before = leave_fds(n++);

		r = hw_uses(rig->hw, uses, 8);
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
		CHECK(r == -EMFILE || (r == 1 && row_is(&uses[0], 7, A, 1, 0, 4096)));
	} while (r < 0);
	CHECK(n > 3);
}
