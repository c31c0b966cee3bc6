/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/variables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

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

/* A UUID, because a container may see fewer GPUs and number them otherwise; the number where the GPU has none. place: in
 * the lease, of a simulated GPU. */
static void visible_name(uint32_t kfd_gpu_id, size_t place, char name[static 32])
{
	unsigned gpu = 0;

	for (unsigned node = 0; kfd_gpu_id > 0 && node < 1024; node++) {
		uint64_t id = read_node(node, "gpu_id", ""), unique;

		gpu += id > 0 && id != kfd_gpu_id;
		if (id != kfd_gpu_id)
			continue;
		unique = read_node(node, "properties", "unique_id ");
		if (unique > 0)
			snprintf(name, 32, "GPU-%016" PRIx64, unique);
		else
			snprintf(name, 32, "%u", gpu);
		return;
	}
	snprintf(name, 32, "%zu", place);
}

/* Without an effect where there is no room: 64 GPUs with masks of 64 words do not exist. */
__attribute__((format(printf, 2, 3))) static void add(char text[static OCI_VARIABLE],
						      const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, OCI_VARIABLE - used, format, args);
	va_end(args);
}

static void add_mask(char text[static OCI_VARIABLE], const struct oci_part *part)
{
	size_t words = part->words;

	while (words > 1 && part->mask[words - 1] == 0)
		words--;
	add(text, "0x%" PRIx32, words > 0 ? part->mask[words - 1] : 0);
	while (words-- > 1)
		add(text, "%08" PRIx32, part->mask[words - 1]);
}

/* One queue is ROCr's, and each masked stream has its own. */
static unsigned hip_queues(const struct oci_part *part)
{
	unsigned each = part->queues / max_u(part->processes, 1);

	return max_u(each - min_u(each, 1 + part->streams), 1);
}

void oci_variables_write(const struct oci_part *parts, size_t n, uint64_t lease,
			 char variables[static OCI_VARIABLES][OCI_VARIABLE])
{
	static const char *const starts[OCI_VARIABLES] = {
		"ROCR_VISIBLE_DEVICES=", "HSA_CU_MASK=",         "GPUARB_EFFECTIVE_CUS=",
		"GPUARB_LEASE=",         "GPU_MAX_HW_QUEUES=",   "HSA_CU_MASK_SKIP_INIT",
		"HIP_VISIBLE_DEVICES",   "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
	};
	unsigned queues = UINT32_MAX;
	char name[32];

	for (size_t i = 0; i < OCI_VARIABLES; i++)
		snprintf(variables[i], OCI_VARIABLE, "%s", starts[i]);
	for (size_t i = 0; i < n; i++) {
		visible_name(parts[i].kfd_gpu_id, i, name);
		add(variables[0], "%s%s", i > 0 ? "," : "", name);
		add(variables[1], "%s%zu:", i > 0 ? ";" : "", i);
		add_mask(variables[1], &parts[i]);
		add(variables[2], "%s%" PRIu32, i > 0 ? "," : "", parts[i].effective_cus);
		queues = min_u(queues, hip_queues(&parts[i]));
	}
	add(variables[3], "%" PRIu64, lease);
	add(variables[4], "%u", queues);
}
