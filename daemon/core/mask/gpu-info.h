/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What hardware, or a profile that stands in for it, says of one GPU. A plain value. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/geometry.h"
#include "core/mask/law.h"

#define GPU_NAME_MAX 32U
#define GPU_DEVICE_MAX 64U

/* The default of amdgpu.queue_preemption_timeout_ms (amdgpu_drv.c, Linux 6.12). */
#define PREEMPTION_MSEC 9000U

enum scheduler {
	SCHEDULER_UNKNOWN,
	SCHEDULER_HWS,        /* sched_policy 0: firmware, may oversubscribe */
	SCHEDULER_HWS_STRICT, /* sched_policy 1: the kernel refuses surplus queues */
	SCHEDULER_NONE,       /* sched_policy 2: no firmware scheduler */
	SCHEDULER_MES,        /* gfx11 and later */
};

/* The schema of the report of gpuarbctl calibrate. Every change of what a member means is a new version. */
#define CALIBRATION_SCHEMA "gpuarb-calibration"
#define CALIBRATION_VERSION 1U
#define CALIBRATION_NEIGHBOURS 3U /* at most, in a row of interference */
#define CALIBRATION_ROUNDS 5U     /* of each such row */

/* What the owner of a GPU measured on it with gpuarbctl calibrate; its law is in gpu_info.law. */
#define CALIBRATED_SLOWDOWNS 16U

struct calibrated {
	char date[sizeof("2026-11-23")]; /* "": the GPU was not calibrated */
	char problem[160];               /* why there is a report that is not believed; "": none */
	unsigned preemption_usec; /* that one change of a mask stops other queues; 0: unknown */
	struct slowdown slowdowns[CALIBRATED_SLOWDOWNS];
	size_t n_slowdowns;
};

struct gpu_info {
	/* Stable over reboots and partition modes: "0000:03:00.0", "0000:03:00.0/2". */
	char name[GPU_NAME_MAX];
	char device[GPU_DEVICE_MAX]; /* "Radeon VII", or "1002:66af" */
	unsigned gfx_target;         /* as KFD writes it: 90006 is gfx906, 110501 gfx1151 */
	uint32_t kfd_gpu_id;         /* changes with the partition mode; 0: simulated */
	struct geometry geometry;
	bool harvest_known; /* false: active[] is a guess */
	bool guessed;       /* on a real GPU: a mask may have CUs of other engines than it says */
	bool whole_only;    /* so is the number of CUs: only all of them can be granted */
	struct law law;
	struct calibrated calibrated;
	unsigned queue_slots;   /* num_cp_queues: HQDs that KFD owns */
	unsigned process_slots; /* VMIDs that KFD owns */
	unsigned pipes, queues_per_pipe;
	unsigned sdma_queues;      /* of the engines for PCIe */
	unsigned sdma_xgmi_queues; /* of those for XGMI: the driver has two pools */
	uint64_t vram_bytes;
	bool system_memory; /* vram_bytes is what it may have of the memory of the machine */
	enum scheduler scheduler;
	unsigned preemption_msec; /* queue_preemption_timeout_ms; 0: PREEMPTION_MSEC */
	unsigned reserve_queues;  /* a profile's advice; the configuration overrides */
	unsigned memory; /* the part of the memory of its card (NPS) that it uses, from 0 on */
	bool switches;   /* its card has several compute partition modes */
	bool drm_queues; /* programs can have user queues of the graphics driver */
};

/* The name of GPU `partition` of a simulated card with so many: 0000:03:00.0 is the first card. */
void gpu_info_name_simulated(struct gpu_info *info, unsigned card, unsigned partition,
			     unsigned partitions);

/* Do both use one memory, as partitions of one card do (a GPU with itself, too)? */
bool gpu_info_share_memory(const struct gpu_info *a, const struct gpu_info *b);

/* All that leases depend on. */
bool gpu_info_same(const struct gpu_info *a, const struct gpu_info *b);

/* How many effective CUs a mask of so many CUs has at the least, whichever CUs of the GPU are fused off. effective: with
 * the CUs that gpu_info assumes. A mask of all CUs does not depend on that. */
unsigned gpu_info_promised(const struct gpu_info *info, unsigned cus, unsigned effective);

#define GPU_GAPS 7U
/* What a CU mask does not isolate on this GPU, as words of the bus contract. Returns how many. */
size_t gpu_info_gaps(const struct gpu_info *info, const char *ret[static GPU_GAPS]);

/* "gfx906" for 90006, "gfx90a" for 90010. Writes at most size bytes, always a NUL. */
void gpu_info_target_name(unsigned gfx_target, char *buf, unsigned size);

/* The reverse; 0: no such name. */
unsigned gpu_info_target_from_name(const char *name);

/* unknown hws hws-strict none mes, by enum scheduler; NULL after the last. */
extern const char *const scheduler_names[];
int scheduler_from_name(const char *name); /* -EINVAL */
