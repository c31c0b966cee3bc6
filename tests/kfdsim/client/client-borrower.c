/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * client-borrower CUS MAX STREAMS BLOCKS THREADS: the same as client-busy, but it asks gpuarbd for
 * so many CUs and up to MAX of what others do not need, and follows what becomes of those by
 * libgpuarb's agent; its streams are of libgpuarb-hip.
 */

#include <stdio.h>

#include <gpuarb-hip.h>
#include <gpuarb.h>

#include "kfdsim/client/work.h"

static int reserve(struct gpuarb *gpuarb, char *argv[], struct gpuarb_lease **ret)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	int r;

	want.cus = work_number(argv[1]);
	want.cus_min = want.cus;
	want.cus_max = work_number(argv[2]);
	want.streams = work_number(argv[3]);
	options.lease_class = "besteffort";
	options.name = "borrower";
	options.adaptable = true;
	r = gpuarb_reserve(gpuarb, &want, 1, &options, ret);
	return r < 0 ? r : gpuarb_lease_start_agent(*ret);
}

static int run(struct gpuarb_lease *lease, char *argv[])
{
	struct work_kernel kernel = { .blocks = work_number(argv[4]),
				      .threads = work_number(argv[5]) };
	unsigned n = work_number(argv[3]);
	hipStream_t streams[BUSY_STREAMS];
	int device, r;

	r = gpuarb_hip_device(lease, 0, &device);
	if (r < 0)
		return r;
	work_check(hipSetDevice(device), "hipSetDevice");
	work_begin();
	for (unsigned i = 0; i < n && i < BUSY_STREAMS; i++) {
		r = gpuarb_hip_stream_create(lease, 0, &streams[i]);
		if (r < 0)
			return r;
	}
	busy(streams, n, &kernel);
	return 0;
}

int main(int argc, char *argv[])
{
	struct gpuarb_lease *lease = NULL;
	struct gpuarb *gpuarb = NULL;
	int r;

	if (argc != 6) {
		fprintf(stderr, "wanted: %s CUS MAX STREAMS BLOCKS THREADS\n", argv[0]);
		return 2;
	}
	r = gpuarb_open(&gpuarb);
	if (r >= 0)
		r = reserve(gpuarb, argv, &lease);
	if (r >= 0)
		r = run(lease, argv);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], gpuarb_last_error(gpuarb));

	gpuarb_lease_close(lease);
	gpuarb_close(gpuarb);
	return r < 0;
}
