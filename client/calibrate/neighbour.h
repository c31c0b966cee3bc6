/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes that run kernels beside those that are measured. */

#include <sys/types.h>

#include "client/calibrate/calibration.h"
#include "client/latency/bench.h"

#define NEIGHBOUR_START_MS 60000 /* HIP starts, and compiles */

struct neighbour {
	pid_t pid;
	int fd;
};

struct neighbour_list {
	uint64_t lease;
	const struct model *model;
	const struct stop *stop;
	bool emulated;
	struct neighbour list[CALIBRATION_NEIGHBOURS];
	unsigned n;
};

/* Functions of struct partners; data is struct neighbour_list. start(): -ECHILD: one has ended; -ETIMEDOUT; a stop's
 * error. stop() waits until all have ended. */
int neighbours_start(void *data, const struct work *work, const struct cuset *sets, unsigned n);
int neighbours_check(void *data);
void neighbours_stop(void *data);

/* The program of such a process: words are the number of the lease, the kind or the threads, and the mask. */
int neighbour_run(struct command *command, struct bench *bench);

/* What both forms of calibrate measure with: a run whose partners are processes of gpuarbctl under the lease of the
 * bench. The members point at each other: do not copy it. The caller sets run.waves. calibrate.c. */
struct calibrate_work {
	struct neighbour_list neighbours;
	struct partners partners;
	struct calibration_run run;
};

void calibrate_work_init(const struct command *command, struct bench *bench,
			 struct calibration *calibration, struct calibrate_work *ret);
