/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What processes were seen to do with the GPUs, and whose they are. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OBSERVED_ANCESTORS 32U

/* One process on one GPU, as hw saw it, with what /proc says of it. */
struct observed {
	pid_t pid;
	uint64_t start_time; /* tells a reused pid; 0: gone already */
	uid_t uid;           /* (uid_t) -1: unknown */
	char command[16];
	pid_t ancestors[OBSERVED_ANCESTORS]; /* parent first */
	size_t n_ancestors;
	char unit[128]; /* "": unknown */

	uint32_t kfd_gpu_id;
	unsigned queues, sdma_queues;
	uint64_t vram;
};
