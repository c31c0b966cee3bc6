/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The programs that Linux runs: count the KFD queues of each cgroup with a budget, and refuse a call
 * that would create one more.
 *
 * A queue is charged before the call, and given back where the call fails. It belongs to the address
 * space of its process, as in KFD: it ends with DESTROY_QUEUE, or with the address space on exit or
 * exec. A queue type is in memory that the program can change, so queues of all types count alike.
 */

#include <linux/bpf.h>
#include <linux/errno.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "helpers/budget/queues.h"

/* LGPL-2.1, section 3, permits these terms. LSM programs need them. */
char terms[] SEC("license") = "GPL";

#define NR_OF_IOCTL(cmd) ((cmd)&0xff) /* KFD ignores the type and the size */
#define NR_CREATE_QUEUE 0x02
#define NR_DESTROY_QUEUE 0x03

#define LEVELS_MAX 32 /* cgroups above a process that are searched for a budget */
#define TRIES 64      /* to charge a queue while other processors do the same */

/* What is used of the kernel's structures: libbpf finds the members in the running kernel. */
#define KERNEL __attribute__((preserve_access_index))

struct inode {
	__u32 i_rdev;
} KERNEL;

struct file {
	struct inode *f_inode;
} KERNEL;

struct mm_struct;

struct task_struct {
	struct mm_struct *mm;
} KERNEL;

const volatile __u32 kfd_device = 0; /* of /dev/kfd, as the kernel encodes it */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BUDGETS_MAX);
	__type(key, __u64); /* id of the cgroup */
	__type(value, struct queue_budget);
} budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BUDGETS_MAX);
	__type(key, __u64);
	__type(value, struct queue_use);
} uses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SPACES_MAX);
	__type(key, __u64);
	__type(value, struct queue_space);
} spaces SEC(".maps");

/* A call of a thread that has not returned. */
struct call {
	__u64 cgroup;
	__u64 lease; /* of the budget at that time */
	__u64 space;
	__u32 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALLS_MAX);
	__type(key, __u64); /* process and thread */
	__type(value, struct call);
} calls SEC(".maps");

/* The budget of the cgroup of this process, or of the highest one above it that has one. */
static struct queue_budget *find_budget(__u64 *ret_cgroup)
{
	struct queue_budget *budget = NULL;

	for (int level = 0; level < LEVELS_MAX && !budget; level++) {
		*ret_cgroup = bpf_get_current_ancestor_cgroup_id(level);
		if (*ret_cgroup == 0)
			return NULL;
		budget = bpf_map_lookup_elem(&budgets, ret_cgroup);
	}
	return budget;
}

static void add_queues(struct queue_use *use, __s32 queues)
{
	__sync_fetch_and_add(&use->queues, queues);
	__sync_fetch_and_add(&use->changes, 1);
}

static void add_in_flight(struct queue_use *use, __s32 n)
{
	__sync_fetch_and_add(&use->in_flight, n);
	__sync_fetch_and_add(&use->changes, 1);
}

static bool charge(const struct queue_budget *budget, struct queue_use *use)
{
	for (int i = 0; i < TRIES; i++) {
		__s32 queues = use->queues;

		if (queues + budget->before >= budget->limit)
			return false;
		if (__sync_val_compare_and_swap(&use->queues, queues, queues + 1) == queues)
			return true;
	}
	return false;
}

/* The budget of an address space stays the same, whereto its processes move. */
static struct queue_budget *find_charged(struct call *call)
{
	const struct queue_space *space = bpf_map_lookup_elem(&spaces, &call->space);
	struct queue_budget *budget = NULL;

	if (space) {
		call->cgroup = space->cgroup;
		budget = bpf_map_lookup_elem(&budgets, &call->cgroup);
	}
	return budget ? budget : find_budget(&call->cgroup);
}

/* The entry of an address space for which KFD has created a queue, so that its end is noticed. Calls that
 * fail make none: there are as many entries as KFD has processes. */
static struct queue_space *note_space(const struct call *call)
{
	const struct queue_space none = { .cgroup = call->cgroup };
	struct queue_space *space = bpf_map_lookup_elem(&spaces, &call->space);

	if (!space || space->cgroup != call->cgroup) {
		bpf_map_update_elem(&spaces, &call->space, &none, space ? BPF_ANY : BPF_NOEXIST);
		space = bpf_map_lookup_elem(&spaces, &call->space);
	}
	return space;
}

/* A call that destroys a queue counts if the address space has one that no other call destroys. */
static bool begin_destroy(const struct call *call)
{
	struct queue_space *space = bpf_map_lookup_elem(&spaces, &call->space);

	if (!space)
		return false;
	if (__sync_fetch_and_add(&space->destroys, 1) < space->queues)
		return true;
	__sync_fetch_and_add(&space->destroys, -1);
	return false;
}

static void end_destroy(const struct call *call, struct queue_use *use, long result)
{
	struct queue_space *space = bpf_map_lookup_elem(&spaces, &call->space);

	if (!space)
		return;
	__sync_fetch_and_add(&space->destroys, -1);
	if (result == 0 && space->queues > 0) {
		__sync_fetch_and_add(&space->queues, -1);
		add_queues(use, -1);
	}
}

/* So that the end of the call is noticed. */
static bool note_call(const struct call *call, struct queue_use *use)
{
	__u64 thread = bpf_get_current_pid_tgid();

	if (bpf_map_update_elem(&calls, &thread, call, BPF_ANY) < 0)
		return false;
	add_in_flight(use, 1);
	return true;
}

static int begin_call(struct call *call)
{
	const struct queue_budget *budget;
	struct queue_use *use;

	call->space = (__u64)bpf_get_current_task_btf()->mm;
	budget = find_charged(call);
	use = budget ? bpf_map_lookup_elem(&uses, &call->cgroup) : NULL;
	if (!use)
		return 0;
	call->lease = budget->lease;
	if (call->nr == NR_DESTROY_QUEUE) {
		if (begin_destroy(call) && !note_call(call, use))
			end_destroy(call, use, -ENOMEM);
		return 0;
	}
	if (charge(budget, use)) {
		if (note_call(call, use))
			return 0;
		add_queues(use, -1);
	}
	__sync_fetch_and_add(&use->refused, 1);
	return -ENOMEM;
}

SEC("lsm/file_ioctl")
int BPF_PROG(before_ioctl, struct file *file, unsigned int cmd, unsigned long arg, int earlier)
{
	struct call call = { .nr = NR_OF_IOCTL(cmd) };

	if (earlier != 0)
		return earlier;
	if ((call.nr != NR_CREATE_QUEUE && call.nr != NR_DESTROY_QUEUE) ||
	    file->f_inode->i_rdev != kfd_device)
		return 0;
	return begin_call(&call);
}

/* Queues of two threads of an address space can change at the same time. */
static void end_call(const struct call *call, long result)
{
	struct queue_space *space;
	const struct queue_budget *budget = bpf_map_lookup_elem(&budgets, &call->cgroup);
	struct queue_use *use = bpf_map_lookup_elem(&uses, &call->cgroup);

	if (!budget || !use || budget->lease != call->lease)
		return; /* the budget has ended meanwhile */
	if (call->nr == NR_DESTROY_QUEUE) {
		end_destroy(call, use, result);
	} else if (result != 0) {
		add_queues(use, -1);
	} else {
		space = note_space(call);
		if (space)
			__sync_fetch_and_add(&space->queues, 1);
	}
	add_in_flight(use, -1);
}

/* Every call of ioctl ends here, whatever refused it. gpuarb-budget names the function, which depends on
 * the architecture. */
SEC("fexit/ioctl")
int BPF_PROG(after_ioctl, const void *registers, long result)
{
	__u64 thread = bpf_get_current_pid_tgid();
	const struct call *call = bpf_map_lookup_elem(&calls, &thread);
	struct call copy;

	if (!call)
		return 0;
	copy = *call;
	bpf_map_delete_elem(&calls, &thread);
	end_call(&copy, result);
	return 0;
}

/* KFD has destroyed the queues of the address space. */
SEC("fexit/exit_mmap")
int BPF_PROG(after_exit_mmap, struct mm_struct *mm)
{
	__u64 key = (__u64)mm;
	const struct queue_space *space = bpf_map_lookup_elem(&spaces, &key);
	struct queue_space copy;
	struct queue_use *use;

	if (!space)
		return 0;
	copy = *space;
	bpf_map_delete_elem(&spaces, &key);
	use = bpf_map_lookup_elem(&uses, &copy.cgroup);
	if (use)
		add_queues(use, -copy.queues);
	return 0;
}

/* ioctl of 32-bit programs, where it is a hook of its own: ROCm has none. */
SEC("?lsm/file_ioctl_compat")
int BPF_PROG(before_compat_ioctl, struct file *file, unsigned int cmd, unsigned long arg,
	     int earlier)
{
	__u64 cgroup;

	if (earlier != 0)
		return earlier;
	if (NR_OF_IOCTL(cmd) != NR_CREATE_QUEUE || file->f_inode->i_rdev != kfd_device)
		return 0;
	return find_budget(&cgroup) ? -ENOSYS : 0;
}
