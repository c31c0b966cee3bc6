/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/paper.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"
#include "util/grow.h"

static const unsigned kernels[PAPER_KERNELS] = { 256, 960, 1024 };
static const unsigned competitors[] = { 0, 256, 1024 };

const char *const paper_sets[] = {
	[PAPER_MASKS] = "masks",
	[PAPER_COMPETITOR] = "competitor",
	[PAPER_QUEUES] = "queues",
};

struct work paper_work(unsigned threads)
{
	const unsigned elements = MULTIPLY_SIZE * MULTIPLY_SIZE;

	return (struct work){ .kind = NEIGHBOURS_COMPUTE,
			      .groups = (elements + threads - 1) / threads,
			      .threads = threads };
}

unsigned paper_waves(void)
{
	return paper_work(kernels[0]).groups;
}

const char *paper_name(const struct paper_case *c, char *buf, size_t size)
{
	char beside[32] = "", queues[32] = "";

	if (c->competitor > 0)
		snprintf(beside, sizeof(beside), " beside MM%u", c->competitor);
	if (c->queues > 1)
		snprintf(queues, sizeof(queues), " x %u", c->queues);
	snprintf(buf, size, "MM%u%s, %s, %u CUs%s", c->threads, queues, c->layout, c->cus, beside);
	return buf;
}

/* ---- the plan ----------------------------------------------------------------------------- */

static int add(const struct model *model, struct paper *paper, const struct paper_case *like)
{
	struct paper_case *c = grow(&paper->list, &paper->n, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = *like;
	c->queues = max_u(c->queues, 1);
	c->cus = cuset_count(&c->mask);
	c->effective = geometry_effective(&model->geometry, &c->mask);
	return 0;
}

/* How many units an engine has of n that are distributed to the engines in turn, or fill them one after the other. */
static void distribute(const struct model *model, unsigned engines, unsigned n, bool packed,
		       struct cuset *ret)
{
	unsigned units[CUSET_ENGINES] = { 0 };

	for (unsigned e = 0; n > 0; e = (e + 1) % engines) {
		unsigned left = calibration_height(model, e + 1) - units[e];
		unsigned some = min_u(packed ? left : min_u(left, 1), n);

		units[e] += some;
		n -= some;
	}
	*ret = (struct cuset){ 0 };
	for (unsigned e = 0; e < engines; e++)
		calibration_add(model, e, units[e], ret);
}

/* Engines that have units on every XCC. */
static unsigned count_engines(const struct model *model, unsigned *ret_units)
{
	unsigned engines = 0;

	*ret_units = 0;
	for (unsigned e = 0; e < model->geometry.engines; e++) {
		unsigned units = calibration_units(model, e);

		engines += units > 0;
		*ret_units += units;
	}
	return engines;
}

static int add_masks(const struct model *model, unsigned threads, struct paper *paper)
{
	unsigned units, engines = count_engines(model, &units);
	struct paper_case c = { .set = PAPER_MASKS, .threads = threads };
	int r = 0;

	for (unsigned n = 1; n <= units && r == 0; n++) {
		c.layout = "distributed";
		distribute(model, engines, n, false, &c.mask);
		r = add(model, paper, &c);
		c.layout = "packed";
		if (r == 0)
			distribute(model, engines, n, true, &c.mask);
		if (r == 0 && n < units && engines > 1)
			r = add(model, paper, &c);
	}
	if (r == 0 && cuset_count(&c.mask) < cuset_count(&model->all)) {
		c.layout = "whole GPU";
		c.mask = model->all;
		r = add(model, paper, &c);
	}
	return r;
}

/* Who has what: both all CUs, half of each engine, half of the engines, and the same with a CU of the
 * competitor's more. Returns whether the GPU can be shared so. */
static bool lay_out(const struct model *model, unsigned number, struct paper_case *c)
{
	static const char *const names[] = { "all CUs", "the rest", "own engines",
					     "one CU shared" };
	unsigned units, engines = count_engines(model, &units), half = engines / 2;

	c->layout = names[number];
	c->mask = c->theirs = number == 0 ? model->all : (struct cuset){ 0 };
	for (unsigned e = 0; e < engines && number > 0; e++) {
		unsigned height = calibration_height(model, e + 1);

		if (number == 1) {
			calibration_add(model, e, height / 2, &c->mask);
			calibration_add(model, e, height, &c->theirs);
		} else {
			calibration_add(model, e, height, e < half ? &c->mask : &c->theirs);
		}
	}
	for (unsigned pair = 0; pair < CUSET_PAIRS && number == 1; pair++)
		c->theirs.pair[pair] &= ~c->mask.pair[pair];
	if (number == 3 && half > 0)
		calibration_add(model, half, 1, &c->mask);
	return cuset_count(&c->mask) > 0 && cuset_count(&c->theirs) > 0 &&
	       geometry_on_every_xcc(&model->geometry, &c->mask) &&
	       geometry_on_every_xcc(&model->geometry, &c->theirs);
}

/* Alone on the same mask, too: for the slow-down. */
static int add_competitors(const struct model *model, unsigned threads, struct paper *paper)
{
	struct paper_case c = { .set = PAPER_COMPETITOR, .threads = threads };
	int r = 0;

	for (unsigned number = 0; number < 4; number++) {
		if (!lay_out(model, number, &c))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(competitors) && r == 0; i++) {
			c.competitor = competitors[i];
			r = add(model, paper, &c);
		}
	}
	return r;
}

static int add_queues(const struct model *model, unsigned most, struct paper *paper)
{
	struct paper_case c = {
		.set = PAPER_QUEUES, .layout = "all CUs", .threads = 1024, .mask = model->all
	};
	int r = 0;

	for (unsigned n = 1; n <= most && r == 0; n = n < most ? min_u(2 * n, most) : n + 1) {
		c.queues = n;
		r = add(model, paper, &c);
	}
	return r;
}

static int shuffle(struct paper *paper)
{
	uint64_t seed = paper->seed;

	paper->order = calloc(paper->n, sizeof(*paper->order));
	if (!paper->order)
		return -ENOMEM;
	for (size_t i = 0; i < paper->n; i++) {
		size_t k = sample_draw(&seed, i + 1);

		paper->order[i] = paper->order[k];
		paper->order[k] = i;
	}
	return 0;
}

int paper_plan(const struct model *model, bool competitor, unsigned queues, uint64_t seed,
	       struct paper *ret)
{
	int r = 0;

	*ret = (struct paper){ .seed = seed, .calibration = { .during = "" } };
	for (size_t i = 0; i < PAPER_KERNELS && r == 0; i++) {
		r = add_masks(model, kernels[i], ret);
		if (r == 0 && competitor)
			r = add_competitors(model, kernels[i], ret);
	}
	if (r == 0)
		r = add_queues(model, min_u(queues, CALIBRATION_QUEUES), ret);
	return r < 0 ? r : shuffle(ret);
}

void paper_done(struct paper *paper)
{
	free(paper->list);
	free(paper->order);
	*paper = (struct paper){ 0 };
}

double paper_estimate(const struct paper *paper)
{
	double sum = 0;

	/* 176.7 ms on one CU: tests/data/measured, cu_mask_distributed.tsv. */
	for (size_t i = 0; i < paper->n; i++)
		sum += 0.177 / max_u(paper->list[i].effective, 1) *
			       (paper->list[i].competitor > 0 ? 2 : 1) * (PAPER_WARM + PAPER_RUNS) +
		       (paper->list[i].competitor > 0 ? 2 : 0);
	return sum;
}

/* ---- one case ----------------------------------------------------------------------------- */

static void values_of(const struct paper_case *c, double *ret)
{
	for (unsigned i = 0; i < c->n; i++)
		ret[i] = c->set == PAPER_QUEUES ? c->sample[i].host_usec : c->sample[i].usec;
}

static bool enough(const struct paper *paper, struct paper_case *c)
{
	double values[PAPER_RUNS_MAX];

	if (c->n == 0 || c->n % PAPER_RUNS > 0)
		return false;
	values_of(c, values);
	c->median = sample_interval(values, c->n, paper->seed);
	c->outliers = sample_outliers(values, c->n);
	return c->n == PAPER_RUNS_MAX ||
	       c->median.high - c->median.low <= PAPER_WIDTH * c->median.median;
}

static int take_sample(const struct paper_run *paper, const struct paper_case *c,
		       void *const *streams, struct sample *ret)
{
	const struct calibration_run *run = paper->run;
	const struct work work = paper_work(c->threads);
	int r = run->stop->wait(run->stop->data, 0);

	*ret = (struct sample){ NAN, NAN, NAN, NAN };
	if (paper->sense)
		paper->sense(paper->data, ret);
	if (r >= 0 && c->queues > 1)
		r = run->device->calls->together(run->device->data, streams, c->queues, &work,
						 &ret->host_usec);
	else if (r >= 0)
		r = calibration_time(run, streams[0], &work, NULL, &ret->usec, &ret->host_usec);
	if (r >= 0 && c->competitor > 0)
		r = run->partners->check(run->partners->data);
	return r;
}

static int take_samples(const struct paper_run *paper, struct paper_case *c, void *const *streams)
{
	struct sample warm;
	int r = 0;

	for (unsigned i = 0; i < PAPER_WARM && r >= 0; i++)
		r = take_sample(paper, c, streams, &warm);
	while (r >= 0 && !enough(paper->paper, c)) {
		r = take_sample(paper, c, streams, &c->sample[c->n]);
		c->n += r >= 0;
	}
	return r;
}

static int measure_case(const struct paper_run *paper, struct paper_case *c)
{
	const struct calibration_run *run = paper->run;
	const struct work theirs = paper_work(max_u(c->competitor, 1));
	void *streams[CALIBRATION_QUEUES];
	unsigned n = 0;
	int r = 0;

	for (; n < c->queues && r >= 0; n += r >= 0)
		r = calibration_stream(run, &c->mask, &streams[n]);
	if (r >= 0 && c->competitor > 0)
		r = run->partners->start(run->partners->data, &theirs, &c->theirs, 1);
	if (r >= 0)
		r = take_samples(paper, c, streams);
	if (c->competitor > 0)
		run->partners->stop(run->partners->data);
	for (unsigned i = 0; i < n; i++)
		run->device->calls->destroy(run->device->data, streams[i]);
	c->done = r >= 0;
	return r;
}

/* ---- all of them -------------------------------------------------------------------------- */

/* Every other mask of the kernel, by the plan; fitted and judged by turns. */
static size_t choose(const struct paper *paper, unsigned threads, bool odd, struct law_point *ret)
{
	size_t n = 0, number = 0;

	for (size_t i = 0; i < paper->n; i++) {
		const struct paper_case *c = &paper->list[i];

		if (c->set != PAPER_MASKS || c->threads != threads || !c->done)
			continue;
		if (number++ % 2 == odd)
			ret[n++] = (struct law_point){ c->effective, c->median.median };
	}
	return n;
}

static int fit(const struct paper *paper, unsigned threads, struct paper_law *ret)
{
	_cleanup_(freep) struct law_point *points = calloc(max_u((unsigned)paper->n, 1),
							   sizeof(*points));

	if (!points)
		return -ENOMEM;
	*ret = (struct paper_law){ .threads = threads, .fit = { NAN, NAN, NAN, NAN, NAN } };
	ret->fitted = choose(paper, threads, false, points);
	if (ret->fitted == 0 || law_fit(points, ret->fitted, &ret->fit) < 0)
		return 0;
	ret->judged = choose(paper, threads, true, points);
	if (ret->judged > 0)
		law_judge(points, ret->judged, &ret->fit);
	return 0;
}

static int measure_all(const struct paper_run *paper)
{
	struct calibration *events = &paper->paper->calibration;
	unsigned failed = 0;
	int r = 0;

	for (size_t i = 0; i < paper->paper->n && r >= 0; i++) {
		struct paper_case *c = &paper->paper->list[paper->paper->order[i]];
		char name[96];

		if (paper->run->progress)
			paper->run->progress("cases", i, paper->paper->n);
		events->during = paper_name(c, name, sizeof(name));
		r = measure_case(paper, c);
		failed = r < 0 ? failed + 1 : 0;
		if (r >= 0)
			r = paper->save(paper->data, c);
		else
			r = calibration_miss(paper->run, name, r);
		events->during = "";
		if (r >= 0 && failed < PAPER_GIVE_UP)
			continue;
		if (r >= 0 || r == -ETIMEDOUT)
			return calibration_miss(paper->run, "all that follows", -ECANCELED);
	}
	return r;
}

int paper_measure(const struct paper_run *paper)
{
	int r = measure_all(paper), result = 0;

	for (size_t i = 0; i < PAPER_KERNELS && result == 0; i++)
		result = fit(paper->paper, kernels[i], &paper->paper->law[i]);
	return r < 0 ? r : result;
}
