/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/calibration.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/calibrate/occupied.h"
#include "client/latency/matrix.h"
#include "util/base.h"

/* ---- the masks ---------------------------------------------------------------------------- */

/* The units that each of the first engines has on every XCC. */
static unsigned height(const struct model *model, unsigned engines)
{
	unsigned least = UINT_MAX;

	for (unsigned x = 0; x < model->geometry.xccs; x++)
		for (unsigned e = 0; e < engines; e++)
			least = min_u(least, geometry_engine_cus(&model->geometry, x, e));
	return least / geometry_step(&model->geometry);
}

/* Adds the first units of an engine on every XCC to the set, array 0 first. */
static void add_units(const struct model *model, unsigned engine, unsigned units, struct cuset *set)
{
	unsigned step = geometry_step(&model->geometry);

	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		unsigned pair = cuset_pair(x, engine), taken = 0;

		for (unsigned cu = 0; cu < 32 && taken < units; cu += step) {
			uint32_t unit = ((UINT32_C(1) << step) - 1) << cu;

			if ((model->all.pair[pair] & unit) != unit)
				continue;
			set->pair[pair] |= unit;
			taken++;
		}
	}
}

static struct calibration_point *add_point(const struct model *model,
					   struct calibration *calibration,
					   enum calibration_use use, const struct cuset *set)
{
	struct calibration_point *point = &calibration->point[calibration->n];

	if (calibration->n == CALIBRATION_POINTS)
		return NULL;
	calibration->n++;
	*point = (struct calibration_point){
		.use = use,
		.set = *set,
		.cus = cuset_count(set),
		.effective = geometry_effective(&model->geometry, set),
	};
	return point;
}

static void add_rectangle(const struct model *model, struct calibration *calibration,
			  unsigned engines, unsigned units)
{
	struct calibration_point *point;
	struct cuset set = { 0 };

	for (unsigned e = 0; e < engines; e++)
		add_units(model, e, units, &set);
	point = add_point(model, calibration, CALIBRATION_LAW, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "%u x %u", engines,
			 units * geometry_step(&model->geometry));
}

static void add_rectangles(const struct model *model, struct calibration *calibration,
			   unsigned engines)
{
	unsigned most = height(model, engines), before = 0;

	for (unsigned part = 0; part <= 4; part++) {
		unsigned units = max_u(most * part / 4, 1);

		if (most > 0 && units != before)
			add_rectangle(model, calibration, engines, units);
		before = units;
	}
}

static void add_cliff(const struct model *model, struct calibration *calibration)
{
	struct calibration_point *point;
	struct cuset set = { 0 };

	if (model->geometry.engines < 2 || height(model, 2) < 2)
		return;
	add_units(model, 0, height(model, 1), &set);
	add_units(model, 1, 1, &set);
	point = add_point(model, calibration, CALIBRATION_CLIFF, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "a shader engine and a unit more");
}

void calibration_plan(const struct model *model, struct calibration *ret)
{
	unsigned engines = model->geometry.engines;

	*ret = (struct calibration){
		.groups = CALIBRATION_PER_CU * geometry_cus(&model->geometry),
	};
	for (unsigned used = 1; used < engines; used *= 2)
		add_rectangles(model, ret, used);
	add_rectangles(model, ret, engines);
	add_cliff(model, ret);
}

double calibration_estimate(const struct calibration *calibration)
{
	double sum = 0;

	/* 318 us for a work-group: tests/data/measured, cu_mask_distributed.tsv. */
	for (size_t i = 0; i < calibration->n; i++)
		sum += 318.0 * calibration->groups / calibration->point[i].effective *
		       (CALIBRATION_REPEATS + 1);
	return sum / 1e6;
}

/* ---- one mask ----------------------------------------------------------------------------- */

static double time_of(const struct wave *waves, unsigned n, double tick_ns)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned i = 0; i < n; i++) {
		first = waves[i].start < first ? waves[i].start : first;
		last = waves[i].end > last ? waves[i].end : last;
	}
	return (double)(last - first) * tick_ns / 1000;
}

/* Enough repeats: few, if they agree. A hot GPU, a change of its clock or another program shows as a
 * spread, and then more of them count. */
static bool enough(const double *usec, struct calibration_point *point)
{
	double sorted[CALIBRATION_REPEATS_MAX];
	unsigned n = point->repeats;

	if (n < CALIBRATION_REPEATS)
		return false;
	memcpy(sorted, usec, n * sizeof(*usec));
	point->usec = statistic_median(sorted, n); /* sorts them */
	point->spread = point->usec > 0 ? (sorted[n - 1] - sorted[0]) / point->usec * 100 : 0;
	return point->spread <= CALIBRATION_SPREAD || n == CALIBRATION_REPEATS_MAX;
}

static int repeat(const struct calibration_run *run, void *stream, unsigned groups,
		  struct wave *waves, struct calibration_point *point)
{
	const struct device *device = run->device;
	double usec[CALIBRATION_REPEATS_MAX], tick_ns;
	struct cuset seen = { 0 };
	int r;

	/* The first is for warming up. */
	r = device->calls->spin(device->data, stream, groups, CALIBRATION_SPINS, waves, &tick_ns);
	while (r >= 0 && !enough(usec, point)) {
		r = device->calls->spin(device->data, stream, groups, CALIBRATION_SPINS, waves,
					&tick_ns);
		if (r >= 0)
			r = occupied_add(run->target, waves, groups, &seen);
		if (r >= 0)
			usec[point->repeats++] = time_of(waves, groups, tick_ns);
	}
	if (r >= 0)
		point->honoured = occupied_judge(run->model, &point->set, &seen, &point->occupied);
	return r;
}

static int measure(const struct calibration_run *run, unsigned groups, struct wave *waves,
		   struct calibration_point *point)
{
	const struct device *device = run->device;
	uint32_t mask[CODEC_WORDS] = { 0 };
	void *stream;
	int r;

	codec_encode(&run->model->codec, &point->set, mask);
	r = device->calls->create(device->data, mask, codec_words(&run->model->codec), &stream);
	if (r < 0)
		return r;
	r = repeat(run, stream, groups, waves, point);
	device->calls->destroy(device->data, stream);
	return r;
}

/* ---- the law ------------------------------------------------------------------------------ */

/* Where masks are ignored, all times are equal, and there is no law. */
static void fit(struct calibration *c)
{
	struct law_point points[CALIBRATION_POINTS];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->point[i].use == CALIBRATION_LAW)
			points[n++] = (struct law_point){ c->point[i].effective, c->point[i].usec };
	if (law_fit(points, n, &c->law) < 0)
		c->law = (struct law_fit){ NAN, NAN, NAN, NAN, NAN };
}

/* The shader engine alone, against the same with a unit more. */
static double find_cliff(const struct model *model, const struct calibration *c)
{
	const struct calibration_point *with = &c->point[c->n - 1];
	unsigned whole = height(model, 1) * geometry_step(&model->geometry) * model->geometry.xccs;

	for (size_t i = 0; i < c->n && with->use == CALIBRATION_CLIFF; i++)
		if (c->point[i].use == CALIBRATION_LAW && c->point[i].cus == whole &&
		    cuset_engines(&c->point[i].set) == 1)
			return with->usec / c->point[i].usec;
	return 0;
}

int calibration_measure(const struct calibration_run *run, struct calibration *calibration)
{
	_cleanup_(freep) struct wave *waves = calloc(calibration->groups, sizeof(*waves));
	int r = 0;

	if (!waves)
		return -ENOMEM;
	for (size_t i = 0; i < calibration->n && r >= 0; i++) {
		if (run->progress)
			run->progress(i, calibration->n);
		r = run->stop->wait(run->stop->data, 0);
		if (r >= 0)
			r = measure(run, calibration->groups, waves, &calibration->point[i]);
		if (r >= 0 && calibration->point[i].usec <= 0)
			r = -EPROTO;
		if (r >= 0)
			calibration->honoured += calibration->point[i].honoured;
	}
	if (r < 0)
		return r;
	fit(calibration);
	calibration->cliff = find_cliff(run->model, calibration);
	calibration->emulated = run->device->emulated;
	return 0;
}
