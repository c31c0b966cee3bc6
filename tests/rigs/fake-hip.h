/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * HIP and a lease as libgpuarb-hip sees them, made of a few numbers: what it calls is defined
 * here, and the real libraries are not linked.
 */

#include <hip/hip_runtime_api.h>

#include "libgpuarb/gpuarb.h"

#define FAKE_DEVICES 4
#define FAKE_QUEUES 32
#define FAKE_WORDS 32

struct fake_queue {
	bool there;
	int device;
	int priority; /* of HIP; of the runtime's own: 0 */
	bool pooled;
	unsigned masked; /* how many times */
	uint32_t mask[FAKE_WORDS];
};

struct fake_hip {
	/* HIP. */
	int devices, version, major;
	const char *addresses[FAKE_DEVICES];
	int current;                           /* device of the calling thread */
	bool wgp_bits;                         /* doubles the bits of masks */
	int arena;                             /* GPU_MAX_HW_QUEUES */
	bool keeps;                            /* queues of destroyed streams that are not pooled */
	int lands_on;                          /* queues come on this device instead; -1 */
	int unmanaged_processes;               /* so many queues come along with the next stream */
	const char *fails;                     /* the call that fails … */
	hipError_t error;                      /* … with this */
	unsigned oom;                          /* so many creations of a masked stream fail */
	unsigned creations;                    /* streams asked for */
	unsigned streams;                      /* and alive */
	struct fake_queue queues[FAKE_QUEUES]; /* by KFD's ids */

	/* The lease: one partition, on lease_device. */
	struct gpuarb_partition partition;
	uint32_t mask[FAKE_WORDS];
	size_t partitions;
	const char *state;
	int lease_device, gone, blind, mask_fails, apply_fails, look_fails_after;
	unsigned looks, applied, forgotten;
	char sentence[512];
	void *attached;
	void (*done)(void *data);
};

extern struct fake_hip fake;

/* Anew: one GPU with CUs 0 to 59, all of them the lease's, four queues for one process. */
void fake_start(void);

/* The lease is closed: what is attached to it is done with. */
void fake_end(void);

/* The only queue that has this very mask of one word, or NULL. */
const struct fake_queue *fake_masked(uint32_t mask);

/* The lease as libgpuarb-hip has it. */
struct gpuarb_lease *fake_lease(void);
