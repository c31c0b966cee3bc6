/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* ---- the ladder ------------------------------------------------------------------------------ */

static void add_step(struct calibration *c, unsigned queues, unsigned processes, double usec)
{
	if (c->n_steps < CALIBRATION_STEPS)
		c->step[c->n_steps++] = (struct calibration_step){ queues, processes, false, usec };
}

static void destroy_all(const struct calibration_run *run, void *const *streams, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		run->device->calls->destroy(run->device->data, streams[i]);
}

/* The work of one kernel, divided among so many queues of this process, each on the whole GPU. */
static int climb(const struct calibration_run *run, void *const *streams, unsigned queues)
{
	const struct device *device = run->device;
	const struct work work = { NEIGHBOURS_COMPUTE, run->calibration->groups / queues,
				   CALIBRATION_SPINS, 0 };
	double usec = NAN;
	int r = run->stop->wait(run->stop->data, 0);

	if (r >= 0)
		r = device->calls->together(device->data, streams, queues, &work, &usec);
	if (r >= 0 || r == -ETIMEDOUT)
		add_step(run->calibration, queues, 1, r < 0 ? NAN : usec);
	return r;
}

static int climb_queues(const struct calibration_run *run, void *const *streams, unsigned n)
{
	int r = 0;

	for (unsigned queues = 1; queues <= n && r >= 0;
	     queues = queues < n ? min_u(2 * queues, n) : n + 1)
		r = climb(run, streams, queues);
	return r;
}

/* One kernel, while other processes run kernels on the whole GPU, too. */
static int climb_processes(const struct calibration_run *run, void *stream, unsigned most)
{
	struct cuset sets[CALIBRATION_NEIGHBOURS];
	const struct work work = { NEIGHBOURS_COMPUTE, run->calibration->groups, CALIBRATION_SPINS,
				   0 };
	double usec;
	int r = 0;

	for (unsigned others = 1; others <= most && r >= 0; others++) {
		sets[others - 1] = run->model->all;
		r = run->partners->start(run->partners->data, &work, sets, others);
		if (r >= 0)
			r = run->device->calls->together(run->device->data, &stream, 1, &work,
							 &usec);
		run->partners->stop(run->partners->data);
		if (r >= 0)
			add_step(run->calibration, others + 1, others + 1, usec);
	}
	return r;
}

static int create_streams(const struct calibration_run *run, void **streams, unsigned n,
			  unsigned *ret)
{
	int r = 0;

	for (*ret = 0; *ret < n && r >= 0; *ret += r >= 0)
		r = calibration_stream(run, &run->model->all, &streams[*ret]);
	return r;
}

int ladder_measure(const struct calibration_run *run, unsigned queues, unsigned processes)
{
	void *streams[CALIBRATION_QUEUES];
	unsigned n;
	int r = create_streams(run, streams, min_u(queues, CALIBRATION_QUEUES), &n);

	if (r >= 0)
		r = climb_queues(run, streams, n);
	if (r >= 0 && n > 0)
		r = climb_processes(run, streams[0], min_u(processes - 1, CALIBRATION_NEIGHBOURS));
	destroy_all(run, streams, n);
	return r;
}

unsigned ladder_beyond(unsigned slots)
{
	return min_u(slots + max_u(slots / 2, 1), CALIBRATION_QUEUES);
}

/* Creates streams up to a number, and measures with all of them. */
static int climb_to(const struct calibration_run *run, void **streams, unsigned queues, unsigned *n)
{
	unsigned made;
	int r = create_streams(run, streams + *n, queues - *n, &made);

	*n += made;
	return r < 0 ? r : climb(run, streams, queues);
}

/* Slots are all in use with a stream less, because ROCr has a queue of its own. */
int ladder_oversubscribe(const struct calibration_run *run, unsigned slots)
{
	const unsigned steps[] = { slots - 1, slots, slots + max_u(slots / 8, 1),
				   slots + max_u(slots / 4, 1), ladder_beyond(slots) };
	struct calibration *c = run->calibration;
	void *streams[CALIBRATION_QUEUES];
	unsigned n = 0;
	double before = INFINITY;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && r >= 0; i++) {
		struct calibration_step *last;

		if (steps[i] <= n || steps[i] > CALIBRATION_QUEUES)
			continue;
		r = climb_to(run, streams, steps[i], &n);
		if (c->n_steps == 0 || (r < 0 && r != -ETIMEDOUT))
			break;
		last = &c->step[c->n_steps - 1];
		last->oversubscribed = last->queues >= slots;
		if (r >= 0 && last->usec > before * CALIBRATION_CLIFF_TIMES)
			break;
		before = fmin(before, last->usec);
	}
	destroy_all(run, streams, n);
	return r == -ETIMEDOUT ? 0 : r;
}
