/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "kfdsim/text/text.h"

/*
 * kfd/proc as kfd_procfs_show() and kfd_procfs_queue_show() in kfd_process.c have it (Linux 6.12): a
 * directory from open("/dev/kfd") until the process is torn down. sdma_* and stats_* are left out: nothing
 * here reads them. What is in queues/ has no newline at its end, the rest has. Since Linux 7.2, secondary
 * contexts of a process have a directory context_N each in that of the process.
 */

#define CONTEXT "context_"
#define VRAM_OF "vram_"
#define ALLOC_VRAM 1U /* KFD_IOC_ALLOC_MEM_FLAGS_VRAM */

enum file {
	DIRECTORY_ALL,
	DIRECTORY_PROCESS,
	DIRECTORY_QUEUES,
	DIRECTORY_QUEUE,
	PASID,
	VRAM,
	QUEUE_GPU,
	QUEUE_SIZE,
	QUEUE_TYPE,
};

struct place {
	enum file file;
	const struct sim_process *process;
	const struct sim_queue *queue;
	const struct sim_gpu *gpu;
};

/* One name of a path, and what follows it. -EINVAL for one that is empty or too long. */
static int next_name(const char **path, char name[32])
{
	size_t length = strcspn(*path, "/");

	if (length == 0 || length >= 32)
		return -EINVAL;
	memcpy(name, *path, length);
	name[length] = '\0';
	*path += length;
	if (**path == '/')
		++*path;
	return 0;
}

/* A number as the driver writes it. */
static int number(const char *text, uint64_t *ret)
{
	char again[32], *end;

	*ret = strtoull(text, &end, 10);
	snprintf(again, sizeof(again), "%" PRIu64, *ret);
	return *end == '\0' && strcmp(again, text) == 0 ? 0 : -ENOENT;
}

/* The living one, where a dead one that had the same number is not torn down yet. */
static const struct sim_process *find_process(const struct sim *sim, uint64_t pid, uint64_t context)
{
	const struct sim_process *found = NULL;

	for (const struct sim_process *p = sim->processes; p; p = p->next)
		if ((uint64_t)p->pid == pid && p->context == context && (!found || found->dead))
			found = p;
	return found;
}

/* The secondary one of this number. */
static const struct sim_process *find_context(const struct sim *sim, uint64_t pid, const char *text)
{
	uint64_t context;

	if (number(text, &context) < 0 || context == SIM_CONTEXT_PRIMARY)
		return NULL;
	return find_process(sim, pid, context);
}

/* A GPU that has gone is still told by who used it then. */
static bool tells_of(const struct sim_process *process, const struct sim_gpu *gpu)
{
	return !gpu->gone || process->acquired[gpu->index];
}

static const struct sim_gpu *find_gpu(const struct sim_process *process, const char *text)
{
	uint64_t id;

	if (number(text, &id) < 0)
		return NULL;
	for (size_t i = 0; i < process->sim->n_gpus; i++) {
		const struct sim_gpu *gpu = &process->sim->gpus[i];

		if (gpu->info.kfd_gpu_id == id && tells_of(process, gpu))
			return gpu;
	}
	return NULL;
}

static int find_queue_file(const char *path, struct place *place)
{
	char name[32];
	uint64_t id;

	place->file = DIRECTORY_QUEUES;
	if (!*path)
		return 0;
	if (next_name(&path, name) < 0 || number(name, &id) < 0)
		return -ENOENT;
	for (place->queue = place->process->queues; place->queue; place->queue = place->queue->next)
		if (place->queue->id == id)
			break;
	if (!place->queue)
		return -ENOENT;
	place->file = strcmp(path, "") == 0        ? DIRECTORY_QUEUE
		      : strcmp(path, "gpuid") == 0 ? QUEUE_GPU
		      : strcmp(path, "size") == 0  ? QUEUE_SIZE
		      : strcmp(path, "type") == 0  ? QUEUE_TYPE
						   : DIRECTORY_ALL;
	return place->file == DIRECTORY_ALL ? -ENOENT : 0;
}

static int find_place(const struct sim *sim, const char *path, struct place *ret)
{
	char name[32];
	uint64_t pid;

	*ret = (struct place){ .file = DIRECTORY_ALL };
	if (!*path)
		return 0;
	if (next_name(&path, name) < 0 || number(name, &pid) < 0)
		return -ENOENT;
	ret->process = find_process(sim, pid, SIM_CONTEXT_PRIMARY);
	if (!ret->process)
		return -ENOENT;

	ret->file = DIRECTORY_PROCESS;
	if (!*path)
		return 0;
	if (next_name(&path, name) < 0)
		return -ENOENT;
	if (strncmp(name, CONTEXT, strlen(CONTEXT)) == 0) {
		ret->process = find_context(sim, pid, name + strlen(CONTEXT));
		if (!ret->process)
			return -ENOENT;
		if (!*path)
			return 0;
		if (next_name(&path, name) < 0)
			return -ENOENT;
	}
	if (strcmp(name, "queues") == 0)
		return find_queue_file(path, ret);
	if (*path)
		return -ENOENT;
	ret->file = strcmp(name, "pasid") == 0 ? PASID : VRAM;
	if (ret->file == VRAM && strncmp(name, VRAM_OF, strlen(VRAM_OF)) == 0)
		ret->gpu = find_gpu(ret->process, name + strlen(VRAM_OF));
	return ret->file == VRAM && !ret->gpu ? -ENOENT : 0;
}

enum tree_kind proc_find(const struct sim *sim, const char *path)
{
	struct place place;

	if (find_place(sim, path, &place) < 0)
		return TREE_NONE;
	return place.file <= DIRECTORY_QUEUE ? TREE_DIRECTORY : TREE_TEXT;
}

static int each_process(const struct sim *sim, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	for (const struct sim_process *p = sim->processes; p && r >= 0; p = p->next) {
		if (find_process(sim, (uint64_t)p->pid, SIM_CONTEXT_PRIMARY) != p)
			continue;
		snprintf(name, sizeof(name), "%d", (int)p->pid);
		r = each(name, TREE_DIRECTORY, userdata);
	}
	return r < 0 ? r : 0;
}

static int each_context(const struct sim_process *process, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	if (process->context != SIM_CONTEXT_PRIMARY)
		return 0;
	for (const struct sim_process *p = process->sim->processes; p && r >= 0; p = p->next) {
		if (p->pid != process->pid || p == process ||
		    find_process(p->sim, (uint64_t)p->pid, p->context) != p)
			continue;
		snprintf(name, sizeof(name), CONTEXT "%u", p->context);
		r = each(name, TREE_DIRECTORY, userdata);
	}
	return r;
}

static int each_gpu_file(const struct sim_process *process, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	for (size_t i = 0; i < process->sim->n_gpus && r >= 0; i++) {
		const struct sim_gpu *gpu = &process->sim->gpus[i];

		if (!tells_of(process, gpu))
			continue;
		snprintf(name, sizeof(name), VRAM_OF "%u", gpu->info.kfd_gpu_id);
		r = each(name, TREE_TEXT, userdata);
	}
	return r;
}

static int each_queue(const struct sim_process *process, tree_each_t *each, void *userdata)
{
	char name[32];
	int r = 0;

	for (const struct sim_queue *q = process->queues; q && r >= 0; q = q->next) {
		snprintf(name, sizeof(name), "%u", q->id);
		r = each(name, TREE_DIRECTORY, userdata);
	}
	return r < 0 ? r : 0;
}

int proc_each(const struct sim *sim, const char *path, tree_each_t *each, void *userdata)
{
	static const char *const names[] = { "gpuid", "size", "type" };
	struct place place;
	int r;

	r = find_place(sim, path, &place);
	if (r < 0)
		return r;
	switch (place.file) {
	case DIRECTORY_ALL: return each_process(sim, each, userdata);
	case DIRECTORY_PROCESS:
		r = each("pasid", TREE_TEXT, userdata);
		r = r < 0 ? r : each("queues", TREE_DIRECTORY, userdata);
		r = r < 0 ? r : each_gpu_file(place.process, each, userdata);
		r = r < 0 ? r : each_context(place.process, each, userdata);
		return r < 0 ? r : 0;
	case DIRECTORY_QUEUES: return each_queue(place.process, each, userdata);
	case DIRECTORY_QUEUE:
		for (size_t i = 0; i < ARRAY_SIZE(names) && r >= 0; i++)
			r = each(names[i], TREE_TEXT, userdata);
		return r < 0 ? r : 0;
	default: return -ENOTDIR;
	}
}

static uint64_t vram(const struct place *place)
{
	uint64_t bytes = 0;

	for (const struct sim_buffer *b = place->process->buffers; b; b = b->next)
		if (b->gpu_id == place->gpu->info.kfd_gpu_id && b->flags & ALLOC_VRAM)
			bytes += b->size;
	return bytes;
}

int proc_print(const struct sim *sim, const char *path, FILE *out)
{
	struct place place;
	int r;

	r = find_place(sim, path, &place);
	if (r < 0)
		return r;
	switch (place.file) {
	case PASID:
		fprintf(out, "%u\n", sim->kfd_minor < KFD_LINUX_7_2 ? mqd_pasid(place.process) : 0);
		return 0;
	case VRAM: fprintf(out, "%" PRIu64 "\n", vram(&place)); return 0;
	case QUEUE_GPU: fprintf(out, "%u", place.queue->gpu->info.kfd_gpu_id); return 0;
	case QUEUE_SIZE: fprintf(out, "%" PRIu64, place.queue->ring_size); return 0;
	case QUEUE_TYPE: fprintf(out, "%d", (int)place.queue->type); return 0;
	default: return -EISDIR;
	}
}
