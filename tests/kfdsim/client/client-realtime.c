/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * client-realtime [--plain] BLOCKS: a compositor of 90 frames a second. A frame is a kernel of one
 * work-group of 64 threads, which says nothing about CUs (a NOP), and one of so many work-groups of
 * 1024, which needs them. It has a shader engine to itself by a realtime lease that is inactive at
 * first; with --plain streams of HIP's own. They have high priority.
 *
 * Says "ready" when it could begin, and does what it is told on standard input, a line each:
 *
 *	activate, deactivate   says "granted USEC" or "inactive USEC" when it is so: what that took
 *	frames N               "frame" for each that was shown, then "shown"
	normal                 with --plain: frames have normal priority from now on
 *
 * The frames keep their pace by this machine's clock; what they took is for the emulator to say.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gpuarb-hip.h>
#include <gpuarb.h>

#include "kfdsim/client/work.h"

#define FRAME_NSEC 11111111ULL
#define SECOND_NSEC 1000000000ULL
#define PRIORITY_HIGH 11U /* of KFD, as HIP asks for */

static const struct work_kernel nop = { .blocks = 1, .threads = 64 };

struct compositor {
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease; /* NULL: --plain */
	struct work_kernel kernel;
	hipStream_t stream, normal; /* normal: with --plain */
};

static int reserve(struct compositor *c)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_options options = GPUARB_OPTIONS_INIT;
	int device, r;

	want.shader_engines = 1;
	want.streams = 1;
	want.priority = PRIORITY_HIGH;
	options.lease_class = "realtime";
	options.name = "compositor";
	options.start_inactive = true;
	r = gpuarb_open(&c->gpuarb);
	if (r >= 0)
		r = gpuarb_reserve(c->gpuarb, &want, 1, &options, &c->lease);
	if (r >= 0)
		r = gpuarb_hip_device(c->lease, 0, &device);
	if (r >= 0) {
		work_check(hipSetDevice(device), "hipSetDevice");
		work_begin();
		r = gpuarb_hip_stream_create(c->lease, 0, &c->stream);
	}
	return r;
}

static void start_plain(struct compositor *c)
{
	int least, greatest;

	work_begin();
	work_check(hipDeviceGetStreamPriorityRange(&least, &greatest),
		   "hipDeviceGetStreamPriorityRange");
	work_check(hipStreamCreateWithPriority(&c->stream, hipStreamDefault, greatest),
		   "hipStreamCreateWithPriority");
	work_check(hipStreamCreate(&c->normal), "hipStreamCreate");
}

static void show(const struct compositor *c)
{
	work_launch(c->stream, &nop);
	work_launch(c->stream, &c->kernel);
	work_check(hipStreamSynchronize(c->stream), "hipStreamSynchronize");
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NSEC + (uint64_t)t.tv_nsec;
}

/* To the beginning of the next frame. */
static void await(uint64_t begin)
{
	uint64_t next = begin + ((now() - begin) / FRAME_NSEC + 1) * FRAME_NSEC;
	struct timespec t = { .tv_sec = (time_t)(next / SECOND_NSEC),
			      .tv_nsec = (long)(next % SECOND_NSEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		continue;
}

static void frames(const struct compositor *c, unsigned n)
{
	uint64_t begin = now();

	for (unsigned i = 0; i < n; i++) {
		await(begin);
		show(c);
		puts("frame");
		fflush(stdout);
	}
	puts("shown");
}

static int obey(struct compositor *c, const char *line)
{
	uint64_t begin = now();
	int r = -EINVAL;

	if (strncmp(line, "frames ", strlen("frames ")) == 0) {
		frames(c, work_number(line + strlen("frames ")));
		return 0;
	}
	if (strcmp(line, "normal") == 0) {
		c->stream = c->normal;
		return 0;
	}
	if (strcmp(line, "activate") == 0) {
		r = gpuarb_lease_activate(c->lease);
		if (r >= 0)
			r = gpuarb_lease_wait(c->lease, GPUARB_FOREVER);
	} else if (strcmp(line, "deactivate") == 0) {
		r = gpuarb_lease_deactivate(c->lease);
	}
	if (r >= 0)
		printf("%s %llu\n", gpuarb_lease_state(c->lease),
		       (unsigned long long)(now() - begin) / 1000);
	return r;
}

/* The first launch brings the kernels to the GPU, which takes what it takes. */
static int run(struct compositor *c)
{
	char line[64];
	int r = 0;

	show(c);
	puts("ready");
	fflush(stdout);
	while (r >= 0 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		r = obey(c, line);
		fflush(stdout);
	}
	return r;
}

int main(int argc, char *argv[])
{
	struct compositor c = { .kernel.threads = 1024 };
	bool plain = argc == 3 && strcmp(argv[1], "--plain") == 0;
	int r = 0;

	if (argc != 2 + plain) {
		fprintf(stderr, "wanted: %s [--plain] BLOCKS\n", argv[0]);
		return 2;
	}
	c.kernel.blocks = work_number(argv[argc - 1]);
	if (plain)
		start_plain(&c);
	else
		r = reserve(&c);
	if (r >= 0)
		r = run(&c);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], gpuarb_last_error(c.gpuarb));

	gpuarb_lease_close(c.lease);
	gpuarb_close(c.gpuarb);
	return r < 0;
}
