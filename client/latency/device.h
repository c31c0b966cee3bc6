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
#include "libgpuarb/gpuarb.h"

/* Waits for up to msec, or until there is a reason to stop: -EINTR: a signal; -ENOENT: the lease is
 * lost; -ESTALE: the lease was changed. */
struct stop {
	int (*wait)(void *data, int msec);
	void *data;
};

struct device_calls {
	int (*create)(void *data, const uint32_t *mask, size_t words, void **ret);
	void (*destroy)(void *data, void *stream);

	/* Clears ret and runs the two players, with a workgroup for each lane. */
	int (*play)(void *data, void *const stream[static 2], bool same_line, unsigned lanes,
		    struct outcome *ret);

	/* Clears ret and runs so many work-groups of KERNEL_SPIN; ret has room for them. */
	int (*spin)(void *data, void *stream, unsigned groups, unsigned spins, struct wave *ret,
		    double *ret_tick_ns);
	void (*close)(void *data);
};

/* Functions return 0, or a negative errno with a message in `problem`: the result of
 * stop.wait(); from create() the errors of gpuarb-hip.h, with -EBUSY instead of -EAGAIN;
 * -ETIMEDOUT: a kernel does not end; -ENOMEM; -EIO: any other error. */
struct device {
	const struct device_calls *calls;
	void *data;
	bool emulated; /* it answers from a model, not from a GPU */
	char problem[320];
};

struct compiler;

/* Opens the GPU of the lease's first partition. After an error ret->problem has the message. ret
 * must not move, and `stop` must outlive it. */
int device_open(struct gpuarb *gpuarb, struct gpuarb_lease *lease, const struct stop *stop,
		struct compiler *compiler, struct device *ret);

static inline void device_done(struct device *device)
{
	if (device->calls)
		device->calls->close(device->data);
}
