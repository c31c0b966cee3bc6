/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Properties that are not listed are none of our business: each release adds some. */
static const struct {
	const char *name;
	uint64_t max;
	bool required;
} keys[KFD_KEYS] = {
	[KFD_SIMD_COUNT] = { "simd_count", 65536, true },
	[KFD_SIMD_PER_CU] = { "simd_per_cu", 64, true },
	[KFD_SIMD_ID_BASE] = { "simd_id_base", UINT32_MAX, false },
	[KFD_ARRAY_COUNT] = { "array_count", 65536, true },
	[KFD_ARRAYS_PER_ENGINE] = { "simd_arrays_per_engine", 65536, true },
	[KFD_CU_PER_ARRAY] = { "cu_per_simd_array", 65536, true },
	[KFD_XCCS] = { "num_xcc", 64, false },
	[KFD_TARGET] = { "gfx_target_version", 999999, false },
	[KFD_VENDOR] = { "vendor_id", UINT16_MAX, false },
	[KFD_DEVICE] = { "device_id", UINT16_MAX, false },
	[KFD_LOCATION] = { "location_id", UINT32_MAX, true },
	[KFD_DOMAIN] = { "domain", UINT32_MAX, false },
	[KFD_SDMA_ENGINES] = { "num_sdma_engines", 256, false },
	[KFD_SDMA_XGMI_ENGINES] = { "num_sdma_xgmi_engines", 256, false },
	[KFD_SDMA_QUEUES] = { "num_sdma_queues_per_engine", 256, false },
	[KFD_CP_QUEUES] = { "num_cp_queues", 1024, false },
};

static int bad_property(const struct kfd_node *node, const char *key, int error,
			struct diagnostics *diagnostics)
{
	diagnostics_add(diagnostics, true, "%s/properties: %s: %s; this GPU is left out",
			node->path, key, kfd_trouble(error));
	return error;
}

static int read_values(struct kfd_node *node, const char *text, struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < KFD_KEYS; i++) {
		int r = kfd_property_number(text, keys[i].name, keys[i].max, &node->value[i]);

		if (r == -ENODATA && !keys[i].required)
			continue;
		if (r < 0)
			return bad_property(node, keys[i].name, r, diagnostics);
		node->has[i] = true;
	}
	return 0;
}

/* amdgpu calls all parts that it finds by the discovery table "ip discovery": no name. */
static void read_name(const struct kfd_dir *dir, struct kfd_node *node)
{
	char text[sizeof(node->name)];

	if (kfd_read(dir, "name", text, sizeof(text)) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, "ip discovery") == 0)
		return;
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return;
	memcpy(node->name, text, sizeof(text));
}

/* Linux before 5.15 or so does not tell the target. The name does for the parts that it
 * knew. */
static int find_target(struct kfd_node *node, struct diagnostics *diagnostics)
{
	if (node->value[KFD_TARGET] != 0)
		return 0;

	node->value[KFD_TARGET] = kfd_target_from_name(node->name);
	if (node->value[KFD_TARGET] == 0)
		return bad_property(node, keys[KFD_TARGET].name, -ENODATA, diagnostics);

	diagnostics_add(diagnostics, false,
			"%s/properties: gfx_target_version: missing; taken from the name "
			"\"%s\"",
			node->path, node->name);
	return 0;
}

/* Where the driver splits one PCI device into several nodes, it ORs the node's number into
 * location_id: into the bits of the function (kfd_topology_add_device() in kfd_topology.c,
 * Linux 6.5 and later), or into bits 31:28 (its commit 925c7bd1d1cf, since reverted). */
static void find_partition(struct kfd_node *node)
{
	uint64_t location = node->value[KFD_LOCATION];

	if (!kfd_target_splits((unsigned)node->value[KFD_TARGET]))
		return;
	node->partition = (unsigned)(location >> 28 ? location >> 28 : location & 7);
	node->partitioned = node->partition != 0;
}

static int read_gpu(const struct kfd_dir *dir, struct kfd_node *node,
		    struct diagnostics *diagnostics)
{
	char text[KFD_TEXT];
	int r;

	r = kfd_read(dir, "properties", text, sizeof(text));
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s/properties: %s; this GPU is left out",
				dir->path, kfd_trouble(r));
		return r;
	}
	r = read_values(node, text, diagnostics);
	if (r < 0)
		return r;
	if (node->value[KFD_SIMD_COUNT] == 0)
		return 0;

	read_name(dir, node);
	r = find_target(node, diagnostics);
	if (r < 0)
		return r;
	find_partition(node);
	return 1;
}

int kfd_node_read(const struct kfd_dir *dir, struct kfd_node *ret, struct diagnostics *diagnostics)
{
	struct kfd_node node = { 0 };
	uint64_t gpu_id;
	int r;

	memcpy(node.path, dir->path, sizeof(node.path));
	r = kfd_read_number(dir, "gpu_id", UINT32_MAX, &gpu_id);
	if (r == -ENOENT || (r == 0 && gpu_id == 0))
		return 0; /* CPUs and their memory */
	if (r < 0) {
		diagnostics_add(diagnostics, true, "%s/gpu_id: %s; this node is left out",
				dir->path, kfd_trouble(r));
		return r;
	}
	node.gpu_id = (uint32_t)gpu_id;

	r = read_gpu(dir, &node, diagnostics);
	if (r > 0)
		*ret = node;
	return r;
}

static uint64_t slot(const struct kfd_node *node)
{
	return node->value[KFD_DOMAIN] << 16 | (node->value[KFD_LOCATION] & 0xfff8);
}

bool kfd_node_same_device(const struct kfd_node *a, const struct kfd_node *b)
{
	return slot(a) == slot(b) && kfd_target_splits((unsigned)a->value[KFD_TARGET]) &&
	       kfd_target_splits((unsigned)b->value[KFD_TARGET]);
}

void kfd_node_name(const struct kfd_node *node, char *buf, size_t size)
{
	unsigned location = (unsigned)node->value[KFD_LOCATION];
	unsigned function = location & 7;
	int n;

	/* The bits of the function are the partition's then. */
	if (node->partition == function)
		function = 0;
	n = snprintf(buf, size, "%04x:%02x:%02x.%x", (unsigned)node->value[KFD_DOMAIN],
		     location >> 8 & 0xff, location >> 3 & 0x1f, function);
	if (node->partitioned && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "/%u", node->partition);
}
