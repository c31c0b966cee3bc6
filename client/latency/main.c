/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "client/latency/calibration-print.h"
#include "client/latency/compiler.h"
#include "client/latency/device.h"
#include "client/latency/latency-print.h"
#include "client/launch/grant.h"
#include "client/output/fail.h"
#include "client/output/model.h"
#include "util/base.h"

/* Two streams, and the queue that ROCr creates for itself. */
#define STREAMS 2U
#define QUEUES (STREAMS + 1U)

/* Ends a measurement early: a signal, or a change of the lease. */
struct watch {
	int signals;
	struct gpuarb_lease *lease;
	uint64_t generation;
};

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

/* From here on SIGINT and SIGTERM are read, here and in threads that start later. */
static int watch_open(struct gpuarb_lease *lease, struct watch *ret)
{
	sigset_t set;
	int fd;

	ending_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	*ret = (struct watch){ fd, lease, gpuarb_lease_generation(lease) };
	return 0;
}

/* A second signal ends the clean-up. */
static void watch_done(struct watch *watch)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (watch->signals < 0)
		return;
	while (read(watch->signals, &info, sizeof(info)) > 0)
		;
	ending_signals(&set);
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

/* The state of a measurement, freed by bench_done(). */
struct bench {
	struct gpuarb_lease *lease;
	struct watch watch;
	struct stop stop;
	struct compiler compiler;
	struct device device;
	const struct gpuarb_gpu *gpu;
	struct model model;
	struct units units;
	struct matrix matrix;
	struct summary summary;
	struct calibration calibration;
};

static void bench_done(struct bench *bench)
{
	watch_done(&bench->watch);
	device_done(&bench->device);
	compiler_done(&bench->compiler);
	gpuarb_lease_close(bench->lease);
	summary_done(&bench->summary);
	matrix_done(&bench->matrix);
	units_done(&bench->units);
}

static int failed(const struct command *command, int error, const char *sentence)
{
	switch (error) {
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

static int reserve(struct command *command, struct bench *bench)
{
	struct gpuarb_want *want = &command->wants[0].want;
	int r;

	want->gpu = command->gpu;
	want->queues = QUEUES;
	want->streams = STREAMS;
	want->shape = "any"; /* a rectangle could leave out CUs */
	command->options.name = command->verb;
	command->quiet = true;

	r = grant_reserve(command, "", &bench->lease);
	if (r != EXIT_OK)
		return r;

	/* Until here a signal ends the program and with it the lease. */
	r = watch_open(bench->lease, &bench->watch);
	if (r < 0)
		return fail(command, EXIT_FAILED, "cannot read signals: %s", strerror(-r));
	bench->stop = (struct stop){ watch_wait, &bench->watch };
	return EXIT_OK;
}

static int read_lease_mask(struct command *command, struct bench *bench)
{
	const uint32_t *mask;
	char problem[256];
	size_t words;
	int r;

	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_gpu(command, gpuarb_lease_gpu(bench->lease, 0), &bench->gpu);
	if (r != EXIT_OK)
		return r;
	if (model_of_gpu(bench->gpu, &bench->model, problem, sizeof(problem)) < 0)
		return fail(command, EXIT_FAILED, "%s: %s", bench->gpu->name, problem);

	mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);
	r = units_init(&bench->model, mask, words, &bench->units);
	if (r == -ENOENT)
		return fail(command, EXIT_FAILED, "%s: the granted mask leaves an XCC without a CU",
			    bench->gpu->name);
	if (r >= 0)
		r = matrix_init(bench->units.n, &bench->matrix);
	return r < 0 ? fail(command, EXIT_FAILED, "out of memory") : EXIT_OK;
}

/* Prints on a line of the terminal that the next output overwrites. */
static void progress(size_t done, size_t of)
{
	if (done % 16 == 0)
		fprintf(stderr, "\r%zu of %zu pairs ", done, of);
	if (done + 1 == of)
		fprintf(stderr, "\r%30s\r", "");
}

static int play(const struct command *command, struct bench *bench)
{
	struct measurement measurement = {
		.device = &bench->device,
		.stop = &bench->stop,
		.units = &bench->units,
		.target = bench->gpu->gfx_target,
		.same_line = command->same_line,
		.progress = isatty(STDERR_FILENO) ? progress : NULL,
	};
	char problem[320] = "";
	int r;

	r = device_open(command->gpuarb, bench->lease, &bench->stop, &bench->compiler,
			&bench->device);
	if (r < 0)
		return failed(command, r, bench->device.problem);
	r = matrix_measure(&measurement, &bench->matrix, problem, sizeof(problem));
	if (r < 0)
		return failed(command, r, problem);

	judge_places(&bench->matrix, &bench->units);
	r = summary_init(&bench->matrix, &bench->units, &bench->summary);
	return r < 0 ? fail(command, EXIT_FAILED, "out of memory") : EXIT_OK;
}

/* ---- calibrate ---------------------------------------------------------------------------- */

static void progress_of_masks(size_t done, size_t of)
{
	fprintf(stderr, "\r%zu of %zu masks ", done, of);
	if (done + 1 == of)
		fprintf(stderr, "\r%30s\r", "");
}

/* Whether another lease, or a process without one, is on the GPU: it would change the times. */
static int check_alone(const struct command *command, const struct bench *bench)
{
	const char *gpu = bench->gpu->name;
	size_t words, cus = 0;
	const uint32_t *mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);

	for (size_t i = 0; i < words; i++)
		cus += (size_t)__builtin_popcount(mask[i]);
	if (bench->gpu->n_unmanaged > 0)
		return fail(command, EXIT_REFUSED,
			    "%s: pid %u uses the GPU without a lease: end it first", gpu,
			    bench->gpu->unmanaged[0].pid);
	for (size_t i = 0; i < command->n_leases; i++) {
		const struct gpuarb_lease_info *lease = &command->leases[i];

		for (size_t p = 0; p < lease->n_partitions && lease->position == 0; p++)
			if (lease->id != gpuarb_lease_id(bench->lease) &&
			    strcmp(lease->partitions[p].gpu, gpu) == 0)
				return fail(command, EXIT_REFUSED,
					    "%s: lease %" PRIu64
					    " is on the GPU: end it first, because "
					    "neighbours change the times",
					    gpu, lease->id);
	}
	if (cus != bench->gpu->cus)
		return fail(command, EXIT_REFUSED, "%s: %zu of %u CUs were granted: all are needed",
			    gpu, cus, bench->gpu->cus);
	return EXIT_OK;
}

static int calibrate(const struct command *command, struct bench *bench)
{
	struct calibration *calibration = &bench->calibration;
	const struct calibration_run run = {
		.device = &bench->device,
		.stop = &bench->stop,
		.model = &bench->model,
		.target = bench->gpu->gfx_target,
		.progress = isatty(STDERR_FILENO) ? progress_of_masks : NULL,
	};
	const time_t now = time(NULL);
	char problem[320] = "";
	int r = check_alone(command, bench);

	if (r != EXIT_OK)
		return r;
	calibration_plan(&bench->model, calibration);
	strftime(calibration->date, sizeof(calibration->date), "%F", gmtime(&now));
	if (!command->json)
		fprintf(stderr,
			"gpuarbctl calibrate: %zu masks, about %.0f s as fast as a Radeon VII\n",
			calibration->n, ceil(calibration_estimate(calibration)));
	r = device_open(command->gpuarb, bench->lease, &bench->stop, &bench->compiler,
			&bench->device);
	if (r < 0)
		return failed(command, r, bench->device.problem);
	r = calibration_measure(&run, calibration, problem, sizeof(problem));
	if (r < 0)
		return failed(command, r, problem);
	if (command->json)
		calibration_print_json(bench->gpu, &bench->model, calibration, stdout);
	else
		calibration_print_text(command, bench->gpu, calibration, stdout);
	return EXIT_OK;
}

/* ---- latency ------------------------------------------------------------------------------ */

static int write_svg(const struct command *command, const struct findings *findings)
{
	FILE *out = strcmp(command->svg, "-") == 0 ? stdout : fopen(command->svg, "we");

	if (!out)
		return fail(command, EXIT_FAILED, "%s: %s", command->svg, strerror(errno));
	print_svg(findings, out);
	if (out != stdout && (ferror(out) | (fclose(out) != 0)))
		return fail(command, EXIT_FAILED, "%s: cannot write the drawing", command->svg);
	return EXIT_OK;
}

static int tell(const struct command *command, const struct bench *bench)
{
	const struct findings findings = {
		.gpu = bench->gpu,
		.model = &bench->model,
		.units = &bench->units,
		.matrix = &bench->matrix,
		.summary = &bench->summary,
		.same_line = command->same_line,
	};

	if (command->svg)
		return write_svg(command, &findings);
	if (command->json)
		print_json(&findings, stdout);
	else
		print_text(command, &findings, stdout);
	return EXIT_OK;
}

static int run(struct command *command)
{
	_cleanup_(bench_done) struct bench bench = {
		.watch.signals = -1,
		.compiler.fd = -1,
	};
	int r;

	r = compiler_start(&bench.compiler);
	if (r < 0)
		return fail(command, EXIT_FAILED, "cannot start the compiler: %s", strerror(-r));

	r = reserve(command, &bench);
	if (r == EXIT_OK)
		r = read_lease_mask(command, &bench);
	if (r == EXIT_OK && strcmp(command->verb, "calibrate") == 0)
		return calibrate(command, &bench);
	if (r == EXIT_OK)
		r = play(command, &bench);
	return r == EXIT_OK ? tell(command, &bench) : r;
}

/* gpuarbctl latency and calibrate start this program with the verb and checked options. */
int main(int argc, char **argv)
{
	struct command command;
	int r, skip;

	command_init(&command);
	command.verb = argc > 1 && strcmp(argv[1], "calibrate") == 0 ? "calibrate" : "latency";
	skip = argc > 1 && strcmp(argv[1], command.verb) == 0 ? 2 : 1;
	if (options_parse(&command, OPTIONS_LATENCY | OPTIONS_SVG | OPTIONS_GENERAL, false,
			  argc - skip, argv + skip) < 0)
		return fail(&command, EXIT_USAGE, "%s", command.problem);

	r = run(&command);
	session_done(&command);
	if ((fflush(stdout) != 0 || ferror(stdout)) && r == EXIT_OK)
		return fail(&command, EXIT_FAILED, "standard output: %s", strerror(errno));
	return r;
}
