/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernels for HIP programs that are in C (work.hip), and what those that keep a GPU at work share
 * (busy.c). Emulated, a kernel takes its time and does nothing; what it took is in debug/kfdsim.
 */

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct work_kernel {
	unsigned blocks, threads; /* threads: of a block */
};

/* Ends the program with 1 and what failed where HIP says so. */
void work_check(hipError_t error, const char *what);

/* Whoever waits for the GPU sleeps, on the device that is set: before anything is made there. */
void work_begin(void);

void work_launch(hipStream_t stream, const struct work_kernel *kernel);

/* A number of a command line, from 1 on; ends the program with 2 for anything else. */
unsigned work_number(const char *text);

/*
 * Keeps kernels in all streams, two in each at any time, until standard input ends. A line "BLOCKS
 * THREADS" there is the kernel from then on; with "0 0" it pauses. Prints "ready" when the first has ended.
 */
#define BUSY_STREAMS 8U
void busy(const hipStream_t *streams, unsigned n, struct work_kernel *kernel);

#ifdef __cplusplus
}
#endif
