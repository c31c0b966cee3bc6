/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * client-busy STREAMS BLOCKS THREADS: a HIP program that takes all it can have, and knows nothing
 * of gpuarb. Says "ready" when it is at work, and goes on until standard input ends. A line "BLOCKS
 * THREADS" there changes the kernel; "0 0": it pauses.
 */

#include <stdio.h>

#include "kfdsim/client/work.h"

int main(int argc, char *argv[])
{
	hipStream_t streams[BUSY_STREAMS];
	struct work_kernel kernel;
	unsigned n;

	if (argc != 4) {
		fprintf(stderr, "wanted: %s STREAMS BLOCKS THREADS\n", argv[0]);
		return 2;
	}
	n = work_number(argv[1]);
	kernel.blocks = work_number(argv[2]);
	kernel.threads = work_number(argv[3]);
	work_begin();
	for (unsigned i = 0; i < n && i < BUSY_STREAMS; i++)
		work_check(hipStreamCreate(&streams[i]), "hipStreamCreate");
	busy(streams, n, &kernel);
	return 0;
}
