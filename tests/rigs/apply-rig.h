/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A process with queues on three GPUs, and a driver that takes masks for them: number 0 is a
 * Radeon VII, 1 an MI300X with 8 XCCs, 2 a V620, whose CUs come in pairs. The lease has a
 * partition on the first n of them.
 */

#include "libgpuarb/lease/apply.h"

#define APPLY_PID 4711
#define APPLY_QUEUES 32U
#define APPLY_GPUS 3U

struct apply_rig {
	char sys[64], dev[96];
	uint32_t gpu_ids[APPLY_GPUS];

	/* The lease and the handle. */
	struct gpuarb gpuarb;
	struct gpuarb_lease_info info;
	struct gpuarb_partition partitions[APPLY_GPUS];
	uint32_t masks[APPLY_GPUS][MASK_WORDS];
	struct mask_cache mask_cache;
	struct apply apply;

	/* The driver. */
	struct driver driver;
	struct mask has[APPLY_QUEUES]; /* words 0: never masked */
	unsigned opened, calls;
	int open_error;
	unsigned fail_at; /* this call (from 1) fails; 0: none */
	int fail_with;
	unsigned turns; /* calls that pause, resume or set the priority */
	int turn_error; /* of all of them */
	bool paused[APPLY_QUEUES];
	uint32_t priority[APPLY_QUEUES];
	bool writes_anyway; /* the mask is written nevertheless */
	unsigned vanish_at; /* before this call its queue goes away */

	/* The environment. */
	const char *hsa_mask, *global_mask, *lease;
};

void apply_rig_new(struct apply_rig *rig, size_t n);
void apply_rig_done(struct apply_rig *rig);

/* Internal types: 0 compute, 1 SDMA. */
void apply_rig_queue(struct apply_rig *rig, unsigned id, unsigned gpu, unsigned type);
void apply_rig_queue_gone(struct apply_rig *rig, unsigned id);

/* The low words of a partition's mask; the rest is 0. */
void apply_rig_mask(struct apply_rig *rig, unsigned gpu, uint32_t word0, uint32_t word1);

/* Whether the queue has just these low words, or was never masked or has every CU. */
bool apply_rig_has(const struct apply_rig *rig, unsigned id, uint32_t word0, uint32_t word1);
bool apply_rig_free(const struct apply_rig *rig, unsigned id);

int apply_rig_apply(struct apply_rig *rig);
int apply_rig_own(struct apply_rig *rig, unsigned gpu, unsigned id, const uint32_t *mask,
		  size_t words);

/* Whether the last failure is said in a sentence that has these words. */
bool apply_rig_said(const struct apply_rig *rig, const char *words);
