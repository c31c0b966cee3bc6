/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* class/kfd/kfd/proc/PID, as kfd_process.c makes it: vram_GPUID, queues/QID/{gpuid,type}.
 * sdma_GPUID is never opened: reading it starts work in the kernel and waits for it. */
#define PROC "class/kfd/kfd/proc"
#define PROCESSES 4096U
#define QUEUES 4096U

/* enum kfd_queue_type in kfd_priv.h; the others are the kernel's own. */
enum { TYPE_COMPUTE = 0, TYPE_SDMA = 1, TYPE_SDMA_XGMI = 4 };

/* What one process has, GPU by GPU. */
struct rows {
	const struct kfd_dir *dir; /* where vram files are being read */
	pid_t pid;
	struct hw_use list[KFD_NODES];
	size_t n;
};

static struct hw_use *row_of(struct rows *rows, uint32_t gpu_id)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->list[i].kfd_gpu_id == gpu_id)
			return &rows->list[i];
	if (rows->n == KFD_NODES)
		return NULL;

	rows->list[rows->n] = (struct hw_use){ .pid = rows->pid, .kfd_gpu_id = gpu_id };
	return &rows->list[rows->n++];
}

static void read_queue(const struct kfd_dir *queues, unsigned number, struct rows *rows)
{
	uint64_t gpu_id, type;
	struct hw_use *row;
	char name[32];

	snprintf(name, sizeof(name), "%u/gpuid", number);
	if (kfd_read_number(queues, name, UINT32_MAX, &gpu_id) < 0)
		return;
	snprintf(name, sizeof(name), "%u/type", number);
	if (kfd_read_number(queues, name, UINT32_MAX, &type) < 0)
		return;
	row = row_of(rows, (uint32_t)gpu_id);
	if (!row)
		return;
	if (type == TYPE_COMPUTE)
		row->queues++;
	else if (type == TYPE_SDMA || type == TYPE_SDMA_XGMI)
		row->sdma_queues++;
}

static int read_queues(const struct kfd_dir *process, struct rows *rows)
{
	_cleanup_dir_ struct kfd_dir queues = KFD_DIR_NONE;
	unsigned numbers[QUEUES];
	int n;

	if (kfd_dir_open(process, "queues", &queues) < 0)
		return 0;

	n = kfd_dir_numbers(&queues, numbers, QUEUES);
	if (n == -E2BIG)
		return n;
	for (int i = 0; i < n; i++)
		read_queue(&queues, numbers[i], rows);
	return 0;
}

static void read_vram(const struct kfd_dir *process, const char *name, struct rows *rows)
{
	const char *id = name + strlen("vram_");
	uint64_t gpu_id, bytes;
	struct hw_use *row;

	if (kfd_number(id, strlen(id), UINT32_MAX, &gpu_id) < 0 ||
	    kfd_read_number(process, name, UINT64_MAX >> 8, &bytes) < 0)
		return;
	row = row_of(rows, (uint32_t)gpu_id);
	if (row)
		row->vram += bytes;
}

static int read_entry(const char *name, void *userdata);

static int read_process(const struct kfd_dir *parent, const char *name, struct rows *rows)
{
	_cleanup_dir_ struct kfd_dir dir = KFD_DIR_NONE;
	const struct kfd_dir *outer = rows->dir;
	int r;

	if (kfd_dir_open(parent, name, &dir) < 0)
		return 0;
	r = read_queues(&dir, rows);
	if (r < 0)
		return r;

	rows->dir = &dir;
	r = kfd_dir_each(&dir, read_entry, rows);
	rows->dir = outer;
	return r == -E2BIG ? r : 0;
}

/* Newer drivers let a process have more contexts, each a process of its own to them:
 * context_N is laid out like what it is in (kfd_create_process_sysfs()). They do not nest. */
static int read_entry(const char *name, void *userdata)
{
	struct rows *rows = userdata;

	if (strncmp(name, "vram_", strlen("vram_")) == 0)
		read_vram(rows->dir, name, rows);
	else if (strncmp(name, "context_", strlen("context_")) == 0 &&
		 !strstr(rows->dir->path, "/context_"))
		return read_process(rows->dir, name, rows);
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct hw_use *x = a, *y = b;

	return (x->kfd_gpu_id > y->kfd_gpu_id) - (x->kfd_gpu_id < y->kfd_gpu_id);
}

/* The driver makes a vram file for each GPU as soon as /dev/kfd is open: a row of zeros is
 * no use. */
static size_t hand_out(struct rows *rows, struct hw_use *uses, size_t max, size_t n)
{
	qsort(rows->list, rows->n, sizeof(rows->list[0]), compare_rows);
	for (size_t i = 0; i < rows->n; i++) {
		const struct hw_use *row = &rows->list[i];

		if (row->queues == 0 && row->sdma_queues == 0 && row->vram == 0)
			continue;
		if (n < max)
			uses[n] = *row;
		n++;
	}
	return n;
}

int kfd_use_read(const struct kfd_dir *sys, struct hw_use *uses, size_t max)
{
	_cleanup_dir_ struct kfd_dir proc = KFD_DIR_NONE;
	unsigned pids[PROCESSES];
	size_t n_uses = 0;
	char name[16];
	int n, r;

	r = kfd_dir_open(sys, PROC, &proc);
	if (r < 0)
		return r == -ENOENT ? 0 : r;

	n = kfd_dir_numbers(&proc, pids, PROCESSES);
	for (int i = 0; i < n; i++) {
		struct rows rows = { .pid = (pid_t)pids[i] };

		snprintf(name, sizeof(name), "%u", pids[i]);
		r = read_process(&proc, name, &rows);
		if (r < 0)
			return r;
		n_uses = hand_out(&rows, uses, max, n_uses);
	}
	return n < 0 ? n : (int)n_uses;
}
