/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The compute queues of one process on the GPUs of its lease, and their states. */

#include <stddef.h>

#include "libgpuarb/agent/link.h"
#include "libgpuarb/lease/kfd-ioctl.h"

struct queue_set_queue {
	uint32_t id, kfd_gpu_id;
	struct mask own; /* what the program asked for; no words: nothing */
	struct queue_state now;
};

struct queue_set {
	struct agent_grant grant; /* generation 0: none yet */
	struct queue_set_queue *queues;
	size_t n;

	const struct driver *driver;
};

void queue_set_clear(struct queue_set *queue_set);

/* Adds a new queue and sets its state; ignores queues on other GPUs. On failure the queue is not
 * added. -ENOMEM, or an errno of the driver. */
int queue_set_add(struct queue_set *queue_set, int fd, uint32_t id, uint32_t kfd_gpu_id);

/* The program asks for a mask: sets the CUs of it that are granted. -ENOENT: no queue of the
 * set. */
int queue_set_mask(struct queue_set *queue_set, int fd, uint32_t id, const struct mask *own);

void queue_set_remove(struct queue_set *queue_set, uint32_t id);

/* Takes the grant over and sets the state of every queue. Continues after a failure and returns the first. */
int queue_set_follow(struct queue_set *queue_set, int fd, const struct agent_grant *grant);
