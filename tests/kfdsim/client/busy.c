/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program that takes all it can have. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfdsim/client/work.h"

#define DEPTH 2U /* kernels in a stream: one runs, one waits */

/* Reads the kernel of the following launches, if standard input has one, or until it has one that is
 * to be launched. False: it has ended. */
static bool obey(struct work_kernel *kernel)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char text[64], *line;
	ssize_t n;

	while (poll(&input, 1, kernel->blocks > 0 ? 0 : -1) > 0) {
		n = read(STDIN_FILENO, text, sizeof(text) - 1);
		if (n <= 0)
			return false;
		text[n - 1] = '\0';
		line = strrchr(text, '\n');
		if (sscanf(line ? line : text, "%u %u", &kernel->blocks, &kernel->threads) != 2)
			exit(2);
	}
	return true;
}

static hipEvent_t launch(hipStream_t stream, const struct work_kernel *kernel, hipEvent_t end)
{
	if (!end)
		work_check(hipEventCreateWithFlags(&end, hipEventBlockingSync), "hipEventCreate");
	work_launch(stream, kernel);
	work_check(hipEventRecord(end, stream), "hipEventRecord");
	return end;
}

void busy(const hipStream_t *streams, unsigned n, struct work_kernel *kernel)
{
	hipEvent_t ends[BUSY_STREAMS][DEPTH] = { 0 };

	if (n > BUSY_STREAMS)
		exit(2);
	for (unsigned turn = 0; turn < DEPTH; turn++)
		for (unsigned i = 0; i < n; i++)
			ends[i][turn] = launch(streams[i], kernel, NULL);
	for (unsigned turn = 0; obey(kernel); turn++) {
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
