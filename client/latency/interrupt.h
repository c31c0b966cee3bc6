/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What ends a measurement early: a signal, or something happening to the lease. */

#include "client/latency/device.h"

struct watch {
	int signals;
	struct gpuarb_lease *lease;
	uint64_t generation;
};

/* From here on SIGINT and SIGTERM are read, not taken, here and in threads started later. */
int watch_open(struct gpuarb_lease *lease, struct watch *ret);
void watch_done(struct watch *watch);

int watch_wait(void *watch, int msec); /* a stop's */
