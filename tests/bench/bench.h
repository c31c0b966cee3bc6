/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the benchmarks share: time, CPU time, one core, a median. */

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t bench_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The CPU time of the main thread of a process. It ends the program where the process is gone. */
static inline uint64_t bench_cpu_nsec(pid_t pid)
{
	unsigned long long nsec = 0;
	char path[48];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &nsec) != 1) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(EXIT_FAILURE);
	}
	fclose(file);
	return nsec;
}

/* The CPU time of this thread: other processes on the core do not count. */
static inline uint64_t bench_thread_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A wake-up across cores costs more than all that is measured here: children inherit it. */
static inline void bench_pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fprintf(stderr, "not pinned to a core: figures will swing\n");
}

static inline int bench_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The q-th part (0..1) of n samples, which it sorts. */
static inline uint64_t bench_quantile(uint64_t *samples, size_t n, double q)
{
	qsort(samples, n, sizeof(*samples), bench_order);
	return samples[(size_t)(q * (double)(n - 1))];
}
