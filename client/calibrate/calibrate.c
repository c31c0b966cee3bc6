/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verb calibrate. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/calibrate/calibration-report.h"
#include "client/calibrate/neighbour.h"
#include "client/latency/report.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "util/base.h"

/* Prints on a line of the terminal that the next output overwrites. */
static void progress(const char *what, size_t done, size_t of)
{
	fprintf(stderr, "\r%zu of %zu %s ", done, of, what);
	if (done + 1 == of)
		fprintf(stderr, "\r%40s\r", "");
}

void calibrate_work_init(const struct command *command, struct bench *bench,
			 struct calibration *calibration, struct calibrate_work *ret)
{
	*ret = (struct calibrate_work){
		.neighbours = { .lease = gpuarb_lease_id(bench->lease),
				.model = &bench->model,
				.stop = &bench->stop,
				.emulated = command->emulated },
		.partners = { neighbours_start, neighbours_check, neighbours_stop,
			      &ret->neighbours },
		.run = { .device = &bench->device,
			 .stop = &bench->stop,
			 .model = &bench->model,
			 .target = bench->gpu->gfx_target,
			 .progress = isatty(STDERR_FILENO) ? progress : NULL,
			 .calibration = calibration,
			 .partners = &ret->partners },
	};
}

int calibrate_end(struct command *command, const struct calibration *calibration)
{
	if (calibration->n_missing == 0)
		return EXIT_OK;
	return fail(command, EXIT_FAILED, "the report is not complete: %s: %s",
		    calibration->missing[0].step, calibration->missing[0].why);
}

/* ROCr has one queue in each process, and two streams are measured. */
#define SLOTS_EACH 3U

/* Counts the free slots of a GPU, and with --shared its free CUs: without it all CUs are wanted, which is
 * the default. */
static void count_free(struct command *command, const struct gpuarb_gpu *gpu, unsigned *slots,
		       unsigned *processes)
{
	uint32_t *cus = &command->wants[0].want.cus;

	if (command->shared && gpu->cus_free > *cus)
		*cus = gpu->cus_free;
	if (command->quick)
		return;
	*slots = max_u(*slots, gpu->queue_slots_free);
	*processes = max_u(*processes,
			   min_u(gpu->queue_slots_free / SLOTS_EACH, gpu->process_slots_free));
}

int calibrate_size(struct command *command, unsigned *ret_processes, unsigned *ret_streams)
{
	const struct gpuarb_gpu *named = NULL;
	unsigned slots = 0, processes = 1;
	int r = session_snapshot(command);

	if (r == EXIT_OK && command->gpu)
		r = session_gpu(command, command->gpu, &named);
	if (named)
		count_free(command, named, &slots, &processes);
	for (size_t i = 0; i < command->n_gpus && r == EXIT_OK && !named; i++)
		count_free(command, &command->gpus[i], &slots, &processes);
	*ret_processes = min_u(processes, CALIBRATION_NEIGHBOURS + 1);
	*ret_streams = min_u(max_u(slots / *ret_processes, SLOTS_EACH) - 1, CALIBRATION_QUEUES);
	return r;
}

/* Whether another lease, or a process without one, is on the GPU: it would change the times. */
static int check_alone(const struct command *command, const struct bench *bench)
{
	const char *gpu = bench->gpu->name;
	unsigned cus = cuset_count(&bench->model.all);

	if (bench->gpu->n_unmanaged > 0 && !command->shared)
		return fail(command, EXIT_REFUSED,
			    "%s: pid %u uses the GPU without a lease: end it first", gpu,
			    bench->gpu->unmanaged[0].pid);
	for (size_t i = 0; i < command->n_leases && !command->shared; i++) {
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
	if (cus != bench->gpu->cus && !command->shared)
		return fail(command, EXIT_REFUSED, "%s: %u of %u CUs were granted: all are needed",
			    gpu, cus, bench->gpu->cus);
	return EXIT_OK;
}

/* Whether gpuarbd will grant more queues than slots: before minutes of measuring. */
int calibrate_check_oversubscription(struct command *command, struct bench *bench)
{
	unsigned processes = gpuarb_lease_processes(bench->lease, 0);
	unsigned streams = gpuarb_lease_streams(bench->lease, 0);
	unsigned most = ladder_beyond(bench->gpu->queue_slots);
	int r = bench_resize(command, most, 1, bench);

	if (r == EXIT_OK)
		r = bench_resize(command, streams, processes, bench);
	if (command->json)
		return r;
	if (r != EXIT_OK)
		print_line(stderr, "gpuarbctl calibrate: more queues than slots are granted with "
				   "'oversubscribe = besteffort' in gpuarbd.conf(5)");
	else
		print_line(stderr,
			   "gpuarbctl calibrate: at the end up to %u queues will share %u queue "
			   "slots; a GPU can hang then: stop it with ^C if its display matters",
			   most + 1, bench->gpu->queue_slots);
	return r;
}

static int measure_oversubscribed(struct command *command, struct bench *bench,
				  const struct calibration_run *run)
{
	int r = bench_resize(command, ladder_beyond(bench->gpu->queue_slots), 1, bench);

	if (r != EXIT_OK)
		return r;
	r = ladder_oversubscribe(run, bench->gpu->queue_slots);
	if (r < 0)
		r = calibration_miss(run, "more queues than slots", r);
	return r < 0 && r != -ETIMEDOUT ? bench_failed(command, bench, r, bench->device.problem)
					: EXIT_OK;
}

/* Where the whole GPU was measured, a step that fails costs that step, and a kernel that does not end all that
 * follow. */
static int measure_steps(const struct command *command, const struct bench *bench,
			 const struct calibration_run *run)
{
	unsigned processes = max_u(gpuarb_lease_processes(bench->lease, 0), 1);
	unsigned streams = gpuarb_lease_streams(bench->lease, 0);
	int r = command->quick ? 0 : costs_measure(run);

	if (r < 0)
		r = calibration_miss(run, "changes of a mask", r);
	if (r >= 0)
		r = calibration_measure(run);
	if (r >= 0)
		r = interference_measure(run);
	if (r < 0 || command->quick)
		return r;
	r = ladder_measure(run, streams, processes);
	return r < 0 ? calibration_miss(run, "queues and processes", r) : 0;
}

static int measure(struct command *command, struct bench *bench, const struct calibration_run *run)
{
	int r = measure_steps(command, bench, run);

	if (r == -ETIMEDOUT && run->calibration->begun) {
		(void)calibration_miss(run, "all that follows", -ECANCELED);
		return EXIT_OK;
	}
	if (r < 0)
		return bench_failed(command, bench, r, calibration_failure(run, r));
	return command->oversubscribe ? measure_oversubscribed(command, bench, run) : EXIT_OK;
}

/* Whether a file can be written: before minutes of measuring, and without making it. */
static int check_file(const struct command *command, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	char directory[PATH_MAX] = ".";
	struct stat st;

	if (file && stat(file, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(command, EXIT_FAILED, "%s: %s", file, strerror(EISDIR));
	if (!file || strcmp(file, "-") == 0 || access(file, W_OK) == 0)
		return EXIT_OK;
	if (slash)
		snprintf(directory, sizeof(directory), "%.*s", (int)(slash - file + 1), file);
	if (errno == ENOENT && access(directory, W_OK | X_OK) == 0)
		return EXIT_OK;
	return fail(command, EXIT_FAILED, "%s: %s", file, strerror(errno));
}

/* What was measured is printed even if a file cannot be written any more. */
static int tell(const struct command *command, const struct bench *bench,
		const struct calibration *calibration)
{
	struct json_object *report = calibration_report(bench->gpu, &bench->model, calibration);
	int page = EXIT_OK, submission = EXIT_OK, r;

	if (command->html)
		page = report_write(command, report, "--report", command->html);
	if (command->submit_file)
		submission = report_write(command, report, "--submission", command->submit_file);
	r = report_print(command, report, command->json ? NULL : "--text", "-");
	if (page != EXIT_OK)
		return page;
	return submission != EXIT_OK ? submission : r;
}

/* What the lease has stands for the whole GPU. */
int calibrate_whole(struct command *command, struct bench *bench)
{
	size_t words;
	const uint32_t *mask = gpuarb_lease_cu_mask(bench->lease, 0, &words);

	codec_decode(&bench->model.codec, mask, words, &bench->model.all);
	if (gpuarb_lease_processes(bench->lease, 0) < 2 && !command->quick && !command->json)
		print_line(stderr,
			   "gpuarbctl calibrate: nothing is measured beside another process: that "
			   "needs %u free queue slots, and %s has %u slots",
			   2 * SLOTS_EACH, bench->gpu->name, bench->gpu->queue_slots);
	return check_alone(command, bench);
}

static int start(struct command *command, struct bench *bench, unsigned processes,
		 struct calibration *calibration)
{
	const time_t now = time(NULL);
	int r = calibrate_whole(command, bench);

	if (r == EXIT_OK)
		r = check_file(command, command->html);
	if (r == EXIT_OK)
		r = check_file(command, command->submit_file);
	if (r == EXIT_OK && command->oversubscribe)
		r = calibrate_check_oversubscription(command, bench);
	if (r != EXIT_OK)
		return r;
	calibration_plan(&bench->model, calibration);
	interference_plan(&bench->model, processes - 1, calibration);
	calibration->shared = command->shared;
	strftime(calibration->date, sizeof(calibration->date), "%F", gmtime(&now));
	if (!command->json || isatty(STDERR_FILENO))
		fprintf(stderr,
			"gpuarbctl calibrate: %zu masks and %zu rounds of neighbours, about %.0f s as "
			"fast as a Radeon VII\n",
			calibration->n, calibration->n_beside * CALIBRATION_ROUNDS,
			ceil(calibration_estimate(calibration)));
	return bench_open_device(command, bench);
}

int calibrate_run(struct command *command, struct bench *bench)
{
	unsigned processes = gpuarb_lease_processes(bench->lease, 0);
	_cleanup_(freep) struct wave *waves = NULL;
	struct calibration calibration;
	struct calibrate_work work;
	int r = start(command, bench, max_u(processes, 1), &calibration);

	if (r != EXIT_OK)
		return r;
	calibrate_work_init(command, bench, &calibration, &work);
	waves = calloc(calibration.groups, sizeof(*waves));
	if (!waves)
		return fail(command, EXIT_FAILED, "out of memory");
	work.run.waves = waves;
	r = measure(command, bench, &work.run);
	if (r == EXIT_OK)
		r = tell(command, bench, &calibration);
	return r == EXIT_OK ? calibrate_end(command, &calibration) : r;
}
