/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was and is, for debug/kfdsim/state: kept by state.c, printed by state-json.c. */

#include "kfdsim/driver/internal.h"

#define STATE_PROCESSES 256U
#define STATE_QUEUES 4096U
#define STATE_MASKS 256U /* of one queue */
#define STATE_DISPATCHES 16384U

struct state_queue {
	const struct sim_queue *live; /* NULL: gone */
	struct sim_queue last;        /* gone: as it was; its process and next are none */
	char **masks;                 /* every mask set, in order, as "0x…" */
	size_t n_masks;
	unsigned changes;         /* as of the last of them */
	struct state_queue *next; /* made after it */
};

struct state_process {
	uint64_t serial;
	pid_t pid;
	char command[32];
	unsigned made, now, peak; /* queues ever; compute queues; most of those at a time */
	unsigned gpu_now[SIM_GPUS_MAX], gpu_peak[SIM_GPUS_MAX];
	struct state_queue *queues;
	struct state_process *next; /* came after it */
};

struct state_dispatch {
	pid_t pid;
	unsigned queue, gpu;
	uint32_t blocks, threads;
	uint64_t began, ns;
};

struct sim_record {
	struct state_process *processes;
	unsigned n_processes, n_queues;
	uint64_t forgotten; /* processes and queues that were dropped, or for which memory lacked */
	struct state_dispatch *dispatches; /* the latest; with --timing alone, else NULL */
	uint64_t n_dispatches;             /* ever */
};

/* Has not ended. */
bool state_alive(const struct sim *sim, const struct state_process *process);

/* "0x300ff00ff": bit 0 is the last. NULL: no memory. */
char *state_mask(const uint32_t *mask, unsigned bits);
