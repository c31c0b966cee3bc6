/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel of work.h: what has to be compiled for a GPU. */

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "work.h"

__global__ void spin(unsigned *memory)
{
	unsigned x = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < 1000; i++)
		x = x * 1664525 + 1013904223;
	if (x == 0 && memory)
		*memory = x;
}

void work_check(hipError_t error, const char *what)
{
	if (error == hipSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, hipGetErrorName(error));
	exit(1);
}

void work_begin(void)
{
	work_check(hipSetDeviceFlags(hipDeviceScheduleBlockingSync), "hipSetDeviceFlags");
}

void work_launch(hipStream_t stream, const work_kernel *kernel)
{
	unsigned *nowhere = nullptr;

	hipLaunchKernelGGL(spin, dim3(kernel->blocks), dim3(kernel->threads), 0, stream, nowhere);
	work_check(hipGetLastError(), "hipLaunchKernel");
}

unsigned work_number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end != text && *end == '\0' && value > 0 && value <= 100000000)
		return static_cast<unsigned>(value);
	fprintf(stderr, "%s: a number from 1 to 100000000 is wanted\n", text);
	exit(2);
}
