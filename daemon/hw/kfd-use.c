/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd-use.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* class/kfd/kfd/proc/PID as kfd_process.c makes it: vram_GPUID, queues/QID/{gpuid,type}. sdma_GPUID
 * is never opened: reading it starts work in the kernel and waits for it. */
#define PROC "class/kfd/kfd/proc"
#define ENTRIES_OF_STEP 8U /* listing so many queues takes as long as reading a file */

/* enum kfd_queue_type in kfd_priv.h; the other types are of the kernel itself. */
enum { TYPE_COMPUTE = 0, TYPE_SDMA = 1, TYPE_SDMA_XGMI = 4, TYPE_UNKNOWN = -1 };

/* A queue keeps its GPU and type as long as it exists, and sysfs gives no inode twice: kernfs_ino(),
 * include/linux/kernfs.h. The times of a directory of sysfs and its number of links do not tell that
 * one queue was replaced by another. */
struct queue {
	uint64_t inode;
	unsigned context, number; /* context 0: of the process itself, N + 1: of context_N */
	uint32_t gpu_id;
	int type;
};

struct hw_process {
	pid_t pid;
	bool listed; /* … and not read to the end */
	struct queue *queues;
	size_t n_queues, at;
	struct hw_use *uses;
	size_t n_uses;
};

/* Adds an element to an array that doubles. NULL: no memory. */
static void *grow(void *list, size_t *n, size_t size)
{
	void **array = list;

	if ((*n & (*n - 1)) == 0) {
		void *more = reallocarray(*array, *n ? 2 * *n : 1, size);

		if (!more)
			return NULL;
		*array = more;
	}
	return (char *)*array + (*n)++ * size;
}

static struct hw_use *row_of(struct hw_process *process, uint32_t gpu_id, int *ret)
{
	struct hw_use *row;

	for (size_t i = 0; i < process->n_uses; i++)
		if (process->uses[i].kfd_gpu_id == gpu_id)
			return &process->uses[i];
	if (process->n_uses == KFD_NODES)
		return NULL;
	row = grow(&process->uses, &process->n_uses, sizeof(*row));
	if (row)
		*row = (struct hw_use){ .pid = process->pid, .kfd_gpu_id = gpu_id };
	else
		*ret = -ENOMEM;
	return row;
}

/* What has gone meanwhile, or is not what the driver writes, counts as absent. What cannot be read now
 * does not: leases would end, and others be granted their CUs. */
static int absent(int error)
{
	return kfd_is_unread(error) ? error : 0;
}

/* ---- listing ------------------------------------------------------------------------- */

/* The directory that is being listed. */
struct listing {
	struct hw_process *process;
	const struct kfd_dir *dir;
	unsigned context, steps, entries;
};

static int add_queue(const struct dirent *entry, void *userdata)
{
	struct listing *listing = userdata;
	struct queue *queue;
	unsigned number;

	listing->entries++;
	if (!kfd_name_number(entry->d_name, &number))
		return 0;
	queue = grow(&listing->process->queues, &listing->process->n_queues, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	*queue = (struct queue){ entry->d_ino, listing->context, number, 0, TYPE_UNKNOWN };
	return 0;
}

static int read_vram(struct listing *listing, const char *name)
{
	const char *id = name + strlen("vram_");
	uint64_t gpu_id, bytes;
	struct hw_use *row;
	int r;

	if (kfd_number(id, strlen(id), UINT32_MAX, &gpu_id) < 0)
		return 0;
	listing->steps++;
	r = kfd_read_number(listing->dir, name, UINT64_MAX >> 8, &bytes);
	if (r < 0)
		return absent(r);
	row = row_of(listing->process, (uint32_t)gpu_id, &r);
	if (row)
		row->vram += bytes;
	return r;
}

static int list_directory(const struct kfd_dir *parent, const char *name, struct listing *listing);

/* Newer drivers allow several contexts per process: context_N has the same layout as the directory
 * of the process (kfd_create_process_sysfs()). Contexts do not nest. */
static int take_entry(const struct dirent *entry, void *userdata)
{
	struct listing *listing = userdata;
	struct listing inner = { .process = listing->process };
	int r;

	if (strncmp(entry->d_name, "vram_", strlen("vram_")) == 0)
		return read_vram(listing, entry->d_name);
	if (listing->context > 0 || strncmp(entry->d_name, "context_", strlen("context_")) != 0 ||
	    !kfd_name_number(entry->d_name + strlen("context_"), &inner.context) ||
	    inner.context == UINT_MAX)
		return 0;
	inner.context++;
	r = list_directory(listing->dir, entry->d_name, &inner);
	listing->steps += inner.steps;
	listing->entries += inner.entries;
	return r;
}

static int list_directory(const struct kfd_dir *parent, const char *name, struct listing *listing)
{
	_cleanup_dir_ struct kfd_dir dir = KFD_DIR_NONE, queues = KFD_DIR_NONE;
	int r;

	listing->steps += 2;
	r = kfd_dir_open(parent, name, &dir);
	if (r >= 0)
		r = kfd_dir_open(&dir, "queues", &queues);
	if (r >= 0)
		r = kfd_dir_each(&queues, add_queue, listing);
	if (r < 0)
		return absent(r);
	listing->dir = &dir;
	return absent(kfd_dir_each(&dir, take_entry, listing));
}

static int by_inode(const void *a, const void *b)
{
	const struct queue *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Both lists are ordered by inode. */
static void take_known(struct hw_process *process, const struct queue *before, size_t n)
{
	for (size_t i = 0, k = 0; i < process->n_queues && k < n;) {
		struct queue *queue = &process->queues[i];
		int order = by_inode(queue, &before[k]);

		if (order == 0 && queue->number == before[k].number &&
		    queue->context == before[k].context)
			*queue = before[k];
		i += order <= 0;
		k += order >= 0;
	}
}

static int list_process(struct hw_process *process, const struct kfd_dir *proc, unsigned *steps)
{
	_cleanup_(freep) struct queue *before = TAKE_PTR(process->queues);
	struct listing listing = { .process = process };
	size_t n_before = process->n_queues;
	char name[16];
	int r;

	process->n_queues = process->at = process->n_uses = 0;
	free(TAKE_PTR(process->uses));
	snprintf(name, sizeof(name), "%d", (int)process->pid);
	r = list_directory(proc, name, &listing);
	*steps += listing.steps + listing.entries / ENTRIES_OF_STEP;
	if (r < 0)
		return r;
	if (process->n_queues > 0)
		qsort(process->queues, process->n_queues, sizeof(*process->queues), by_inode);
	take_known(process, before, n_before);
	process->listed = true;
	return 0;
}

/* ---- reading ------------------------------------------------------------------------- */

static int read_queue(const struct kfd_dir *proc, pid_t pid, struct queue *queue)
{
	char name[96], context[24] = "";
	uint64_t gpu_id, type;
	int n, r;

	if (queue->context > 0)
		snprintf(context, sizeof(context), "/context_%u", queue->context - 1);
	n = snprintf(name, sizeof(name), "%d%s/queues/%u/", (int)pid, context, queue->number);
	snprintf(name + n, sizeof(name) - (size_t)n, "gpuid");
	r = kfd_read_number(proc, name, UINT32_MAX, &gpu_id);
	if (r < 0)
		return absent(r);
	snprintf(name + n, sizeof(name) - (size_t)n, "type");
	r = kfd_read_number(proc, name, INT_MAX, &type);
	if (r < 0)
		return absent(r);
	queue->gpu_id = (uint32_t)gpu_id;
	queue->type = (int)type;
	return 0;
}

static int add_to_row(struct hw_process *process, const struct queue *queue)
{
	struct hw_use *row;
	int r = 0;

	if (queue->type == TYPE_UNKNOWN)
		return 0;
	row = row_of(process, queue->gpu_id, &r);
	if (!row)
		return r;
	if (queue->type == TYPE_COMPUTE)
		row->queues++;
	else if (queue->type == TYPE_SDMA)
		row->sdma_queues++;
	else if (queue->type == TYPE_SDMA_XGMI)
		row->sdma_xgmi_queues++;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct hw_use *x = a, *y = b;

	return (x->kfd_gpu_id > y->kfd_gpu_id) - (x->kfd_gpu_id < y->kfd_gpu_id);
}

/* With rows of zeros: the driver makes a vram file for each GPU as soon as /dev/kfd is open. */
static int finish_rows(struct hw_process *process)
{
	int r = 0;

	for (size_t i = 0; i < process->n_queues && r >= 0; i++)
		r = add_to_row(process, &process->queues[i]);
	if (r < 0)
		return r;
	if (process->n_uses > 0)
		qsort(process->uses, process->n_uses, sizeof(*process->uses), compare_rows);
	return (int)process->n_uses;
}

static int read_on(struct hw *hw, struct hw_process *process, unsigned most, unsigned *steps)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	int r = kfd_dir_open(&hw->sys, PROC, &proc);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!process->listed)
		r = list_process(process, &proc, steps);
	for (; r >= 0 && process->at < process->n_queues; process->at++) {
		struct queue *queue = &process->queues[process->at];

		if (queue->type != TYPE_UNKNOWN)
			continue;
		if (*steps >= most)
			return -EAGAIN;
		*steps += 2;
		r = read_queue(&proc, process->pid, queue);
	}
	return r < 0 ? r : finish_rows(process);
}

int kfd_read_process(struct hw *hw, pid_t pid, struct hw_process **process, unsigned *steps,
		     const struct hw_use **ret)
{
	unsigned most = *steps;
	int r;

	*steps = 0;
	if (!*process)
		*process = calloc(1, sizeof(**process));
	if (!*process)
		return -ENOMEM;
	(*process)->pid = pid;
	r = read_on(hw, *process, most, steps);
	(*process)->listed = r == -EAGAIN;
	*ret = (*process)->uses;
	return r;
}

void kfd_forget_process(struct hw_process *process)
{
	if (!process)
		return;
	free(process->queues);
	free(process->uses);
	free(process);
}
DEFINE_CLEANUP(struct hw_process *, kfd_forget_process)

/* idle: with rows of zeros. */
static int copy_uses(struct hw *hw, pid_t pid, bool idle, struct hw_use *uses, size_t max)
{
	_cleanup_(kfd_forget_processp) struct hw_process *process = NULL;
	unsigned steps = UINT_MAX;
	const struct hw_use *rows;
	int all = kfd_read_process(hw, pid, &process, &steps, &rows), n = 0;

	for (int i = 0; i < all; i++) {
		if (!idle && hw_use_is_idle(&rows[i]))
			continue;
		if ((size_t)n < max)
			uses[n] = rows[i];
		n++;
	}
	return all < 0 ? all : n;
}

int kfd_use_of(struct hw *hw, pid_t pid, struct hw_use *uses, size_t max)
{
	return copy_uses(hw, pid, false, uses, max);
}

/* ---- all processes ------------------------------------------------------------------- */

struct pids {
	struct hw_pid *list;
	size_t n;
};

static int add_pid(const struct dirent *entry, void *userdata)
{
	struct pids *pids = userdata;
	struct hw_pid *pid;
	unsigned number;

	if (!kfd_name_number(entry->d_name, &number))
		return 0;
	pid = grow(&pids->list, &pids->n, sizeof(*pid));
	if (!pid)
		return -ENOMEM;
	*pid = (struct hw_pid){ (pid_t)number, entry->d_ino };
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct hw_pid *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int kfd_processes(struct hw *hw, struct hw_pid **ret)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	struct pids pids = { 0 };
	int r = kfd_dir_open(&hw->sys, PROC, &proc);

	if (r >= 0)
		r = kfd_dir_each(&proc, add_pid, &pids);
	if (r < 0 && r != -ENOENT) {
		free(pids.list);
		return r;
	}
	if (pids.n > 0)
		qsort(pids.list, pids.n, sizeof(*pids.list), by_pid);
	*ret = pids.list;
	return (int)pids.n;
}

int kfd_use(struct hw *hw, struct hw_use *uses, size_t max)
{
	_cleanup_(freep) struct hw_pid *pids = NULL;
	int n = kfd_processes(hw, &pids), n_uses = 0;

	for (int i = 0; i < n; i++) {
		size_t room = max > (size_t)n_uses ? max - (size_t)n_uses : 0;
		int r = copy_uses(hw, pids[i].pid, true, room > 0 ? uses + n_uses : NULL, room);

		if (r < 0)
			return r;
		n_uses += r;
	}
	return n < 0 ? n : n_uses;
}
