/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* calibrate --paper: the directory with samples.tsv, paper.json and figures. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/calibrate/calibration-report.h"
#include "client/calibrate/neighbour.h"
#include "client/calibrate/paper.h"
#include "client/calibrate/sample.h"
#include "client/latency/report.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/mask-text.h"
#include "util/base.h"

/* ---- TSV ---------------------------------------------------------------------------------- */

static void paper_print_header(const struct gpuarb_gpu *gpu, const struct paper *paper, FILE *out)
{
	fprintf(out,
		"# %s (%s), %s, %s: products of %u x %u matrices, %u runs for warming up are left out; seed "
		"%" PRIu64 "%s\n",
		gpu->name, gpu->device, gpu->gfx_target, paper->calibration.date, MULTIPLY_SIZE,
		MULTIPLY_SIZE, PAPER_WARM, paper->seed,
		paper->calibration.emulated ? "; EMULATED, not measured" : "");
	fprintf(out, "# gpuarbctl calibrate --gpu=%s --paper=DIR --seed=%" PRIu64 "\n", gpu->name,
		paper->seed);
	fputs("set\tlayout\tthreads\tqueues\tcus\teffective_cus\tcu_mask\tcompetitor\tcompetitor_mask\trun\tusec\t"
	      "host_usec\tmhz\tcelsius\n",
	      out);
}

static void print_real(double value, FILE *out)
{
	if (isnan(value))
		fputs("\t-", out);
	else
		fprintf(out, "\t%.3f", value);
}

static void paper_print_rows(const struct model *model, const struct paper_case *c, FILE *out)
{
	_cleanup_(freep) char *mask = mask_hex_of(model, &c->mask);
	_cleanup_(freep) char *theirs = c->competitor > 0 ? mask_hex_of(model, &c->theirs) : NULL;

	for (unsigned i = 0; i < c->n; i++) {
		fprintf(out, "%s\t%s\t%u\t%u\t%u\t%u\t%s\t%u\t%s\t%u", paper_sets[c->set],
			c->layout, c->threads, c->queues, c->cus, c->effective, mask ? mask : "-",
			c->competitor, theirs ? theirs : "-", i);
		print_real(c->sample[i].usec, out);
		print_real(c->sample[i].host_usec, out);
		print_real(c->sample[i].mhz, out);
		print_real(c->sample[i].celsius, out);
		fputc('\n', out);
	}
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_samples(struct json_object *map, const struct paper_case *c)
{
	JSON_ROWS(map, "samples", sample, at < c->n ? &c->sample[at] : NULL, ("usec", sample->usec),
		  ("host_usec", sample->host_usec), ("mhz", sample->mhz),
		  ("celsius", sample->celsius));
}

static void json_case(struct json_object *list, const struct model *model, bool emulated,
		      const struct paper_case *c)
{
	_cleanup_(freep) char *mask = mask_hex_of(model, &c->mask);
	_cleanup_(freep) char *theirs = c->competitor > 0 ? mask_hex_of(model, &c->theirs) : NULL;
	struct json_object *map = json_map(list, NULL);

	JSON_FIELDS(map, ("emulated", emulated), ("set", paper_sets[c->set]),
		    ("layout", c->layout));
	JSON_MEMBERS(map, c, threads, queues, cus);
	JSON_FIELDS(map, ("effective_cus", c->effective), ("cu_mask", mask),
		    ("competitor_threads", c->competitor, 0), ("competitor_mask", theirs),
		    ("median_usec", c->median.median), ("low_usec", c->median.low),
		    ("high_usec", c->median.high));
	JSON_MEMBERS(map, c, outliers);
	json_samples(map, c);
}

static void json_laws(struct json_object *map, const struct paper *paper)
{
	JSON_ROWS(map, "laws", law, at < PAPER_KERNELS ? &paper->law[at] : NULL,
		  ("threads", law->threads), ("a_usec", law->fit.a_usec),
		  ("b_usec", law->fit.b_usec), ("fitted", law->fitted), ("judged", law->judged),
		  ("median_error_percent", law->fit.median_error),
		  ("worst_error_percent", law->fit.worst_error));
}

static struct json_object *paper_report(const struct gpuarb_gpu *gpu, const struct model *model,
					const struct paper *paper)
{
	struct json_object *map = json_map(NULL, NULL), *list;
	bool emulated = paper->calibration.emulated;

	json_text(map, "schema", PAPER_SCHEMA);
	json_number(map, "version", 1);
	JSON_FIELDS(map, ("date", paper->calibration.date), ("emulated", emulated),
		    ("gpu", gpu->name), ("device", gpu->device), ("gfx_target", gpu->gfx_target),
		    ("cus", gpu->cus), ("seed", paper->seed), ("planned", paper->n));
	json_number(map, "warm_up", PAPER_WARM);
	json_number(map, "clock_jumps", paper->calibration.clock_jumps);
	list = json_list(map, "cases");
	for (size_t i = 0; i < paper->n; i++)
		if (paper->list[i].done)
			json_case(list, model, emulated, &paper->list[i]);
	json_laws(map, paper);
	calibration_report_missing(map, &paper->calibration);
	return map;
}

/* ---- the directory --------------------------------------------------------------------------- */

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

static int write_json(const struct command *command, struct json_object *report)
{
	char path[PATH_MAX];
	FILE *file;
	int r = open_new(command, "paper.json", path, &file);

	if (r != EXIT_OK)
		return r;
	fprintf(file, "%s\n", json_line(report));
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
	struct json_object *report = paper_report(bench->gpu, &bench->model, paper);
	int r = write_json(command, report);
	int printed = report_print(command, report, command->json ? NULL : "--text", "-");

	if (measured != EXIT_OK)
		return measured;
	if (r == EXIT_OK)
		r = printed;
	if (r == EXIT_OK)
		r = report_draw(command, command->paper);
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
