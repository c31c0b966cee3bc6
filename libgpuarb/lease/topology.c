/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuarb/connection/basics.h"

#define NODES_MAX 1024U
#define XCCS_MAX 64U

int attribute_read(int dir, const char *name, char buf[ATTRIBUTE_MAX])
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + size, ATTRIBUTE_MAX - 1 - size);
		if (n > 0)
			size += (size_t)n;
	} while ((n > 0 && size < ATTRIBUTE_MAX - 1) || (n < 0 && errno == EINTR));
	r = n < 0 ? -errno : 0;
	close_fd(&fd);
	buf[size] = '\0';
	return r;
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
