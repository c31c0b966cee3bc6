/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fd.h"
#include "util/grow.h"

/* class/kfd/kfd/proc/PID as kfd_process.c makes it: vram_GPUID, queues/QID/{gpuid,type}. sdma_GPUID
 * is never opened: reading it starts work in the kernel and waits for it. */
#define PROC "class/kfd/kfd/proc"
#define ENTRIES_OF_STEP 32U /* listing so many takes about as long as reading a file */

/* Two listings have the queues that both have in the same order: kernfs orders a directory by hashes of
 * its names. So many queues may have gone in a row; beyond, queues are read again. */
#define GONE_IN_A_ROW 64U

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

struct queues {
	struct queue *list;
	size_t n, at;
};

/* The directories that are being listed, each within the one before: that of the process, that of one
 * of its contexts, and the queues of either. */
enum { OF_PROCESS, OF_CONTEXT, OF_QUEUES, LEVELS };

struct hw_process {
	pid_t pid;
	DIR *dirs[LEVELS];
	unsigned context, entries;
	bool begun;           /* it is not read to its end */
	struct queues before; /* as it was read last; at: where this listing is */
	struct queues now;    /* at: where reading is */
	struct hw_use *uses;
	size_t n_uses;
};

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

static int add_to_row(struct hw_process *process, const struct queue *queue)
{
	struct hw_use *row;
	int r = 0;

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

/* ---- listing ------------------------------------------------------------------------- */

static bool is_same(const struct queue *a, const struct queue *b)
{
	return a->inode == b->inode && a->context == b->context && a->number == b->number;
}

/* NULL: it is new. */
static const struct queue *find_before(struct queues *before, const struct queue *queue)
{
	for (size_t i = before->at; i < before->n && i - before->at <= GONE_IN_A_ROW; i++)
		if (is_same(&before->list[i], queue)) {
			before->at = i + 1;
			return &before->list[i];
		}
	return NULL;
}

static int add_queue(struct hw_process *process, const struct dirent *entry)
{
	struct queue found = { entry->d_ino, process->context, 0, 0, TYPE_UNKNOWN };
	const struct queue *before;
	struct queue *queue;

	if (!kfd_name_number(entry->d_name, &found.number))
		return 0;
	queue = grow(&process->now.list, &process->now.n, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	before = find_before(&process->before, &found);
	*queue = before ? *before : found;
	return queue->type == TYPE_UNKNOWN ? 0 : add_to_row(process, queue);
}

static int read_vram(struct hw_process *process, int fd, const char *name)
{
	const char *id = name + strlen("vram_");
	const struct kfd_dir dir = { .fd = fd };
	uint64_t gpu_id, bytes;
	struct hw_use *row;
	int r;

	if (kfd_number(id, strlen(id), UINT32_MAX, &gpu_id) < 0)
		return 0;
	process->entries += ENTRIES_OF_STEP;
	r = kfd_read_number(&dir, name, UINT64_MAX >> 8, &bytes);
	if (r < 0)
		return absent(r);
	row = row_of(process, (uint32_t)gpu_id, &r);
	if (row)
		row->vram += bytes;
	return r;
}

static int open_level(struct hw_process *process, unsigned level, int parent, const char *name)
{
	process->entries += ENTRIES_OF_STEP;
	process->dirs[level] = open_directory(
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
	return process->dirs[level] ? 0 : absent(-errno);
}

static void close_level(struct hw_process *process, unsigned level)
{
	if (process->dirs[level])
		closedir(TAKE_PTR(process->dirs[level]));
}

/* Opens a directory with its queues; without these it counts as absent. */
static int open_both(struct hw_process *process, unsigned level, int parent, const char *name)
{
	int r = open_level(process, level, parent, name);

	if (r >= 0 && process->dirs[level])
		r = open_level(process, OF_QUEUES, dirfd(process->dirs[level]), "queues");
	if (!process->dirs[OF_QUEUES])
		close_level(process, level);
	return r;
}

/* Newer drivers allow several contexts per process: context_N has the same layout as the directory
 * of the process (kfd_create_process_sysfs()). Contexts do not nest. */
static int open_context(struct hw_process *process, const char *name)
{
	unsigned number;

	if (strncmp(name, "context_", strlen("context_")) != 0 ||
	    !kfd_name_number(name + strlen("context_"), &number) || number == UINT_MAX)
		return 0;
	process->context = number + 1;
	return open_both(process, OF_CONTEXT, dirfd(process->dirs[OF_PROCESS]), name);
}

static int take_entry(struct hw_process *process, unsigned level, const struct dirent *entry)
{
	if (level == OF_QUEUES)
		return add_queue(process, entry);
	if (strncmp(entry->d_name, "vram_", strlen("vram_")) == 0)
		return read_vram(process, dirfd(process->dirs[level]), entry->d_name);
	return level == OF_PROCESS ? open_context(process, entry->d_name) : 0;
}

/* Takes one entry of the innermost directory. Returns 1 if there is none any more. */
static int list_on(struct hw_process *process)
{
	unsigned level = LEVELS;
	const struct dirent *entry;

	while (level > 0 && !process->dirs[level - 1])
		level--;
	if (level-- == 0)
		return 1;
	errno = 0;
	entry = readdir(process->dirs[level]);
	process->entries++;
	if (entry)
		return take_entry(process, level, entry);
	close_level(process, level);
	return absent(-errno);
}

/* What was listed and not read to its end is listed again. */
static void begin_again(struct hw_process *process)
{
	for (unsigned level = 0; level < LEVELS; level++)
		close_level(process, level);
	process->begun = false;
}

static int begin_listing(struct hw_process *process, const struct kfd_dir *proc)
{
	char name[16];

	free(TAKE_PTR(process->now.list));
	free(TAKE_PTR(process->uses));
	process->now.n = process->now.at = process->n_uses = 0;
	process->before.at = process->context = 0;
	process->begun = true;
	snprintf(name, sizeof(name), "%d", (int)process->pid);
	return open_both(process, OF_PROCESS, proc->fd, name);
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

DEFINE_ORDER(compare_rows, struct hw_use, .kfd_gpu_id)

/* With rows of zeros: the driver makes a vram file for each GPU as soon as /dev/kfd is open. */
static int finish(struct hw_process *process)
{
	free(process->before.list);
	process->before = process->now;
	process->now = (struct queues){ 0 };
	process->begun = false;
	if (process->n_uses > 0)
		qsort(process->uses, process->n_uses, sizeof(*process->uses), compare_rows);
	return (int)process->n_uses;
}

static int read_unknown(struct hw_process *process, const struct kfd_dir *proc, unsigned most,
			unsigned *steps)
{
	for (; process->now.at < process->now.n; process->now.at++) {
		struct queue *queue = &process->now.list[process->now.at];
		int r;

		if (queue->type != TYPE_UNKNOWN)
			continue;
		if (*steps >= most)
			return -EAGAIN;
		*steps += 2;
		r = read_queue(proc, process->pid, queue);
		if (r >= 0 && queue->type != TYPE_UNKNOWN)
			r = add_to_row(process, queue);
		if (r < 0)
			return r;
	}
	return 0;
}

/* No process uses simulated GPUs. */
static int open_proc(const struct hw *hw, struct kfd_dir *ret)
{
	return hw_is_simulated(hw) ? -ENOENT : kfd_dir_open(&hw->sys, PROC, ret);
}

static int read_on(struct hw *hw, struct hw_process *process, unsigned most, unsigned *steps)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	int r = open_proc(hw, &proc);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	process->entries = 0;
	if (!process->begun)
		r = begin_listing(process, &proc);
	while (r == 0) {
		*steps = process->entries / ENTRIES_OF_STEP;
		r = *steps >= most ? -EAGAIN : list_on(process);
	}
	if (r > 0)
		r = read_unknown(process, &proc, most, steps);
	return r < 0 ? r : finish(process);
}

int hw_read(struct hw *hw, pid_t pid, struct hw_process **process, unsigned *steps,
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
	if (r < 0 && r != -EAGAIN)
		begin_again(*process);
	*ret = (*process)->uses;
	return r;
}

void hw_leave(struct hw_process *process)
{
	if (process && process->dirs[OF_PROCESS])
		begin_again(process);
}

void hw_forget(struct hw_process *process)
{
	if (!process)
		return;
	begin_again(process);
	free(process->before.list);
	free(process->now.list);
	free(process->uses);
	free(process);
}
DEFINE_CLEANUP(struct hw_process *, hw_forget)

static int copy_uses(struct hw *hw, pid_t pid, struct hw_use *uses, size_t max)
{
	_cleanup_(hw_forgetp) struct hw_process *process = NULL;
	unsigned steps = UINT_MAX;
	const struct hw_use *rows;
	int n = hw_read(hw, pid, &process, &steps, &rows);

	for (int i = 0; i < n && (size_t)i < max; i++)
		uses[i] = rows[i];
	return n;
}

/* ---- all processes ------------------------------------------------------------------- */

struct hw_listing {
	DIR *dir;
	struct hw_pid *pids;
	size_t n;
};

static int add_pid(struct hw_listing *listing, const struct dirent *entry)
{
	struct hw_pid *pid;
	unsigned number;

	if (!kfd_name_number(entry->d_name, &number))
		return 0;
	pid = grow(&listing->pids, &listing->n, sizeof(*pid));
	if (!pid)
		return -ENOMEM;
	*pid = (struct hw_pid){ (pid_t)number, entry->d_ino };
	return 0;
}

DEFINE_ORDER(by_pid, struct hw_pid, .pid)

void hw_end_listing(struct hw_listing *listing)
{
	if (!listing)
		return;
	if (listing->dir)
		closedir(listing->dir);
	free(listing->pids);
	free(listing);
}
DEFINE_CLEANUP(struct hw_listing *, hw_end_listing)

static int begin_pids(struct hw *hw, struct hw_listing **ret)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	_cleanup_(hw_end_listingp) struct hw_listing *listing = calloc(1, sizeof(*listing));
	int r = listing ? open_proc(hw, &proc) : -ENOMEM;

	if (r >= 0)
		listing->dir = open_directory(take_fd(&proc.fd));
	if (r < 0 || !listing->dir)
		return r < 0 ? r : -errno;
	*ret = TAKE_PTR(listing);
	return 0;
}

/* Takes one entry. Returns 1 if there is none any more. */
static int take_pid(struct hw_listing *listing)
{
	const struct dirent *entry;

	errno = 0;
	entry = readdir(listing->dir);
	if (!entry)
		return errno ? -errno : 1;
	return add_pid(listing, entry);
}

int hw_processes(struct hw *hw, struct hw_listing **listing, unsigned *steps, struct hw_pid **ret)
{
	unsigned most = *steps, entries = 0;
	int r = *listing ? 0 : begin_pids(hw, listing), n;

	while (r == 0)
		r = entries++ / ENTRIES_OF_STEP >= most ? -EAGAIN : take_pid(*listing);
	*steps = entries / ENTRIES_OF_STEP;
	if (r == -EAGAIN)
		return r;
	if (r < 0) {
		hw_end_listing(TAKE_PTR(*listing));
		*ret = NULL;
		return r == -ENOENT ? 0 : r;
	}
	if ((*listing)->n > 0)
		qsort((*listing)->pids, (*listing)->n, sizeof(*(*listing)->pids), by_pid);
	*ret = TAKE_PTR((*listing)->pids);
	n = (int)(*listing)->n;
	hw_end_listing(TAKE_PTR(*listing));
	return n;
}

int hw_uses(struct hw *hw, struct hw_use *uses, size_t max)
{
	_cleanup_(freep) struct hw_pid *pids = NULL;
	struct hw_listing *listing = NULL;
	unsigned steps = UINT_MAX;
	int n = hw_processes(hw, &listing, &steps, &pids), n_uses = 0;

	for (int i = 0; i < n; i++) {
		size_t room = max > (size_t)n_uses ? max - (size_t)n_uses : 0;
		int r = copy_uses(hw, pids[i].pid, room > 0 ? uses + n_uses : NULL, room);

		if (r < 0)
			return r;
		n_uses += r;
	}
	return n < 0 ? n : n_uses;
}
