/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The compute queues of one process, each of which has what the lease grants it. */

#include <stddef.h>

#include "libgpuarb/agent/message.h"

struct queue_set_queue {
	uint32_t id, kfd_gpu_id;
	struct mask own; /* what the program wants of it; none: anything */
	struct mask now; /* what was set last; none: it is new */
};

struct queue_set {
	struct agent_grant grant; /* generation 0: it is not known yet */
	struct queue_set_queue *queues;
	size_t n;

	/* Asks the driver on an fd of this process. A negative errno. */
	int (*set_mask)(int fd, uint32_t queue, const struct mask *mask, void *userdata);
	void *userdata;
};

void queue_set_clear(struct queue_set *queue_set); /* as at first */

/* A queue was made, and has its mask when this returns 0. Otherwise it is not known here. Those of
 * GPUs that are not the lease's are left alone. -ENOMEM, or the driver's refusal. */
int queue_set_made(struct queue_set *queue_set, int fd, uint32_t id, uint32_t kfd_gpu_id);

/* The program asks for a mask; what the grant has of it is set. -ENOENT: not a queue of ours. */
int queue_set_asked(struct queue_set *queue_set, int fd, uint32_t id, const struct mask *own);

void queue_set_gone(struct queue_set *queue_set, uint32_t id);

/* Gives every queue the grant's masks, past those that are refused; the first refusal. */
int queue_set_follow(struct queue_set *queue_set, int fd, const struct agent_grant *grant);
