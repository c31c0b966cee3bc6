/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "client/calibrate/calibration.h"
#include "util/base.h"

/* Part i of n of the GPU: units of every shader engine, as many as in each other part. An engine's units are
 * numbered across its arrays. */
static void cut(const struct model *model, unsigned i, unsigned n, struct cuset *ret)
{
	unsigned step = geometry_step(&model->geometry), least = UINT_MAX;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		if (model->all.pair[pair] != 0)
			least = min_u(least, cuset_count_word(model->all.pair[pair]) / step);
	*ret = (struct cuset){ 0 };
	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++) {
		unsigned number = 0, each = least / n;

		for (unsigned cu = 0; cu < 32; cu += step) {
			uint32_t unit = ((UINT32_C(1) << step) - 1) << cu;

			if ((model->all.pair[pair] & unit) != unit)
				continue;
			if (number >= i * each && number < (i + 1) * each)
				ret->pair[pair] |= unit;
			number++;
		}
	}
}

void interference_plan(const struct model *model, unsigned most, struct calibration *calibration)
{
	static const unsigned numbers[] = { 1, CALIBRATION_NEIGHBOURS };
	struct cuset part;

	for (enum neighbours kind = NEIGHBOURS_MEMORY; kind <= NEIGHBOURS_COMPUTE; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
			cut(model, 0, numbers[i] + 1, &part);
			if (numbers[i] <= most && cuset_count(&part) > 0)
				calibration->beside[calibration->n_beside++] =
					(struct calibration_beside){
						.kind = kind,
						.neighbours = numbers[i],
					};
		}
}

/* The time of both kinds of kernels on the first part. */
static int measure(const struct calibration_run *run, void *stream, double usec[static 2])
{
	unsigned n;
	double spread;
	int r = 0;

	for (enum neighbours kind = NEIGHBOURS_MEMORY; kind <= NEIGHBOURS_COMPUTE && r >= 0; kind++)
		r = calibration_median(run, stream, kind, NULL, &n, &usec[kind], &spread);
	return r;
}

static int round_of(const struct calibration_run *run, void *stream, const double alone[static 2],
		    struct calibration_beside *beside)
{
	const struct work work = { .kind = beside->kind };
	struct cuset sets[CALIBRATION_NEIGHBOURS];
	double usec[2];
	int r;

	for (unsigned i = 0; i < beside->neighbours; i++)
		cut(run->model, i + 1, beside->neighbours + 1, &sets[i]);
	r = run->partners->start(run->partners->data, &work, sets, beside->neighbours);
	if (r >= 0)
		r = measure(run, stream, usec);
	run->partners->stop(run->partners->data);
	if (r < 0)
		return r;
	beside->slowdown[beside->rounds++] =
		fmax(usec[NEIGHBOURS_MEMORY] / alone[NEIGHBOURS_MEMORY],
		     usec[NEIGHBOURS_COMPUTE] / alone[NEIGHBOURS_COMPUTE]);
	return 0;
}

static void judge(struct calibration_beside *beside)
{
	double least = INFINITY;

	for (unsigned i = 0; i < beside->rounds; i++) {
		beside->worst = fmax(beside->worst, beside->slowdown[i]);
		least = fmin(least, beside->slowdown[i]);
	}
	beside->bistable = beside->worst > least * CALIBRATION_BISTABLE;
}

static int measure_rounds(const struct calibration_run *run, void *stream,
			  struct calibration_beside *beside, size_t done, size_t planned)
{
	double alone[2], after[2], slower;
	int r;

	do {
		beside->rounds = 0;
		r = measure(run, stream, alone);
		while (r >= 0 && beside->rounds < CALIBRATION_ROUNDS) {
			if (run->progress)
				run->progress("rounds of neighbours", done + beside->rounds,
					      planned * CALIBRATION_ROUNDS);
			r = round_of(run, stream, alone, beside);
		}
		if (r >= 0)
			r = measure(run, stream, after);
		if (r < 0)
			return r;
		slower = (fmax(after[0] / alone[0], after[1] / alone[1]) - 1) * 100;
		beside->throttled = slower > CALIBRATION_SPREAD;
	} while (beside->throttled && (r = calibration_cool(run, slower)) > 0);
	return r;
}

static int measure_beside(const struct calibration_run *run, struct calibration_beside *beside,
			  size_t done, size_t planned)
{
	struct cuset set;
	void *stream;
	int r;

	cut(run->model, 0, beside->neighbours + 1, &set);
	r = calibration_stream(run, &set, &stream);
	if (r < 0)
		return r;
	r = measure_rounds(run, stream, beside, done, planned);
	run->device->calls->destroy(run->device->data, stream);
	judge(beside);
	return r;
}

int interference_measure(const struct calibration_run *run)
{
	struct calibration *c = run->calibration;
	size_t planned = c->n_beside;
	int r = 0;

	c->during = "neighbours";
	c->n_beside = 0;
	for (size_t i = 0; i < planned && r >= 0; i++) {
		struct calibration_beside beside = c->beside[i];
		char step[48];

		r = measure_beside(run, &beside, i * CALIBRATION_ROUNDS, planned);
		if (r >= 0) {
			c->beside[c->n_beside++] = beside;
			continue;
		}
		snprintf(step, sizeof(step), "beside %u that use %s", beside.neighbours,
			 neighbours_names[beside.kind]);
		r = calibration_miss(run, step, r);
	}
	return r;
}
