/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernels for HIP programs that are in C (work.hip), and what those that keep a GPU at work share
 * (busy.c). Emulated, a kernel takes its time and does nothing; what that was is in the times of
 * its signal, the emulator's own.
 */

#include <stdbool.h>

#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct work_kernel {
	unsigned blocks, threads; /* threads: of a block */
};

/* Has HIP's error ended the program, with what was done in a sentence? Then with 1. */
void work_check(hipError_t error, const char *what);

/* Into the stream; the events get its times, and may be NULL. Ends the program where HIP fails. */
void work_launch(hipStream_t stream, const struct work_kernel *kernel, hipEvent_t from,
		 hipEvent_t until);

/* What two events of a launch that has ended say it took, in nanoseconds. */
double work_took(hipEvent_t from, hipEvent_t until);

/* A number of a command line, from 1 on; ends the program with 2 for anything else. */
unsigned work_number(const char *text);

/*
 * Keeps kernels in all streams, two in each at any time, until standard input ends. Prints "ready"
 * when the first has ended.
 */
#define BUSY_STREAMS 8U
void busy(const hipStream_t *streams, unsigned n, const struct work_kernel *kernel);

#ifdef __cplusplus
}
#endif
