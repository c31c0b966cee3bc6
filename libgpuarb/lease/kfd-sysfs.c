/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/kfd-sysfs.h"

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

#include "daemon/util/grow.h"
#include "libgpuarb/connection/basics.h"

#define ATTRIBUTE_MAX 4096U /* the longest sysfs attribute, with a NUL */
#define NODES_MAX 1024U
#define XCCS_MAX 64U

/* The inode of the first PID namespace in every kernel (PROC_PID_INIT_INO in proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

#define COMPUTE 0U /* KFD_QUEUE_TYPE_COMPUTE in kfd_priv.h; the ioctl has other numbers */

DEFINE_CLEANUP(DIR *, closedir)

/* Reads an attribute below the directory; buf ends with a NUL. */
static int attribute_read(int dir, const char *name, char buf[ATTRIBUTE_MAX])
{
	_cleanup_(close_fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + size, ATTRIBUTE_MAX - 1 - size);
		if (n > 0)
			size += (size_t)n;
	} while ((n > 0 && size < ATTRIBUTE_MAX - 1) || (n < 0 && errno == EINTR));
	buf[size] = '\0';
	return n < 0 ? -errno : 0;
}

/* The value in the line "NAME VALUE"; 0 without such a line. */
static unsigned long long property(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	}
	return 0;
}

static bool has_render_node(const char *dev, unsigned long long minor)
{
	char path[PATH_MAX];

	if (minor == 0) /* older kernels do not have the property */
		return true;
	snprintf(path, sizeof(path), "%s/dri/renderD%llu", dev, minor);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

/* False: the node is not a GPU that ROCm finds. */
static bool read_node(int nodes, unsigned number, const char *dev, struct topology_gpu *ret)
{
	char name[32], text[ATTRIBUTE_MAX];
	unsigned long gpu_id;

	snprintf(name, sizeof(name), "%u/gpu_id", number);
	if (attribute_read(nodes, name, text) < 0)
		return false;
	gpu_id = strtoul(text, NULL, 10);

	snprintf(name, sizeof(name), "%u/properties", number);
	if (gpu_id == 0 || attribute_read(nodes, name, text) < 0 ||
	    property(text, "simd_count") == 0 ||
	    !has_render_node(dev, property(text, "drm_render_minor")))
		return false;

	ret->kfd_gpu_id = (uint32_t)gpu_id;
	ret->unique_id = property(text, "unique_id");
	ret->gfx_target = (uint32_t)property(text, "gfx_target_version");
	ret->xccs = (uint32_t)property(text, "num_xcc");
	if (ret->xccs == 0 || ret->xccs > XCCS_MAX) /* kernels before 6.5 have no num_xcc */
		ret->xccs = 1;
	return true;
}

/* One more than the highest number of a node. */
static unsigned count_nodes(DIR *dir)
{
	unsigned count = 0;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		char *end;
		unsigned long number = strtoul(entry->d_name, &end, 10);

		if (end != entry->d_name && !*end && number < NODES_MAX && number >= count)
			count = (unsigned)number + 1;
	}
	return count;
}

int topology_read(const char *sys, const char *dev, struct topology *ret)
{
	struct topology topology = { NULL, 0 };
	char path[PATH_MAX];
	unsigned count;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology/nodes", sys);
	dir = opendir(path);
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : -ENODEV;

	count = count_nodes(dir);
	topology.gpus = calloc(count + 1, sizeof(*topology.gpus));
	for (unsigned i = 0; topology.gpus && i < count; i++)
		if (read_node(dirfd(dir), i, dev, &topology.gpus[topology.n]))
			topology.n++;
	closedir(dir);
	if (!topology.gpus)
		return -ENOMEM;
	*ret = topology;
	return 0;
}

const struct topology_gpu *topology_find(const struct topology *topology, uint32_t kfd_gpu_id)
{
	const struct topology_gpu *found = NULL;

	for (size_t i = 0; i < topology->n; i++) {
		if (topology->gpus[i].kfd_gpu_id != kfd_gpu_id)
			continue;
		if (found)
			return NULL;
		found = &topology->gpus[i];
	}
	return found;
}

/* ---- queues ------------------------------------------------------------------------------ */

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
	struct queue *added = grow(&list->queues, &list->n, sizeof(*added));

	if (!added)
		return -ENOMEM;
	*added = *queue;
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
		found.entries[found.n].next.mask.words = 0;
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

void mask_cache_resume(struct mask_cache *mask_cache, const struct driver *driver)
{
	for (size_t i = 0; i < mask_cache->n; i++) {
		struct mask_cache_entry *entry = &mask_cache->entries[i];

		if (entry->now.paused)
			(void)driver->set_turn(driver->userdata, -1, entry->queue.id, false,
					       entry->now.priority);
		entry->now.paused = false;
	}
}
