/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One GPU: a node of the topology of KFD. */

#include <stdbool.h>
#include <stdint.h>

#include "core/mask/gpu-info.h"
#include "hw/kfd-read.h"
#include "util/diagnostics.h"

/* The used numbers of nodes/N/properties. */
enum kfd_key {
	KFD_CPU_CORES,
	KFD_SIMD_COUNT,
	KFD_SIMD_PER_CU,
	KFD_SIMD_ID_BASE,
	KFD_ARRAY_COUNT,
	KFD_ARRAYS_PER_ENGINE,
	KFD_CU_PER_ARRAY,
	KFD_XCCS,
	KFD_TARGET,
	KFD_VENDOR,
	KFD_DEVICE,
	KFD_LOCATION,
	KFD_DOMAIN,
	KFD_SDMA_ENGINES,
	KFD_SDMA_XGMI_ENGINES,
	KFD_SDMA_QUEUES,
	KFD_CP_QUEUES,
	KFD_RENDER_MINOR,
	KFD_KEYS,
};

struct kfd_node {
	uint32_t gpu_id;
	char name[32];  /* of nodes/N/name; "": unknown */
	char path[512]; /* for diagnostics */
	unsigned partition;
	bool partitioned; /* it is one of several nodes of its PCI device */
	bool function;    /* its location has a function, not the number of a partition */
	bool has[KFD_KEYS];
	uint64_t value[KFD_KEYS];
};

/* Returns 1 for a GPU, 0 for a node without one, a negative errno with a diagnostic. */
int kfd_node_read(const struct kfd_dir *dir, struct kfd_node *ret, struct diagnostics *diagnostics);

/* Whether both are partitions of one PCI device. */
bool kfd_node_same_device(const struct kfd_node *a, const struct kfd_node *b);

/* Of module/amdgpu/parameters. */
struct kfd_parameters {
	enum scheduler scheduler;
	unsigned max_processes;   /* hws_max_conc_proc; UINT_MAX: no limit */
	unsigned preemption_msec; /* queue_preemption_timeout_ms; 0: unknown */
	bool drm_queues;          /* user_queue enables user queues of the graphics driver */
};

/* Whether CUs of the GPU are fused off and the caches in sysfs do not show which. ret: the geometry, with the working
 * CUs spread evenly. */
bool kfd_gpu_hides_harvest(const struct kfd_node *node, struct geometry *ret);

/* Reads a GPU, except its name and how it is scheduled. maps: a directory with a file for each GPU that hides its
 * harvest, its gpu_id: the CUs that work, of each array of each engine. A negative errno with a diagnostic if it has
 * to be left out, or kfd_is_lacking(). */
int kfd_gpu_read(const struct kfd_dir *dir, const struct kfd_node *node, const char *maps,
		 struct gpu_info *ret, struct diagnostics *diagnostics);

/* Fills in the rest, when it is known whether the node is a partition. */
void kfd_gpu_finish(const struct kfd_node *node, const struct kfd_parameters *parameters,
		    struct gpu_info *info);
