/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbctl calibrate --paper on a GPU that answers from a model. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "client/calibrate/paper.h"
#include "client/calibrate/sample.h"
#include "fake-sysfs.h"
#include "latency-model.h"
#include "scratch.h"
#include "util/base.h"

#define HWMON "sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4"

struct run {
	struct model gpu;
	struct latency_model model;
	struct device device;
	struct stop stop;
	struct paper paper;
	unsigned starts, dies_at; /* of competitors; the check of this one fails */
	size_t saved, full_at;    /* cases; this one finds no room */
	const char *problem;
};

static int partners_start(void *data, const struct work *work, const struct cuset *sets, unsigned n)
{
	struct run *run = data;

	CHECK(n == 1 && cuset_count(&sets[0]) > 0);
	CHECK(work->threads == 256 || work->threads == 1024);
	run->starts++;
	run->model.beside = 1;
	run->model.beside_kind = NEIGHBOURS_MEMORY;
	return 0;
}

static int partners_check(void *data)
{
	const struct run *run = data;

	return run->starts == run->dies_at ? -ECHILD : 0;
}

static void partners_stop(void *data)
{
	struct run *run = data;

	run->model.beside = 0;
}

static void sense(void *, struct sample *ret)
{
	ret->mhz = 1700;
}

static int save(void *data, const struct paper_case *c)
{
	struct run *run = data;

	CHECK(c->done && c->n >= PAPER_RUNS && c->n <= PAPER_RUNS_MAX);
	return ++run->saved == run->full_at ? -ENOSPC : 0;
}

static int measure(struct run *run, const char *profile, const char *target)
{
	const struct partners partners = { partners_start, partners_check, partners_stop, run };
	struct calibration_run how = { .target = target, .partners = &partners };
	const struct paper_run paper = { &how, &run->paper, sense, save, run };
	int r;

	run->gpu = latency_gpu(profile);
	run->model.gpu = &run->gpu;
	latency_model_open(&run->model, &run->device);
	snprintf(run->device.problem, sizeof(run->device.problem), "%s",
		 run->problem ? run->problem : "");
	run->stop = (struct stop){ latency_model_stop, &run->model };
	how.device = &run->device;
	how.stop = &run->stop;
	how.model = &run->gpu;
	CHECK(paper_plan(&run->gpu, true, 5, 11, &run->paper) == 0);
	how.calibration = &run->paper.calibration;
	how.waves = calloc(paper_waves(), sizeof(*how.waves));
	CHECK(how.waves);
	r = paper_measure(&paper);
	free(how.waves);
	return r;
}

static const struct paper_case *find_case(const struct paper *paper, const char *name)
{
	char buf[96];

	for (size_t i = 0; i < paper->n; i++)
		if (strcmp(paper_name(&paper->list[i], buf, sizeof(buf)), name) == 0)
			return &paper->list[i];
	fprintf(stderr, "no case %s\n", name);
	abort();
}

TEST(masks_are_dealt_and_packed_up_to_all_cus)
{
	struct model gpu = latency_gpu("radeon-vii");
	const struct paper_case *c;
	struct paper paper;

	CHECK(paper_plan(&gpu, true, 24, 1, &paper) == 0);
	CHECK(find_case(&paper, "MM1024, distributed, 6 CUs")->effective == 4);
	CHECK(find_case(&paper, "MM256, packed, 15 CUs")->effective == 15);
	CHECK(find_case(&paper, "MM960, packed, 16 CUs")->effective == 2);
	CHECK(find_case(&paper, "MM960, distributed, 60 CUs")->effective == 60);
	c = find_case(&paper, "MM1024, one CU shared, 31 CUs beside MM256");
	CHECK(c->effective == 3 && cuset_count(&c->theirs) == 30);
	c = find_case(&paper, "MM1024, the rest, 28 CUs beside MM1024");
	CHECK(cuset_count(&c->theirs) == 32);
	CHECK(find_case(&paper, "MM1024 x 24, all CUs, 60 CUs")->queues == 24);
	CHECK(paper.n == 3 * (60 + 59 + 12) + 6 && paper_estimate(&paper) > 10);
	paper_done(&paper);
}

TEST(the_order_follows_from_the_seed)
{
	struct model gpu = latency_gpu("v620");
	struct paper a, b, c;
	bool met[2000] = { false };

	CHECK(paper_plan(&gpu, false, 3, 5, &a) == 0 && paper_plan(&gpu, false, 3, 5, &b) == 0);
	CHECK(paper_plan(&gpu, false, 3, 6, &c) == 0 && a.n == c.n && a.n < 2000);
	CHECK(memcmp(a.order, b.order, a.n * sizeof(*a.order)) == 0);
	CHECK(memcmp(a.order, c.order, a.n * sizeof(*a.order)) != 0);
	for (size_t i = 0; i < a.n; i++) {
		CHECK(a.order[i] < a.n && !met[a.order[i]]);
		met[a.order[i]] = true;
	}
	paper_done(&a);
	paper_done(&b);
	paper_done(&c);
}

TEST(law_of_one_half_holds_for_the_other)
{
	static const char *const profiles[][2] = { { "strix-halo", "gfx1151" },
						   { "mi308x", "gfx942" } };

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct run run = { 0 };
		const struct paper *paper = &run.paper;

		CHECK(measure(&run, profiles[i][0], profiles[i][1]) == 0);
		CHECK(run.saved == paper->n && paper->calibration.n_missing == 0);
		for (size_t k = 0; k < PAPER_KERNELS; k++) {
			CHECK(paper->law[k].fit.worst_error < 1 && paper->law[k].judged > 3);
			CHECK(paper->law[k].fitted - paper->law[k].judged <= 1);
		}
		CHECK(paper->list[0].sample[0].mhz == 1700 &&
		      isnan(paper->list[0].sample[0].celsius));
		CHECK(run.model.live == 0 && run.starts > 10);
		paper_done(&run.paper);
	}
}

TEST(times_that_differ_are_measured_more_often)
{
	struct run run = { .model = { .noise = 0.3 } };
	const struct paper_case *c;

	CHECK(measure(&run, "strix-halo", "gfx1151") == 0);
	c = &run.paper.list[0];
	CHECK(c->n > PAPER_RUNS && c->median.low < c->median.median &&
	      c->median.high > c->median.median);
	paper_done(&run.paper);
}

TEST(a_competitor_that_dies_costs_its_case)
{
	struct run run = { .dies_at = 2 };

	CHECK(measure(&run, "strix-halo", "gfx1151") == 0);
	CHECK(run.paper.calibration.n_missing == 1 && run.saved == run.paper.n - 1);
	CHECK(strstr(run.paper.calibration.missing[0].step, "beside MM"));
	CHECK(run.model.live == 0);
	paper_done(&run.paper);
}

TEST(a_kernel_without_end_and_a_lost_gpu_end_the_measurement)
{
	struct run hangs = { .model = { .fail_at = 9, .fail_with = -ETIMEDOUT },
			     .problem = "a kernel has not ended" };
	struct run lost = { .model = { .fail_at = 9, .fail_with = -EIO, .fail_on = true } };

	CHECK(measure(&hangs, "strix-halo", "gfx1151") == 0);
	CHECK(hangs.saved < 9 && hangs.paper.calibration.n_missing == 2);
	paper_done(&hangs.paper);

	CHECK(measure(&lost, "strix-halo", "gfx1151") == 0);
	CHECK(lost.saved < 9 && lost.paper.calibration.n_missing == PAPER_GIVE_UP + 1);
	paper_done(&lost.paper);
}

TEST(a_full_disk_ends_the_measurement)
{
	struct run run = { .full_at = 3 };

	CHECK(measure(&run, "strix-halo", "gfx1151") == -ENOSPC);
	CHECK(run.saved == 3 && run.model.live == 0);
	paper_done(&run.paper);
}

TEST(interval_has_the_median_and_is_narrower_with_more_values)
{
	double values[64];
	struct interval few, many;
	uint64_t seed = 1;

	for (size_t i = 0; i < 64; i++)
		values[i] = 1000 + (double)sample_draw(&seed, 1000);
	few = sample_interval(values, 5, 3);
	many = sample_interval(values, 64, 3);
	CHECK(few.low <= few.median && few.median <= few.high);
	CHECK(many.low >= 1000 && many.high <= 2000 && many.low < many.high);
	CHECK(many.high - many.low < 500);
	for (size_t i = 0; i < 5; i++)
		values[i] = 100;
	few = sample_interval(values, 5, 3);
	CHECK(few.low >= 100 && few.low <= 100 && few.high >= 100 && few.high <= 100);
	values[4] = 150;
	CHECK(sample_outliers(values, 5) == 1);
	values[4] = 50;
	CHECK(sample_outliers(values, 5) == 1);
}

TEST(sensors_are_those_of_the_card)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	struct sensor sensor;

	CHECK(fake_sysfs_print(scratch.path, HWMON "/freq1_input", "1801000000\n") == 0);
	CHECK(fake_sysfs_print(scratch.path, HWMON "/temp1_input", "hot\n") == 0);
	sensor_find(scratch.path, "0000:03:00.0/2", &sensor);
	CHECK(fabs(sensor_mhz(&sensor) - 1801) < 0.001 && isnan(sensor_celsius(&sensor)));
	sensor_find(scratch.path, "0000:04:00.0", &sensor);
	CHECK(isnan(sensor_mhz(&sensor)) && isnan(sensor_celsius(&sensor)));
}
