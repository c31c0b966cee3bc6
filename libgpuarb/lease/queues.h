/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The compute queues of a process, as KFD lists them in sysfs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct queue {
	uint32_t id, kfd_gpu_id;
	uint64_t inode; /* of its directory: tells a queue from an earlier one with the same id */
};

struct queue_list {
	struct queue *queues;
	size_t n;
};

/* Reads SYS/class/kfd/kfd/proc/PID/queues, sorted by id. A process without KFD has no queues. The
 * caller frees ret->queues. A negative errno. */
int queues_read(const char *sys, pid_t pid, struct queue_list *ret);

bool queue_exists(const char *sys, pid_t pid, uint32_t id);

/* Whether this process is in the first PID namespace: sysfs uses the process ids of that one. */
bool queues_visible(void);
