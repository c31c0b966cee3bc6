/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/queues.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libgpuarb/connection/basics.h"
#include "libgpuarb/lease/topology.h"

/* The inode of the first PID namespace in every kernel (PROC_PID_INIT_INO in proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

#define COMPUTE 0U /* KFD_QUEUE_TYPE_COMPUTE in kfd_priv.h; the ioctl has other numbers */

DEFINE_CLEANUP(DIR *, closedir)

/* A decimal number and nothing else. The driver writes these files without a newline. */
static int parse_number(const char *text, uint32_t *ret)
{
	unsigned long long number;
	char *end;

	if (*text < '0' || *text > '9')
		return -EIO;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || number > UINT32_MAX || (*end && strcmp(end, "\n") != 0))
		return -EIO;
	*ret = (uint32_t)number;
	return 0;
}

static int read_number(int queues, const char *queue, const char *file, uint32_t *ret)
{
	char name[NAME_MAX + 16], text[ATTRIBUTE_MAX];
	int r;

	snprintf(name, sizeof(name), "%s/%s", queue, file);
	r = attribute_read(queues, name, text);
	return r < 0 ? r : parse_number(text, ret);
}

/* 1: a compute queue. 0: another type, or a queue that was destroyed meanwhile. */
static int read_queue(int queues, const struct dirent *entry, struct queue *ret)
{
	uint32_t type;
	int r;

	r = parse_number(entry->d_name, &ret->id);
	if (r < 0)
		return 0;

	ret->inode = entry->d_ino;
	r = read_number(queues, entry->d_name, "type", &type);
	if (r >= 0 && type != COMPUTE)
		return 0;
	if (r >= 0)
		r = read_number(queues, entry->d_name, "gpuid", &ret->kfd_gpu_id);
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	return r < 0 ? r : 1;
}

static int append(struct queue_list *list, const struct queue *queue)
{
	struct queue *queues = realloc(list->queues, (list->n + 1) * sizeof(*queues));

	if (!queues)
		return -ENOMEM;
	list->queues = queues;
	list->queues[list->n++] = *queue;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct queue *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void path_of(const char *sys, pid_t pid, const char *rest, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/class/kfd/kfd/proc/%d/queues%s", sys, (int)pid, rest);
}

int queues_read(const char *sys, pid_t pid, struct queue_list *ret)
{
	struct queue_list list = { NULL, 0 };
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_MAX];
	int r = 0;

	path_of(sys, pid, "", path);
	dir = opendir(path);
	if (!dir && errno != ENOENT)
		return -errno;

	while (dir && r >= 0 && (entry = readdir(dir))) {
		struct queue queue;

		r = read_queue(dirfd(dir), entry, &queue);
		if (r > 0)
			r = append(&list, &queue);
	}
	if (r < 0) {
		free(list.queues);
		return r;
	}
	if (list.n > 0)
		qsort(list.queues, list.n, sizeof(*list.queues), by_id);
	*ret = list;
	return 0;
}

bool queue_exists(const char *sys, pid_t pid, uint32_t id)
{
	char path[PATH_MAX], rest[32];

	snprintf(rest, sizeof(rest), "/%" PRIu32, id);
	path_of(sys, pid, rest, path);
	return access(path, F_OK) == 0;
}

bool queues_visible(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE;
}

/* ---- mask cache -------------------------------------------------------------------------- */

/* The partition on the queue's GPU, or n. */
static size_t find_partition(const struct queue *queue, const struct gpuarb_partition *partitions,
			     size_t n)
{
	size_t i = 0;

	while (i < n && partitions[i].kfd_gpu_id != queue->kfd_gpu_id)
		i++;
	return i;
}

static const struct mask_cache_entry *find_same(const struct mask_cache *mask_cache,
						const struct queue *queue)
{
	for (size_t i = 0; i < mask_cache->n; i++) {
		const struct queue *known = &mask_cache->entries[i].queue;

		if (known->id == queue->id && known->kfd_gpu_id == queue->kfd_gpu_id &&
		    known->inode == queue->inode)
			return &mask_cache->entries[i];
	}
	return NULL;
}

int mask_cache_refresh(struct mask_cache *mask_cache, const struct queue_list *list,
		       const struct gpuarb_partition *partitions, size_t n)
{
	struct mask_cache found = { calloc(list->n + 1, sizeof(*found.entries)), 0 };

	if (!found.entries)
		return -ENOMEM;

	for (size_t i = 0; i < list->n; i++) {
		const struct queue *queue = &list->queues[i];
		size_t partition = find_partition(queue, partitions, n);
		const struct mask_cache_entry *known = find_same(mask_cache, queue);

		if (partition == n)
			continue;
		if (known)
			found.entries[found.n] = *known;
		found.entries[found.n].queue = *queue;
		found.entries[found.n].partition = partition;
		found.entries[found.n].next.words = 0;
		found.n++;
	}
	mask_cache_clear(mask_cache);
	*mask_cache = found;
	return 0;
}

void mask_cache_clear(struct mask_cache *mask_cache)
{
	free(mask_cache->entries);
	*mask_cache = (struct mask_cache){ NULL, 0 };
}

struct mask_cache_entry *mask_cache_find(struct mask_cache *mask_cache, size_t partition,
					 uint32_t id)
{
	for (size_t i = 0; i < mask_cache->n; i++)
		if (mask_cache->entries[i].partition == partition &&
		    mask_cache->entries[i].queue.id == id)
			return &mask_cache->entries[i];
	return NULL;
}
