/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbctl calibrate on GPUs that answer from a model. */

#include <errno.h>
#include <math.h>

#include "check.h"
#include "client/calibrate/calibration.h"
#include "latency-model.h"

struct run {
	struct model gpu;
	struct latency_model model;
	struct device device;
	struct stop stop;
	struct calibration calibration;
};

static int measure(struct run *run, const char *profile, const char *target)
{
	struct calibration_run how = { .target = target };

	run->gpu = latency_gpu(profile);
	run->model.gpu = &run->gpu;
	latency_model_open(&run->model, &run->device);
	run->stop = (struct stop){ latency_model_stop, &run->model };
	how.device = &run->device;
	how.stop = &run->stop;
	how.model = &run->gpu;
	calibration_plan(&run->gpu, &run->calibration);
	return calibration_measure(&how, &run->calibration);
}

TEST(law_of_the_model_is_found_on_every_kind_of_gpu)
{
	static const struct {
		const char *profile, *target;
		bool cliff;
	} rows[] = {
		{ "radeon-vii", "gfx906", true },  { "mi250", "gfx90a", true },
		{ "mi300x-spx", "gfx942", true },  { "mi300x-cpx", "gfx942", true },
		{ "rx7800xt", "gfx1101", true },   { "r9700", "gfx1201", true },
		{ "strix-halo", "gfx1151", true }, { "mi308x", "gfx942", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run run = { 0 };
		const struct calibration *c = &run.calibration;

		CHECK(measure(&run, rows[i].profile, rows[i].target) == 0);
		printf("  %s: %zu masks, b %.1f %%, worst error %.2f %%, cliff %.1f\n",
		       rows[i].profile, c->n, c->law.constant, c->law.worst_error, c->cliff);
		CHECK(c->n >= 6 && c->n < CALIBRATION_POINTS && c->honoured == c->n);
		CHECK(c->emulated && fabs(c->law.constant - 10) < 1 && c->law.worst_error < 1);
		CHECK((c->cliff > 1) == rows[i].cliff);
		CHECK(run.model.live == 0 && run.model.peak == 1);
		CHECK(calibration_estimate(c) > 0);
	}
}

TEST(masks_that_a_gpu_ignores_are_found)
{
	struct run run = { .model.ignores_masks = true };

	CHECK(measure(&run, "mi300x-spx", "gfx942") == 0);
	CHECK(run.calibration.honoured < run.calibration.n);
	for (size_t i = 0; i < run.calibration.n; i++)
		CHECK(run.calibration.point[i].occupied == 304);
}

TEST(times_that_differ_are_repeated)
{
	struct run run = { .model.noise = 0.5 };
	unsigned most = 0;

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	for (size_t i = 0; i < run.calibration.n; i++)
		most = run.calibration.point[i].repeats > most ? run.calibration.point[i].repeats
							       : most;
	CHECK(most == CALIBRATION_REPEATS_MAX);
}

TEST(failures_of_the_device_end_the_measurement)
{
	static const struct {
		struct latency_model model;
		int result;
	} rows[] = {
		{ { .answer = STAYS_SILENT }, -ENODATA },
		{ { .answer = IS_CUT_OFF }, -EPROTO },
		{ { .fail_at = 3, .fail_with = -EBUSY }, -EBUSY },
		{ { .stop_at = 2, .stop_with = -EINTR }, -EINTR },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run run = { .model = rows[i].model };

		CHECK(measure(&run, "radeon-vii", "gfx906") == rows[i].result);
		CHECK(run.model.live == 0);
	}
}

TEST(registers_of_another_target_are_impossible)
{
	struct run run = { 0 };

	CHECK(measure(&run, "rx7800xt", "gfx1201") == 0);
	run = (struct run){ 0 };
	(void)measure(&run, "mi300x-spx", "gfx1201");
	CHECK(run.calibration.honoured < run.calibration.n);
}
