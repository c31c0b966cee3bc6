/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A measurement: its lease, the device, and what ends it early. */

#include "client/latency/device.h"
#include "client/options/options.h"
#include "client/output/model.h"

/* Ends a measurement early: a signal, or a change of the lease. */
struct watch {
	int signals;
	struct gpuarb_lease *lease;
	uint64_t generation;
};

struct bench {
	struct gpuarb_lease *lease;
	struct watch watch;
	struct stop stop;
	size_t partition; /* of the lease, whose GPU is measured */
	struct device device;
	const struct gpuarb_gpu *gpu;
	struct model model;
};

#define BENCH_INIT                   \
	{                            \
		.watch.signals = -1, \
	}

/* These print what failed and return the exit code. */

/* Reserves all CUs of a GPU, and so many streams for each of so many processes. */
int bench_reserve(struct command *command, unsigned streams, unsigned processes,
		  struct bench *bench);

/* Asks for other numbers of streams and processes. */
int bench_resize(struct command *command, unsigned streams, unsigned processes,
		 struct bench *bench);

/* Joins the lease command->id. */
int bench_join(struct command *command, struct bench *bench);

/* The same, finds its GPU and opens the device. */
int bench_start(struct command *command, struct bench *bench);

/* Finds the GPU of the partition in a new snapshot. */
int bench_find_gpu(struct command *command, struct bench *bench);

int bench_open_device(const struct command *command, struct bench *bench);

/* The failure of a measurement: errors of the device and of its stop. */
int bench_failed(const struct command *command, const struct bench *bench, int error,
		 const char *sentence);

void bench_done(struct bench *bench);

/* The verb latency: latency.c. */
int latency_run(const struct command *command, struct bench *bench);
