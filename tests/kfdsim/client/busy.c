/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program that takes all it can have. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kfdsim/client/work.h"

#define DEPTH 2U /* kernels in a stream: one runs, one waits */

/* Who started it has gone, or wants it to go. */
static bool over(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char buf[64];

	return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, buf, sizeof(buf)) <= 0;
}

static hipEvent_t launch(hipStream_t stream, const struct work_kernel *kernel, hipEvent_t end)
{
	if (!end)
		work_check(hipEventCreateWithFlags(&end, hipEventBlockingSync), "hipEventCreate");
	work_launch(stream, kernel);
	work_check(hipEventRecord(end, stream), "hipEventRecord");
	return end;
}

void busy(const hipStream_t *streams, unsigned n, const struct work_kernel *kernel)
{
	hipEvent_t ends[BUSY_STREAMS][DEPTH] = { 0 };

	if (n > BUSY_STREAMS)
		exit(2);
	for (unsigned turn = 0; turn < DEPTH; turn++)
		for (unsigned i = 0; i < n; i++)
			ends[i][turn] = launch(streams[i], kernel, NULL);
	for (unsigned turn = 0; !over(); turn++) {
		for (unsigned i = 0; i < n; i++) {
			hipEvent_t end = ends[i][turn % DEPTH];

			work_check(hipEventSynchronize(end), "hipEventSynchronize");
			launch(streams[i], kernel, end);
		}
		if (turn == 0) {
			puts("ready");
			fflush(stdout);
		}
	}
	for (unsigned i = 0; i < n; i++)
		work_check(hipStreamSynchronize(streams[i]), "hipStreamSynchronize");
}
