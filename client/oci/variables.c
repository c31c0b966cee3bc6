/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/lease/program-variables.h"
#include "util/base.h"
#include "util/text-stream.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define NODES_MAX 1024U

/* One line "NAME VALUE" of the properties of a node, or the only number of its file gpu_id. */
static uint64_t read_node(unsigned node, const char *file, const char *name)
{
	_cleanup_(freep) char *line = NULL;
	char path[128];
	uint64_t value = 0;
	size_t size = 0, n = strlen(name);
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%u/%s", node, file);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0)
		if (strncmp(line, name, n) == 0)
			value = strtoull(line + n, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

uint32_t oci_render_minor(uint32_t kfd_gpu_id)
{
	for (unsigned node = 0; kfd_gpu_id > 0 && node < NODES_MAX; node++)
		if (read_node(node, "gpu_id", "") == kfd_gpu_id)
			return (uint32_t)read_node(node, "properties", "drm_render_minor ");
	return 0;
}

/* A UUID, because a container may see fewer GPUs and number them otherwise; the number where the GPU has none. place: in
 * the lease, of a simulated GPU. */
static void visible_name(uint32_t kfd_gpu_id, size_t place, char name[static VARIABLES_NAME])
{
	unsigned gpu = 0;

	for (unsigned node = 0; kfd_gpu_id > 0 && node < NODES_MAX; node++) {
		uint64_t id = read_node(node, "gpu_id", ""), unique;

		gpu += id > 0 && id != kfd_gpu_id;
		if (id != kfd_gpu_id)
			continue;
		unique = read_node(node, "properties", "unique_id ");
		if (unique > 0)
			snprintf(name, VARIABLES_NAME, "GPU-%016" PRIx64, unique);
		else
			snprintf(name, VARIABLES_NAME, "%u", gpu);
		return;
	}
	snprintf(name, VARIABLES_NAME, "%zu", place);
}

/* One queue is ROCr's, and each masked stream has its own. */
static unsigned hip_queues(const struct gpuarb_partition *part)
{
	unsigned each = part->queues / max_u(part->processes, 1);

	return max_u(each - min_u(each, 1 + part->streams), 1);
}

char *oci_variables(const struct gpuarb_partition *parts, size_t n, uint64_t lease)
{
	_cleanup_(freep) char(*items)[VARIABLES_NAME] = calloc(n, sizeof(*items));
	struct text_stream stream;
	unsigned queues = UINT32_MAX;
	FILE *file = items ? text_stream_open(&stream) : NULL;

	if (!file)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		visible_name(parts[i].kfd_gpu_id, i, items[i]);
		queues = min_u(queues, hip_queues(&parts[i]));
	}
	(void)variables_write(parts, n, items, lease, queues, file);
	return text_stream_close(&stream);
}
