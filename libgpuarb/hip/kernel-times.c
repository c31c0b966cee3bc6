/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Preloaded into the command of `gpuarbctl rt measure`: writes how long its kernels take. Each kernel is launched
 * by hipExtLaunchKernel() or hipExtModuleLaunchKernel() instead, whose two events have the times at which the
 * GPU began and ended it. Nothing else of the program changes.
 *
 * The file $GPUARB_KERNEL_TIMES gets a line for each: "kernel NSEC CUS NAME" with the effective
 * CUs of the lease; "host NSEC" when the program has waited
 * for its kernels: the time from the first launch that was not of the GPU; "none" for a kernel without times.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hip/hip_runtime_api.h>

#define EXPORT __attribute__((visibility("default")))
#define PENDING_MAX 4096U /* launched, and not yet waited for: more are not measured */
#define NAME_MAX_BYTES 200

/* hip_ext.h is C++ only. The sizes are in threads. */
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t x, uint32_t y, uint32_t z,
				    uint32_t threads_x, uint32_t threads_y, uint32_t threads_z,
				    size_t shared, hipStream_t stream, void **parameters,
				    void **extra, hipEvent_t begin, hipEvent_t end, uint32_t flags);

struct pending {
	hipEvent_t begin, end;
	hipStream_t stream;
	uint64_t launched;
	char name[NAME_MAX_BYTES];
};

static struct {
	pthread_mutex_t lock;
	struct pending list[PENDING_MAX];
	size_t n;
} times = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The function of HIP. It comes after this library, or in a library that was loaded later. */
static void *next(const char *name)
{
	static const char *const libraries[] = { "libamdhip64.so.5", "libamdhip64.so.6",
						 "libamdhip64.so.7", "libamdhip64.so" };
	void *function = dlsym(RTLD_NEXT, name);

	for (size_t i = 0; !function && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		function = library ? dlsym(library, name) : NULL;
	}
	if (function)
		return function;
	fprintf(stderr, "gpuarbctl rt measure: HIP has no function %s\n", name);
	abort();
}

/* This library does not link HIP: it is loaded into shells, too. */
#define NEXT(function) ((__typeof__(&function))(uintptr_t)next(#function))

static uint64_t now_nsec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* One write for each line: several processes may append. */
static void put(const char *line, int length)
{
	const char *path = getenv("GPUARB_KERNEL_TIMES");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (write(fd, line, (size_t)length) < 0) /* the reader misses a line */
		line = NULL;
	close(fd);
}

/* What a program has waited for. */
struct waited {
	bool all;           /* else one stream, or an event */
	hipStream_t stream; /* with of_stream */
	bool of_stream;
	uint64_t end;
};

static bool has_ended(const struct pending *kernel, const struct waited *waited)
{
	/* Its event can be late although the stream is done. */
	if (waited->all || (waited->of_stream && kernel->stream == waited->stream))
		return NEXT(hipEventSynchronize)(kernel->end) == hipSuccess;
	return NEXT(hipEventQuery)(kernel->end) == hipSuccess;
}

/* Writes the time of the kernel, and returns it. */
static uint64_t put_kernel(const struct pending *kernel)
{
	const char *cus = getenv("GPUARB_EFFECTIVE_CUS");
	char line[NAME_MAX_BYTES + 64];
	float msec = 0;

	if (NEXT(hipEventElapsedTime)(&msec, kernel->begin, kernel->end) != hipSuccess || msec <= 0)
		put("none\n", 5);
	else
		put(line, snprintf(line, sizeof(line), "kernel %.0f %s %s\n", (double)msec * 1e6,
				   cus ? cus : "0", kernel->name));
	(void)NEXT(hipEventDestroy)(kernel->begin);
	(void)NEXT(hipEventDestroy)(kernel->end);
	return msec > 0 ? (uint64_t)((double)msec * 1e6) : 0;
}

/* Writes what has ended, and keeps the rest. */
static void collect(const struct waited *waited)
{
	uint64_t all = 0, launched = waited->end;
	char line[64];
	size_t n = 0;

	pthread_mutex_lock(&times.lock);
	for (size_t i = 0; i < times.n; i++) {
		struct pending *kernel = &times.list[i];

		if (!has_ended(kernel, waited)) {
			times.list[n++] = *kernel;
			continue;
		}
		if (kernel->launched < launched)
			launched = kernel->launched;
		all += put_kernel(kernel);
	}
	times.n = n;
	if (all > 0 && waited->end - launched > all)
		put(line, snprintf(line, sizeof(line), "host %llu\n",
				   (unsigned long long)(waited->end - launched - all)));
	pthread_mutex_unlock(&times.lock);
}

/* The events of a launch. NULL: it is not measured. */
static struct pending *begin(const char *name, hipStream_t stream)
{
	struct pending *kernel;

	pthread_mutex_lock(&times.lock);
	if (times.n == PENDING_MAX)
		return NULL;
	kernel = &times.list[times.n];
	*kernel = (struct pending){ .stream = stream, .launched = now_nsec() };
	snprintf(kernel->name, sizeof(kernel->name), "%s", name ? name : "kernel");
	if (NEXT(hipEventCreate)(&kernel->begin) != hipSuccess)
		return NULL;
	if (NEXT(hipEventCreate)(&kernel->end) == hipSuccess)
		return kernel;
	(void)NEXT(hipEventDestroy)(kernel->begin);
	return NULL;
}

static hipError_t done(const struct pending *kernel, hipError_t error)
{
	if (kernel && error == hipSuccess)
		times.n++;
	else
		put("none\n", 5);
	pthread_mutex_unlock(&times.lock);
	return error;
}

EXPORT hipError_t hipLaunchKernel(const void *function, dim3 blocks, dim3 threads, void **arguments,
				  size_t shared, hipStream_t stream)
{
	const struct pending *kernel = begin(NEXT(hipKernelNameRefByPtr)(function, stream), stream);

	return done(kernel,
		    kernel ? NEXT(hipExtLaunchKernel)(function, blocks, threads, arguments, shared,
						      stream, kernel->begin, kernel->end, 0)
			   : NEXT(hipLaunchKernel)(function, blocks, threads, arguments, shared,
						   stream));
}

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned x, unsigned y, unsigned z,
					unsigned threads_x, unsigned threads_y, unsigned threads_z,
					unsigned shared, hipStream_t stream, void **parameters,
					void **extra)
{
	const struct pending *kernel = begin(NEXT(hipKernelNameRef)(function), stream);

	return done(kernel, kernel ? NEXT(hipExtModuleLaunchKernel)(
					     function, x * threads_x, y * threads_y, z * threads_z,
					     threads_x, threads_y, threads_z, shared, stream,
					     parameters, extra, kernel->begin, kernel->end, 0)
				   : NEXT(hipModuleLaunchKernel)(function, x, y, z, threads_x,
								 threads_y, threads_z, shared,
								 stream, parameters, extra));
}

EXPORT hipError_t hipStreamSynchronize(hipStream_t stream)
{
	hipError_t error = NEXT(hipStreamSynchronize)(stream);
	const struct waited waited = { .stream = stream, .of_stream = true, .end = now_nsec() };

	collect(&waited);
	return error;
}

EXPORT hipError_t hipEventSynchronize(hipEvent_t event)
{
	hipError_t error = NEXT(hipEventSynchronize)(event);
	const struct waited waited = { .end = now_nsec() };

	collect(&waited);
	return error;
}

EXPORT hipError_t hipDeviceSynchronize(void)
{
	hipError_t error = NEXT(hipDeviceSynchronize)();
	const struct waited waited = { .all = true, .end = now_nsec() };

	collect(&waited);
	return error;
}
