/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Plays all games, two streams at a time. */

#include "client/latency/device.h"
#include "client/latency/matrix.h"
#include "client/latency/unit.h"

struct measurement {
	const struct device *device;
	const struct stop *stop;
	const struct units *units;
	const char *target; /* "gfx906" */
	bool same_line;
	void (*progress)(size_t done, size_t of, void *data); /* may be NULL */
	void *progress_data;
};

/*
 * Fills an initialised matrix. Errors are those of the device and of the stop, and -ENODATA: the
 * kernel did not run; -EAGAIN: players did not meet several times in a row; -EPROTO: a player did
 * not report its end. The message is in buf. Destroys all its streams.
 */
int measure(const struct measurement *measurement, struct matrix *matrix, char *buf, size_t size);
