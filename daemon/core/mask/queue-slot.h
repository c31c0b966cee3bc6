/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A hardware queue slot of KFD, of a compute pipe (HQD) or of an SDMA engine (RLC), as the registers of the
 * GPU show it at one moment. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/codec.h"

struct queue_slot {
	uint32_t kfd_gpu_id;
	bool sdma; /* then pipe is the number of the engine, and xcc and priority are 0 */
	unsigned xcc, pipe, queue; /* queue: the number of the slot in its pipe */
	bool active;               /* a queue is in it; the rest is 0 if not */
	unsigned vmid, priority;
	uint32_t doorbell; /* identifies the queue on its GPU */

	/* Of the process whose queue it is; pid 0: no descriptor has this doorbell. */
	pid_t pid;
	uint64_t lease; /* 0: none */
	char command[16];
};

/* Sets the pid of every active slot: of the queue of its kind on the same GPU with the same doorbell. Sorts
 * queues[] by these. */
void queue_slots_join(struct queue_slot *slots, size_t n, struct observed_mask *queues,
		      size_t n_queues);

/* The pipes of the GPU and the queue slots of each, as far as KFD's slots show: it has the last ones of
 * every pipe. false: no slot of this GPU is listed. */
bool queue_slots_shape(const struct queue_slot *slots, size_t n, uint32_t kfd_gpu_id,
		       unsigned *ret_pipes, unsigned *ret_queues);

/* The compute queues on the GPU, and how many of them are in no slot of its first XCC: they wait for
 * the scheduler, or are inactive. */
void queue_slots_count(const struct queue_slot *slots, size_t n, const struct observed_mask *queues,
		       size_t n_queues, uint32_t kfd_gpu_id, unsigned *ret_queues,
		       unsigned *ret_without);
