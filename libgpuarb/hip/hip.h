/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/hip/gpuarb-hip.h"
#include "libgpuarb/hip/stream-plan.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))

/* A stream that was made here. */
struct hip_stream {
	hipStream_t stream;
	size_t partition;
	bool own;       /* has a mask of its own … */
	bool pooled;    /* … on a queue that HIP may share */
	uint32_t queue; /* with own: KFD's id of it, where that is known */
};

/* Goes with the lease. */
struct hip_lease {
	struct hip_stream *streams;
	size_t n;
};

/* Notes the sentence, and returns error. */
int hip_fail(struct gpuarb_lease *lease, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int hip_no_memory(struct gpuarb_lease *lease); /* -ENOMEM */

/* The same for a call of HIP that failed, and forgets HIP's own note of it. */
int hip_failed(struct gpuarb_lease *lease, const char *call, hipError_t error);

/* The value of a variable that is set to something, else NULL. */
const char *hip_variable(const char *name);

/* Partition i of a lease that is still there, on a real GPU. */
int hip_partition(struct gpuarb_lease *lease, size_t i, const struct gpuarb_partition **ret);

/* gpuarb_hip_device() for a partition that was looked up. */
int hip_find_device(struct gpuarb_lease *lease, const struct gpuarb_partition *partition, int *ret);

/* How many streams of partition i there are, or of them with a mask of their own. */
size_t hip_count(const struct hip_lease *hip, size_t i, bool own);

/* What is left there, with so many queues in this process; negative: they cannot be seen, and
 * are what was made here and ROCr's. */
void hip_budget(const struct hip_lease *hip, const struct gpuarb_partition *partition, size_t i,
		int queues, struct budget *ret);

/* A stream that is about to be made. */
struct creation {
	struct gpuarb_lease *lease;
	struct hip_lease *hip;
	const struct gpuarb_partition *partition;
	size_t i;
	int device;
	enum level level;
	bool wgps;  /* the GPU has its CUs in pairs */
	bool blind; /* the queues of this process cannot be seen */
	bool own;
	struct mask mask; /* what the queue is to have: KFD's bits */
	struct queue_set before, after, fresh;
};

/* ---- queue.c ---------------------------------------------------------------------------- */

/* The process's queues now. -EOPNOTSUPP: they cannot be seen. */
int queue_look(const struct creation *creation, struct queue_set *ret);

/* Where queues cannot be seen, or not be masked here, HIP's word must do: for a mask that it
 * passes on as it is, on a device that is the lease's without doubt. */
bool queue_may_be_blind(const struct creation *creation);

int queue_budget(const struct creation *creation);

/* Masks the queue that came, and what else came meanwhile; or fails. */
int queue_settle(const struct creation *creation, struct hip_stream *stream);
