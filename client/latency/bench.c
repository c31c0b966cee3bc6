/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/launch/grant.h"
#include "client/launch/session.h"
#include "client/launch/child.h"
#include "client/output/fail.h"
#include "util/base.h"

static const int ending[] = { SIGINT, SIGTERM, 0 };

/* A second signal ends the clean-up. */
static void watch_done(struct watch *watch)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (watch->signals < 0)
		return;
	while (read(watch->signals, &info, sizeof(info)) > 0)
		;
	sigemptyset(&set);
	for (const int *number = ending; *number; number++)
		sigaddset(&set, *number);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(watch->signals);
	watch->signals = -1;
}

/* A stop's wait(). */
static int watch_wait(void *data, int msec)
{
	const struct watch *watch = data;
	struct pollfd fds[] = {
		{ .fd = watch->signals, .events = POLLIN },
		{ .fd = gpuarb_lease_fd(watch->lease), .events = POLLIN },
	};

	if (poll(fds, ARRAY_SIZE(fds), msec) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		return -EINTR;
	if (!fds[1].revents)
		return 0;
	if (gpuarb_lease_dispatch(watch->lease, NULL, NULL) < 0)
		return -ENOENT;
	return gpuarb_lease_generation(watch->lease) == watch->generation ? 0 : -ESTALE;
}

void bench_done(struct bench *bench)
{
	watch_done(&bench->watch);
	device_done(&bench->device);
	gpuarb_lease_close(bench->lease);
}

int bench_failed(const struct command *command, const struct bench *bench, int error,
		 const char *sentence)
{
	switch (error) {
	case -ENODATA:
		return fail(
			command, EXIT_FAILED,
			"the kernel did not run: HIP reports its end, but it has written nothing "
			"(an emulated GPU behaves like this)");
	case -EPROTO:
		return fail(command, EXIT_FAILED,
			    "a kernel was cut off, or the registers and clocks that it read are "
			    "impossible on %s",
			    bench->gpu->gfx_target);
	case -EINTR:
		return fail(command, EXIT_FAILED, "interrupted before the end of the measurement");
	case -ENOENT:
		return fail(command, EXIT_LOST,
			    "the lease is lost: it ended before the end of the measurement");
	case -ESTALE:
		return fail(command, EXIT_LOST,
			    "the lease changed during the measurement, so its results are not "
			    "comparable");
	case -EBUSY:
	case -EDQUOT: return fail(command, EXIT_REFUSED, "%s", sentence);
	default: return fail(command, EXIT_FAILED, "%s", *sentence ? sentence : strerror(-error));
	}
}

/* Reads signals and changes of bench->lease from here on. */
static int start_watch(const struct command *command, struct bench *bench)
{
	int signals = signals_open(command, ending, NULL);

	if (signals < 0)
		return EXIT_FAILED;
	bench->watch = (struct watch){ signals, bench->lease,
				       gpuarb_lease_generation(bench->lease) };
	bench->stop = (struct stop){ watch_wait, &bench->watch };
	return EXIT_OK;
}

static void fill_want(unsigned streams, unsigned processes, struct gpuarb_want *want)
{
	want->queues = (streams + 1) * processes; /* ROCr creates one for itself */
	want->streams = streams;
	want->processes = processes;
	want->shape = "any"; /* a rectangle could leave out CUs */
}

int bench_resize(struct command *command, unsigned streams, unsigned processes, struct bench *bench)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	int r;

	fill_want(streams, processes, &want);
	want.gpu = gpuarb_lease_gpu(bench->lease, 0);
	want.cus = (uint32_t)gpuarb_lease_cus(bench->lease, 0);
	r = gpuarb_lease_resize(bench->lease, &want, 1);
	if (r >= 0)
		r = gpuarb_lease_acknowledge(bench->lease);
	if (r < 0)
		return fail_asked(command, r);
	bench->watch.generation = gpuarb_lease_generation(bench->lease);
	return EXIT_OK;
}

int bench_reserve(struct command *command, unsigned streams, unsigned processes,
		  struct bench *bench)
{
	struct gpuarb_want *want = &command->wants[0].want;
	int r;

	fill_want(streams, processes, want);
	want->gpu = command->gpu;
	command->options.name = command->verb;
	command->quiet = true;

	r = grant_reserve(command, "", &bench->lease);
	/* Until here a signal ends the program and with it the lease. */
	return r == EXIT_OK ? start_watch(command, bench) : r;
}

static bool has_cus(const struct gpuarb_lease *lease)
{
	size_t n = gpuarb_lease_partitions(lease);

	for (size_t i = 0; i < n; i++)
		if (gpuarb_lease_cus(lease, i) == 0)
			return false;
	return n > 0;
}

int bench_join(struct command *command, struct bench *bench)
{
	int r = session_open(command);

	if (r != EXIT_OK)
		return r;
	r = gpuarb_lease_join(command->gpuarb, command->id, &bench->lease);
	if (r < 0)
		return fail_asked(command, r);
	if (!has_cus(bench->lease))
		return fail(command, EXIT_FAILED,
			    "lease %" PRIu64 " has no CUs at the moment: wait until it is granted "
			    "and active",
			    command->id);
	return start_watch(command, bench);
}

int bench_find_gpu(struct command *command, struct bench *bench)
{
	char problem[256];
	int r;

	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_gpu(command, gpuarb_lease_gpu(bench->lease, bench->partition),
				&bench->gpu);
	if (r != EXIT_OK)
		return r;
	if (model_of_gpu(bench->gpu, &bench->model, problem, sizeof(problem)) < 0)
		return fail(command, EXIT_FAILED, "%s: %s", bench->gpu->name, problem);
	return EXIT_OK;
}

int bench_open_device(const struct command *command, struct bench *bench)
{
	int r;

	bench->device.refuses_model = strcmp(command->verb, "calibrate") == 0 && !command->emulated;
	r = device_open(command->gpuarb, bench->lease, bench->partition, &bench->stop,
			&bench->device);
	return r < 0 ? bench_failed(command, bench, r, bench->device.problem) : EXIT_OK;
}

int bench_start(struct command *command, struct bench *bench)
{
	int r = bench_join(command, bench);

	if (r == EXIT_OK)
		r = bench_find_gpu(command, bench);
	return r == EXIT_OK ? bench_open_device(command, bench) : r;
}
