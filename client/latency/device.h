/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The GPU on which games are played, as a table of functions: the order of games, the results and
 * the handling of failures can be tested without a GPU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/latency/kernel.h"
#include "core/mask/law.h"
#include "libgpuarb/gpuarb.h"

/* Waits for up to msec, or until there is a reason to stop: -EINTR: a signal; -ENOENT: the lease is
 * lost; -ESTALE: the lease was changed. */
struct stop {
	int (*wait)(void *data, int msec);
	void *data;
};

/* A kernel whose work-groups report where and when they ran. */
struct work {
	enum neighbours
		kind; /* COMPUTE: they multiply; MEMORY: they read memory beyond the caches */
	unsigned groups;
	unsigned spins;   /* of each */
	unsigned threads; /* of each, in a product of two matrices instead; 0: no product */
};

struct spun {
	double tick_ns, tick_error; /* error: how much of it at most */
	double host_usec; /* from before the launch to after the end, by CLOCK_MONOTONIC_RAW */
};

/* What changes cost, in microseconds. */
struct costs {
	double create;     /* a stream with a mask */
	double change;     /* a mask of a queue, for the caller */
	double preemption; /* the longest that a kernel on another queue stood still meanwhile */

	/* A queue that runs a kernel; NAN: it cannot be paused. */
	double pause, resume; /* for the caller */
	double paused;        /* the longest that the kernel stood still when resumed at once */
};

struct device_calls {
	int (*create)(void *data, const uint32_t *mask, size_t words, void **ret);
	/* By HIP alone, with a mask that the library would refuse. */
	int (*create_raw)(void *data, const uint32_t *mask, size_t words, void **ret);
	void (*destroy)(void *data, void *stream);

	/* Clears ret and runs the two players, with a workgroup for each lane. */
	int (*play)(void *data, void *const stream[static 2], unsigned rules, unsigned lanes,
		    struct outcome *ret);

	/* Clears ret and runs the work-groups; ret has room for them. */
	int (*spin)(void *data, void *stream, const struct work *work, struct wave *ret,
		    struct spun *ret_spun);

	/* Runs the work on each stream, all at the same time. */
	int (*together)(void *data, void *const *streams, unsigned n, const struct work *work,
			double *ret_host_usec);

	/* Creates two streams. While a kernel runs on the first, the second gets the two masks in turn; then
	 * a kernel runs on the second, which is paused and resumed. Each so many times; the worst count. */
	int (*change)(void *data, const uint32_t *const masks[static 2], size_t words,
		      unsigned times, struct costs *ret);
	void (*close)(void *data);
};

/* Functions return 0, or a negative errno with a message in `problem`: the result of
 * stop.wait(); from create() the errors of gpuarb-hip.h, with -EBUSY instead of -EAGAIN;
 * -ETIMEDOUT: a kernel does not end; -ENOMEM; -EIO: any other error. */
struct device {
	const struct device_calls *calls;
	void *data;
	bool emulated; /* it answers from a model, not from a GPU: known once its clock was read */
	bool refuses_model; /* set before opening: an emulated one is -EOPNOTSUPP */
	char problem[320];
};

/* Opens the GPU of a partition of the lease. After an error ret->problem has the message. ret
 * must not move, and `stop` must outlive it. */
int device_open(struct gpuarb *gpuarb, struct gpuarb_lease *lease, size_t partition,
		const struct stop *stop, struct device *ret);

static inline void device_done(struct device *device)
{
	if (device->calls)
		device->calls->close(device->data);
}
