/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The GPU that games are played on: a small table of functions, so that what decides about
 * order, figures and failures needs no GPU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/latency/report.h"
#include "libgpuarb/gpuarb.h"

/* Waits for up to msec; sooner there is a reason to stop: -EINTR (a signal came), -ENOENT
 * (the lease is lost), -ESTALE (it was changed). */
struct stop {
	int (*wait)(void *data, int msec);
	void *data;
};

struct device_calls {
	int (*create)(void *data, const uint32_t *mask, size_t words, void **ret);
	void (*destroy)(void *data, void *stream);

	/* Clears ret, and has the two players meet, a workgroup for each lane. */
	int (*play)(void *data, void *const stream[static 2], bool same_line, unsigned lanes,
		    struct outcome *ret);
	void (*close)(void *data);
};

/* Functions return 0 or a negative errno with the sentence in `problem`: what stop.wait()
 * returned; of create() what gpuarb-hip.h says, but -EBUSY in place of -EAGAIN; -ETIMEDOUT for
 * a kernel that does not end; -ENOMEM; -EIO for all else. */
struct device {
	const struct device_calls *calls;
	void *data;
	char problem[320];
};

struct compiler;

/* Opens the GPU of the lease's first partition. ret->problem has the sentence also when this
 * fails; ret stays where it is, and `stop` outlives it. */
int device_open(struct gpuarb *gpuarb, struct gpuarb_lease *lease, const struct stop *stop,
		struct compiler *compiler, struct device *ret);

static inline void device_done(struct device *device)
{
	if (device->calls)
		device->calls->close(device->data);
}
