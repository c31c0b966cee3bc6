/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Execution times of the kernels of a command on partitions of a GPU, alone and beside itself or another one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"

#define RT_SIZES_MAX 32U
#define RT_KERNELS_MAX 256U
#define RT_KERNEL_NAME 200U

struct rt_times {
	uint64_t count, longest; /* nanoseconds */
};

struct rt_kernel {
	char name[RT_KERNEL_NAME];
	struct rt_times alone[RT_SIZES_MAX], beside[RT_SIZES_MAX];
};

/* Where the command beside the measured one runs. */
enum rt_beside_on {
	RT_BESIDE_ENGINES, /* on the other shader engines */
	RT_BESIDE_SHARED,  /* both have CUs of their own of every engine */
	RT_BESIDE_ALL,     /* on all CUs */
};
extern const char *const rt_beside_on_names[], *const rt_beside_places[];

struct rt_measurement {
	const char *gpu;
	char *const *command; /* NULL after the last word */
	const char
		*beside; /* the command of the shell that runs beside it; NULL: the same command */
	unsigned runs;
	enum rt_beside_on on;
	unsigned engines; /* of the GPU */
	unsigned height;  /* CUs of its smallest engine */
	unsigned unit;    /* CUs that a mask cannot tell apart */

	unsigned sizes[RT_SIZES_MAX]; /* shader engines, ascending */
	unsigned cus[RT_SIZES_MAX];   /* effective CUs of the leases */
	size_t n_sizes;
	struct rt_kernel *kernels; /* room for RT_KERNELS_MAX */
	size_t n_kernels;
	struct rt_times host;
	uint64_t neighbour; /* kernels of the command beside the measured ones */
};

/* Runs the command on each size. library: what is preloaded into it. -EOPNOTSUPP: its kernels have no times;
 * -ECHILD: a command has failed; -ENOSPC: too many kernels; others of the system. problem has a sentence. */
int rt_measure(struct rt_measurement *measurement, const char *library, char *problem, size_t size);

/* The longest time of the kernel alone on this size or a larger one: a time that does not grow with CUs. Where it
 * ran only beside the other program, that time. 0: it ran on none of them. */
uint64_t rt_kernel_wcet(const struct rt_measurement *measurement, const struct rt_kernel *kernel,
			size_t i);

/* In percent, rounded up: how much longer any kernel took beside another program. */
unsigned rt_measured_margin(const struct rt_measurement *measurement);
