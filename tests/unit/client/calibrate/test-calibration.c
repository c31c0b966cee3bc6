/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarbctl calibrate on GPUs that answer from a model. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "client/calibrate/calibration.h"
#include "latency-model.h"

struct run {
	struct model gpu;
	struct latency_model model;
	struct device device;
	struct stop stop;
	struct calibration calibration;
	unsigned neighbours;
	unsigned starts;     /* of partners */
	const char *problem; /* the sentence of the device */
	bool fails;          /* the first start does */
	bool warms;          /* the GPU is hot for a while after the first rounds of neighbours */
};

/* Of its partners, the second round draws the slow state where the model is asked to. */
static int partners_start(void *data, const struct work *work, const struct cuset *sets, unsigned n)
{
	struct run *run = data;
	struct cuset all = { 0 };

	for (unsigned i = 0; i < n; i++) {
		struct cuset both;

		for (unsigned pair = 0; pair < CUSET_PAIRS; pair++) {
			both.pair[pair] = all.pair[pair] & sets[i].pair[pair];
			all.pair[pair] |= sets[i].pair[pair];
		}
		/* The ladder runs all of them on the whole GPU. */
		CHECK(cuset_count(&both) == 0 ||
		      cuset_count(&sets[i]) == cuset_count(&run->gpu.all));
		CHECK(cuset_count(&sets[i]) == cuset_count(&sets[0]));
	}
	if (run->starts == 0 && run->fails) {
		run->starts++;
		return -ECHILD;
	}
	run->model.beside = n;
	run->model.beside_kind = work->kind;
	if (run->starts++ == 1 && run->model.bistable)
		run->model.beside *= 4;
	if (run->starts == CALIBRATION_ROUNDS && run->warms) {
		run->model.hot_from = run->model.games;
		run->model.hot_to = run->model.games + 20;
	}
	return 0;
}

static int partners_check(void *)
{
	return 0;
}

static void partners_stop(void *data)
{
	struct run *run = data;

	run->model.beside = 0;
}

static int measure(struct run *run, const char *profile, const char *target)
{
	const struct partners partners = { partners_start, partners_check, partners_stop, run };
	struct calibration_run how = { .target = target, .partners = &partners };
	int r;

	run->gpu = latency_gpu(profile);
	run->model.gpu = &run->gpu;
	latency_model_open(&run->model, &run->device);
	if (run->problem)
		snprintf(run->device.problem, sizeof(run->device.problem), "%s", run->problem);
	run->stop = (struct stop){ latency_model_stop, &run->model };
	how.device = &run->device;
	how.stop = &run->stop;
	how.model = &run->gpu;
	how.calibration = &run->calibration;
	calibration_plan(&run->gpu, &run->calibration);
	interference_plan(&run->gpu, run->neighbours, &run->calibration);
	how.waves = calloc(run->calibration.groups, sizeof(*how.waves));
	CHECK(how.waves);
	r = costs_measure(&how);
	if (r >= 0)
		r = calibration_measure(&how);
	if (r >= 0)
		r = interference_measure(&how);
	if (r >= 0)
		r = ladder_measure(&how, 5, run->neighbours + 1);
	if (r >= 0 && run->model.slots > 0)
		r = ladder_oversubscribe(&how, run->model.slots);
	free(how.waves);
	return r;
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
		CHECK(fabs(c->memory_law.constant - 40) < 1 && c->memory_law.worst_error < 1);
		CHECK(c->costs.create == 9300 && c->costs.change == 55 &&
		      c->costs.preemption == 41);
		CHECK(c->clock_jumps == 0 && c->pauses == 0 && c->n_beside == 0);
		CHECK(c->n >= 6 && c->n < CALIBRATION_POINTS && c->honoured == c->n);
		CHECK(c->emulated && fabs(c->law.constant - 10) < 1 && c->law.worst_error < 1);
		CHECK((c->cliff > 1) == rows[i].cliff);
		CHECK(run.model.live == 0 && run.model.peak == 5);
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
		{ { .fail_at = 1, .fail_with = -EBUSY }, -EBUSY },
		{ { .stop_at = 2, .stop_with = -EINTR }, -EINTR },
		{ { .change_with = -ETIMEDOUT }, -ETIMEDOUT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run run = { .model = rows[i].model };

		CHECK(measure(&run, "radeon-vii", "gfx906") == rows[i].result);
		CHECK(run.model.live == 0);
	}
}

static void expect_missing(const struct run *run, size_t i, const char *step, const char *why)
{
	CHECK(i < run->calibration.n_missing);
	CHECK(strcmp(run->calibration.missing[i].step, step) == 0);
	CHECK(strstr(run->calibration.missing[i].why, why));
}

TEST(a_mask_that_fails_is_missing_and_all_others_are_measured)
{
	struct run all = { 0 }, run = { .model = { .fail_at = 3, .fail_with = -ERANGE } };

	CHECK(measure(&all, "radeon-vii", "gfx906") == 0 && all.calibration.n_missing == 0);
	run.problem = "no CU in common";
	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(run.calibration.n == all.calibration.n - 1 && run.calibration.n_missing == 1);
	expect_missing(&run, 0, all.calibration.point[1].name, "no CU in common");
	CHECK(run.calibration.honoured == run.calibration.n);
	CHECK(run.calibration.law.worst_error < 0.5 && !*run.device.problem);
	CHECK(run.model.live == 0);
}

/* Without a sentence of the device it was a process beside this one that did not start. */
TEST(a_kernel_that_does_not_end_keeps_what_was_measured_before)
{
	struct run run = { .model = { .fail_at = 5, .fail_with = -ETIMEDOUT },
			   .problem = "a kernel has not ended" };

	CHECK(measure(&run, "radeon-vii", "gfx906") == -ETIMEDOUT);
	CHECK(run.calibration.n == 3 && run.calibration.n_missing == 1);
	run = (struct run){ .model = { .fail_at = 5, .fail_with = -ETIMEDOUT }, .problem = "" };
	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	expect_missing(&run, 0, run.calibration.missing[0].step, "first kernel in time");
}

TEST(neighbours_that_fail_are_missing)
{
	struct run run = { .neighbours = 3, .fails = true };

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(run.calibration.n_beside == 3 && run.calibration.n_missing == 1);
	expect_missing(&run, 0, "beside 1 that use memory", "beside this one has failed");
}

TEST(registers_of_another_target_are_impossible)
{
	struct run run = { 0 };

	CHECK(measure(&run, "rx7800xt", "gfx1201") == 0);
	run = (struct run){ 0 };
	CHECK(measure(&run, "mi300x-spx", "gfx1201") == -EPROTO && !run.calibration.begun);
}

TEST(mask_that_leaves_out_xccs_is_expected_to_occupy_them)
{
	struct run run = { 0 };
	const struct calibration *c = &run.calibration;
	const struct calibration_point *bad = NULL;

	CHECK(measure(&run, "mi300x-spx", "gfx942") == 0);
	for (size_t i = 0; i < c->n; i++)
		if (c->point[i].use == CALIBRATION_BAD)
			bad = &c->point[i];
	CHECK(bad && bad->honoured && bad->cus == 10 && bad->occupied == 304 - 38 + 10);
}

TEST(what_neighbours_cost_is_measured_by_kind_and_number)
{
	struct run run = { .neighbours = 3 };
	const struct calibration *c = &run.calibration;

	CHECK(measure(&run, "rx7800xt", "gfx1101") == 0);
	CHECK(c->n_beside == 4 && run.starts == 4 * CALIBRATION_ROUNDS + 3);
	CHECK(c->n_steps == 7 && c->step[0].queues == 1 && c->step[3].queues == 5);
	CHECK(fabs(c->step[3].usec / c->step[0].usec - 1.04) < 0.01);
	for (unsigned i = 2; i <= 4; i++)
		CHECK(c->step[2 + i].processes == i &&
		      fabs(c->step[2 + i].usec / c->step[0].usec - i) < 0.01);
	for (size_t i = 0; i < c->n_beside; i++) {
		const struct calibration_beside *b = &c->beside[i];
		double each = b->kind == NEIGHBOURS_MEMORY ? 0.25 : 0.1;

		CHECK(b->rounds == CALIBRATION_ROUNDS && !b->bistable);
		CHECK(fabs(b->worst - 1 - each * b->neighbours) < 0.01);
	}
}

TEST(pair_that_draws_a_slow_state_is_bistable)
{
	struct run run = { .neighbours = 1, .model.bistable = true };
	const struct calibration_beside *first = &run.calibration.beside[0];

	CHECK(measure(&run, "r9700", "gfx1201") == 0);
	CHECK(run.calibration.n_beside == 2 && first->bistable && fabs(first->worst - 2) < 0.01);
	CHECK(!run.calibration.beside[1].bistable);
}

TEST(run_during_which_the_clock_jumps_is_repeated)
{
	struct run run = { .model.jumps = 2 };

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(run.calibration.clock_jumps == 2 && run.calibration.law.worst_error < 1);
	CHECK(run.calibration.n_events == 2 && run.calibration.event[1].repeated);
	for (size_t i = 0; i < run.calibration.n_events; i++)
		CHECK(strstr(run.calibration.event[i].during, "whole"));
	run = (struct run){ .model.jumps = 1000 };
	CHECK(measure(&run, "radeon-vii", "gfx906") == -EPROTO);
	CHECK(run.model.live == 0);
}

TEST(mask_that_was_measured_on_a_hot_gpu_is_measured_again)
{
	struct run run = { .model = { .hot_from = 30, .hot_to = 45 } };
	const struct calibration *c = &run.calibration;

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(c->pauses > 0 && c->pauses <= CALIBRATION_COOL_MAX && c->law.worst_error < 1);
	run = (struct run){ .model = { .hot_from = 30, .hot_to = SIZE_MAX } };
	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(c->pauses == CALIBRATION_COOL_MAX && c->point[c->n - 1].throttled);
}

/* The steps that were measured with more queues than slots. */
static size_t count_oversubscribed(const struct calibration *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_steps; i++)
		n += c->step[i].oversubscribed;
	return n;
}

TEST(ladder_ends_at_the_step_of_an_oversubscribed_gpu)
{
	static const unsigned slots[] = { 1, 2, 4, 8, 24, 32, 64 };

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		struct run run = { .model.slots = slots[i] };
		const struct calibration *c = &run.calibration;

		CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
		CHECK(count_oversubscribed(c) > 0 && run.model.live == 0);
		CHECK(c->step[c->n_steps - 1].queues <= ladder_beyond(slots[i]));
		CHECK(run.model.peak <= ladder_beyond(slots[i]) || run.model.peak == 5);
		if (slots[i] < 24)
			continue;
		/* All slots, one queue more, and an eighth more. */
		CHECK(count_oversubscribed(c) == 2 && !c->step[3 + 1].oversubscribed);
		CHECK(c->step[c->n_steps - 1].usec > 4 * c->step[0].usec);
	}
}

TEST(gpu_that_hangs_oversubscribed_ends_the_ladder_and_keeps_the_report)
{
	struct run run = { .model = { .slots = 24, .hangs_at = 27 } };
	const struct calibration *c = &run.calibration;
	const struct calibration_step *last;

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	last = &c->step[c->n_steps - 1];
	CHECK(last->queues == 27 && isnan(last->usec) && last->oversubscribed);
	CHECK(c->honoured == c->n);
}

TEST(neighbours_that_were_measured_on_a_hot_gpu_are_measured_again)
{
	struct run run = { .neighbours = 1, .warms = true };
	const struct calibration *c = &run.calibration;

	CHECK(measure(&run, "radeon-vii", "gfx906") == 0);
	CHECK(c->n_events == c->pauses && c->pauses > 0 && c->pauses < CALIBRATION_COOL_MAX);
	CHECK(strcmp(c->event[0].during, "neighbours") == 0 && c->event[0].repeated);
	CHECK(c->event[0].slower > CALIBRATION_SPREAD && c->event[0].seconds >= 0);
	for (size_t i = 0; i < c->n_beside; i++)
		CHECK(!c->beside[i].throttled && c->beside[i].rounds == CALIBRATION_ROUNDS &&
		      c->beside[i].worst < 1.3);
}
