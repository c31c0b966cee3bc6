/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* calibrate --paper: the directory with samples.tsv, paper.json and figures. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/calibrate/calibration-print.h"
#include "client/calibrate/neighbour.h"
#include "client/calibrate/paper.h"
#include "client/calibrate/sample.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "util/base.h"

struct work_bench {
	const struct bench *bench;
	struct paper *paper;
	struct sensor sensor;
	FILE *samples;
	char path[PATH_MAX];
	size_t saved; /* cases */
};

static void sense(void *data, struct sample *ret)
{
	const struct work_bench *work = data;

	ret->mhz = sensor_mhz(&work->sensor);
	ret->celsius = sensor_celsius(&work->sensor);
}

/* Saved case by case: what was measured stays if the machine hangs. */
static int save(void *data, const struct paper_case *c)
{
	struct work_bench *work = data;

	errno = 0;
	work->paper->calibration.emulated = work->bench->device.emulated;
	if (work->saved == 0)
		paper_print_header(work->bench->gpu, work->paper, work->samples);
	paper_print_rows(&work->bench->model, c, work->samples);
	if (fflush(work->samples) != 0 || ferror(work->samples))
		return errno ? -errno : -EIO;
	work->saved++;
	return 0;
}

/* Before minutes of measuring. */
static int check_absent(const struct command *command, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", command->paper, name) >= PATH_MAX ||
	    access(path, F_OK) < 0)
		return EXIT_OK;
	return fail(command, EXIT_FAILED, "%s exists: name another directory, or remove the file",
		    path);
}

/* Another measurement is never overwritten. An empty file is none: its program ended before the first case did. */
static int open_new(const struct command *command, const char *name, char path[PATH_MAX],
		    FILE **ret)
{
	const char *directory = command->paper;
	struct stat st;
	FILE *file;
	int fd;

	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		return fail(command, EXIT_FAILED, "%s: %s", directory, strerror(errno));
	if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX)
		return fail(command, EXIT_FAILED, "%.80s...: the path is too long", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
	file = fd < 0 ? NULL : fdopen(fd, "a");
	if (!file)
		return fail(command, EXIT_FAILED, "%s: %s", path, strerror(errno));
	if (fstat(fileno(file), &st) == 0 && st.st_size == 0 &&
	    flock(fileno(file), LOCK_EX | LOCK_NB) == 0) {
		*ret = file;
		return EXIT_OK;
	}
	fclose(file);
	return fail(command, EXIT_FAILED, "%s exists: name another directory, or remove the file",
		    path);
}

static int write_json(const struct command *command, const struct bench *bench,
		      const struct paper *paper)
{
	char path[PATH_MAX];
	FILE *file;
	int r = open_new(command, "paper.json", path, &file);

	if (r != EXIT_OK)
		return r;
	paper_print_json(bench->gpu, &bench->model, paper, file);
	if (ferror(file) | (fclose(file) != 0))
		return fail(command, EXIT_FAILED, "%s: cannot write the file", path);
	return EXIT_OK;
}

static int plan(struct command *command, struct bench *bench, struct paper *paper)
{
	unsigned processes = gpuarb_lease_processes(bench->lease, 0);
	unsigned streams = gpuarb_lease_streams(bench->lease, 0);
	uint64_t seed = command->seed;
	uint32_t drawn = 1;
	const time_t now = time(NULL);

	if (seed == 0 && getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn))
		seed = max_u(drawn, 1);
	if (command->oversubscribe)
		streams = ladder_beyond(bench->gpu->queue_slots);
	if (paper_plan(&bench->model, processes > 1, streams, seed, paper) < 0)
		return fail(command, EXIT_FAILED, "out of memory");
	strftime(paper->calibration.date, sizeof(paper->calibration.date), "%F", gmtime(&now));
	fprintf(stderr,
		"gpuarbctl calibrate: %zu cases in the order of --seed=%" PRIu64
		", about %.0f s as fast as a Radeon VII\n",
		paper->n, seed, ceil(paper_estimate(paper)));
	return EXIT_OK;
}

static int measure(struct command *command, struct bench *bench, struct work_bench *work,
		   struct paper *paper)
{
	_cleanup_(freep) struct wave *waves = calloc(paper_waves(), sizeof(*waves));
	struct calibrate_work with;
	const struct paper_run how = { &with.run, paper, sense, save, work };
	int r = EXIT_OK;

	if (command->oversubscribe)
		r = bench_resize(command, ladder_beyond(bench->gpu->queue_slots),
				 gpuarb_lease_processes(bench->lease, 0), bench);
	if (r != EXIT_OK)
		return r;
	if (!waves)
		return fail(command, EXIT_FAILED, "out of memory");
	calibrate_work_init(command, bench, &paper->calibration, &with);
	with.run.waves = waves;
	r = paper_measure(&how);
	if (r == -ENOSPC || ferror(work->samples))
		return fail(command, EXIT_FAILED, "%s: %s: it has %zu of %zu cases", work->path,
			    strerror(-r), work->saved, paper->n);
	if (r < 0)
		return bench_failed(command, bench, r, calibration_failure(&with.run, r));
	return EXIT_OK;
}

/* measured: EXIT_OK, or the code of what ended the measurement, which was printed. */
static int tell(struct command *command, const struct bench *bench, const struct paper *paper,
		int measured)
{
	int r = write_json(command, bench, paper);

	if (command->json)
		paper_print_json(bench->gpu, &bench->model, paper, stdout);
	else
		paper_print_text(paper, stdout);
	if (measured != EXIT_OK)
		return measured;
	if (r == EXIT_OK)
		r = figures_draw(command, command->paper);
	return r == EXIT_OK ? calibrate_end(command, &paper->calibration) : r;
}

int paper_command(struct command *command, struct bench *bench)
{
	_cleanup_(paper_done) struct paper paper = { 0 };
	struct work_bench work = { .bench = bench, .paper = &paper };
	int full, r = calibrate_whole(command, bench);

	if (r == EXIT_OK)
		r = check_absent(command, "paper.json");
	if (r == EXIT_OK)
		r = open_new(command, "samples.tsv", work.path, &work.samples);
	if (r != EXIT_OK)
		return r;
	sensor_find("", bench->gpu->name, &work.sensor);
	r = plan(command, bench, &paper);
	if (r == EXIT_OK && command->oversubscribe)
		r = calibrate_check_oversubscription(command, bench);
	if (r == EXIT_OK)
		r = bench_open_device(command, bench);
	if (r == EXIT_OK)
		r = measure(command, bench, &work, &paper);
	full = ferror(work.samples);
	if (fclose(work.samples) != 0 && r == EXIT_OK)
		return fail(command, EXIT_FAILED, "%s: %s", work.path, strerror(errno));
	if (work.saved > 0 && !full)
		return tell(command, bench, &paper, r);
	return r == EXIT_OK ? calibrate_end(command, &paper.calibration) : r;
}
