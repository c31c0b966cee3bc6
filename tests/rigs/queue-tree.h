/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What sysfs shows of GPU 7 and of the compute queues that process 5 has on it, in a directory
 * of their own; scratch_done() ends it. */

#include "scratch.h"

static inline void queue_tree_add(const struct scratch *tree, unsigned queue)
{
	char name[64];

	snprintf(name, sizeof(name), "class/kfd/kfd/proc/5/queues/%u", queue);
	scratch_mkdir(tree, name);
	snprintf(name, sizeof(name), "class/kfd/kfd/proc/5/queues/%u/gpuid", queue);
	scratch_write(tree, name, "7");
	snprintf(name, sizeof(name), "class/kfd/kfd/proc/5/queues/%u/type", queue);
	scratch_write(tree, name, "0");
}

static inline struct scratch queue_tree_new(unsigned queues)
{
	static const char *const directories[] = {
		"class",
		"class/kfd",
		"class/kfd/kfd",
		"class/kfd/kfd/topology",
		"class/kfd/kfd/topology/nodes",
		"class/kfd/kfd/topology/nodes/1",
		"class/kfd/kfd/proc",
		"class/kfd/kfd/proc/5",
		"class/kfd/kfd/proc/5/queues",
	};
	struct scratch tree = scratch_new();

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		scratch_mkdir(&tree, directories[i]);
	scratch_write(&tree, "class/kfd/kfd/topology/nodes/1/gpu_id", "7");
	scratch_write(&tree, "class/kfd/kfd/topology/nodes/1/properties", "simd_count 240\n");
	for (unsigned i = 0; i < queues; i++)
		queue_tree_add(&tree, i);
	return tree;
}
