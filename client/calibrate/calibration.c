/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/calibrate/calibration.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/latency/matrix.h"
#include "client/latency/unit.h"
#include "util/base.h"

int occupied_add(const char *target, const struct wave *waves, unsigned n, struct cuset *seen)
{
	for (unsigned i = 0; i < n; i++) {
		struct place place;

		if (waves[i].state != WAVE_ENDED)
			return waves[i].state == WAVE_NONE ? -ENODATA : -EPROTO;
		hw_id_place(target, waves[i].hw_id, waves[i].xcc_id, &place);
		if (place.xcc >= CUSET_XCCS || place.engine >= CUSET_ENGINES ||
		    place.array >= CUSET_ARRAYS || place.cu >= CUSET_ARRAY_CUS)
			return -EPROTO;
		seen->pair[cuset_pair(place.xcc, place.engine)] |=
			UINT32_C(1) << (place.array * CUSET_ARRAY_CUS + place.cu);
	}
	return 0;
}

bool occupied_judge(const struct model *model, const struct cuset *expected,
		    const struct cuset *seen, unsigned *ret_cus)
{
	unsigned step = geometry_step(&model->geometry), cus = 0;
	bool honoured = true;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++) {
		unsigned ran = cuset_count_word(seen->pair[pair]) * step;

		cus += ran;
		honoured &= ran == cuset_count_word(expected->pair[pair]);
	}
	*ret_cus = cus;
	return honoured;
}

const char *const calibration_troubles[] = {
	[CALIBRATION_THROTTLED] = "throttled",
	[CALIBRATION_CLOCK] = "clock",
};

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Notes an event. slower: in percent. */
static void note(struct calibration *calibration, enum calibration_trouble kind, double slower,
		 bool repeated)
{
	struct calibration_event *event = &calibration->event[calibration->n_events];

	if (calibration->n_events == CALIBRATION_EVENTS)
		return;
	calibration->n_events++;
	*event = (struct calibration_event){
		.kind = kind,
		.seconds = seconds_now() - calibration->began,
		.slower = slower,
		.repeated = repeated,
	};
	snprintf(event->during, sizeof(event->during), "%s", calibration->during);
}

int calibration_cool(const struct calibration_run *run, double slower)
{
	struct calibration *c = run->calibration;
	bool repeated = c->pauses < CALIBRATION_COOL_MAX;
	int r;

	note(c, CALIBRATION_THROTTLED, slower, repeated);
	if (!repeated)
		return 0;
	c->pauses++;
	r = run->stop->wait(run->stop->data, CALIBRATION_COOL_MS);
	return r < 0 ? r : 1;
}

const char *calibration_failure(const struct calibration_run *run, int error)
{
	if (error == -ENODATA)
		return "the kernel did not run";
	if (error == -EPROTO)
		return "a kernel was cut off, or its registers or clocks are impossible";
	if (error == -ECHILD)
		return "a process that runs kernels beside this one has failed";
	if (error == -EINTR)
		return "interrupted";
	if (error == -ENOENT || error == -ESTALE)
		return "the lease ended or changed";
	if (*run->device->problem)
		return run->device->problem;
	return error == -ETIMEDOUT
		       ? "a process beside this one has not run its first kernel in time"
		       : strerror(-error);
}

int calibration_miss(const struct calibration_run *run, const char *step, int error)
{
	struct calibration *c = run->calibration;
	bool hangs = error == -ETIMEDOUT && *run->device->problem;
	int r = run->stop->wait(run->stop->data, 0);

	if (c->n_missing < CALIBRATION_MISSING) {
		struct calibration_missing *missing = &c->missing[c->n_missing++];

		snprintf(missing->step, sizeof(missing->step), "%s", step);
		snprintf(missing->why, sizeof(missing->why), "%s",
			 calibration_failure(run, r < 0 ? r : error));
	}
	run->device->problem[0] = '\0';
	if (r < 0)
		return r;
	return hangs ? -ETIMEDOUT : 0;
}

/* ---- the masks ---------------------------------------------------------------------------- */

unsigned calibration_units(const struct model *model, unsigned engine)
{
	unsigned least = UINT_MAX;

	for (unsigned x = 0; x < model->geometry.xccs; x++)
		least = min_u(least, cuset_count_word(model->all.pair[cuset_pair(x, engine)]));
	return least / geometry_step(&model->geometry);
}

/* The engine that is in place n if those with the most units come first, else the lower number. */
static unsigned engine_at(const struct model *model, unsigned n)
{
	for (unsigned engine = 0;; engine++) {
		unsigned units = calibration_units(model, engine), before = 0;

		for (unsigned e = 0; e < model->geometry.engines; e++)
			before += calibration_units(model, e) > units ||
				  (calibration_units(model, e) == units && e < engine);
		if (before == n)
			return engine;
	}
}

unsigned calibration_height(const struct model *model, unsigned engines)
{
	return calibration_units(model, engine_at(model, engines - 1));
}

void calibration_add(const struct model *model, unsigned n, unsigned units, struct cuset *set)
{
	unsigned engine = engine_at(model, n);
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
	geometry_occupied(&model->geometry, set, &point->expected);
	return point;
}

static void add_rectangle(const struct model *model, struct calibration *calibration,
			  unsigned engines, unsigned units)
{
	struct calibration_point *point;
	struct cuset set = { 0 };

	for (unsigned e = 0; e < engines; e++)
		calibration_add(model, e, units, &set);
	point = add_point(model, calibration, CALIBRATION_LAW, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "%u x %u", engines,
			 units * geometry_step(&model->geometry));
}

static void add_rectangles(const struct model *model, struct calibration *calibration,
			   unsigned engines)
{
	unsigned most = calibration_height(model, engines), before = 0;

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

	if (calibration_height(model, 2) < 2)
		return;
	calibration_add(model, 0, calibration_height(model, 1), &set);
	calibration_add(model, 1, 1, &set);
	point = add_point(model, calibration, CALIBRATION_CLIFF, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "a shader engine and a unit more");
}

/* The same units on every XCC, chosen by a generator that always begins alike: each with one half. */
static void add_random(const struct model *model, struct calibration *calibration, unsigned number)
{
	unsigned step = geometry_step(&model->geometry);
	uint64_t random = 0x9e3779b97f4a7c15 * (number + 1);
	struct calibration_point *point;
	struct cuset set = { 0 };

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned cu = 0; cu < 32; cu += step) {
			uint32_t unit = ((UINT32_C(1) << step) - 1) << cu;

			random = random * 6364136223846793005 + 1442695040888963407;
			if ((model->all.pair[pair] & unit) == unit && random >> 63)
				set.pair[pair] |= unit;
		}
	if (!geometry_on_every_xcc(&model->geometry, &set))
		return;
	point = add_point(model, calibration, CALIBRATION_ANY, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "random %u", number + 1);
}

static void add_bad(const struct model *model, struct calibration *calibration)
{
	struct calibration_point *point;
	struct cuset set = { 0 };

	if (model->geometry.xccs < 2)
		return;
	set.pair[cuset_pair(0, 0)] = model->all.pair[cuset_pair(0, 0)];
	point = add_point(model, calibration, CALIBRATION_BAD, &set);
	if (point)
		snprintf(point->name, sizeof(point->name), "a shader engine of one XCC alone");
}

void calibration_plan(const struct model *model, struct calibration *ret)
{
	unsigned engines = 0;

	for (unsigned e = 0; e < model->geometry.engines; e++)
		engines += calibration_units(model, e) > 0;
	*ret = (struct calibration){
		.groups = CALIBRATION_PER_CU * geometry_cus(&model->geometry),
		.began = seconds_now(),
		.during = "",
	};
	for (unsigned used = 1; used < engines; used *= 2)
		add_rectangles(model, ret, used);
	if (engines > 0)
		add_rectangles(model, ret, engines);
	if (engines > 1)
		add_cliff(model, ret);
	for (unsigned i = 0; i < CALIBRATION_RANDOM; i++)
		add_random(model, ret, i);
	add_bad(model, ret);
}

double calibration_estimate(const struct calibration *calibration)
{
	double sum = 0;

	/* 318 us for a work-group: tests/data/measured, cu_mask_distributed.tsv. */
	for (size_t i = 0; i < calibration->n; i++)
		sum += 318.0 * calibration->groups / calibration->point[i].effective *
		       (CALIBRATION_REPEATS + 1) *
		       (calibration->point[i].use == CALIBRATION_LAW ? 2 : 1);
	/* A round of neighbours: their processes start within a second or two. */
	return sum / 1e6 + 3.0 * CALIBRATION_ROUNDS * (double)calibration->n_beside;
}

/* ---- one mask ----------------------------------------------------------------------------- */

/* NAN: the clock has gone back. */
static double time_of(const struct wave *waves, unsigned n, double tick_ns)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned i = 0; i < n; i++) {
		if (waves[i].end < waves[i].start)
			return NAN;
		first = waves[i].start < first ? waves[i].start : first;
		last = waves[i].end > last ? waves[i].end : last;
	}
	return (double)(last - first) * tick_ns / 1000;
}

int calibration_time(const struct calibration_run *run, void *stream, const struct work *work,
		     struct cuset *seen, double *ret_usec, double *ret_host_usec)
{
	const struct device *device = run->device;
	struct cuset ignored = { 0 };
	struct spun spun;
	int r;

	for (unsigned i = 0; i < CALIBRATION_ATTEMPTS; i++) {
		r = device->calls->spin(device->data, stream, work, run->waves, &spun);
		if (r >= 0)
			r = occupied_add(run->target, run->waves, work->groups,
					 seen ? seen : &ignored);
		if (r < 0)
			return r;
		*ret_host_usec = spun.host_usec;
		*ret_usec = time_of(run->waves, work->groups, spun.tick_ns);
		if (*ret_usec > 0 && *ret_usec <= spun.host_usec * (1.02 + spun.tick_error))
			return 0;
		run->calibration->clock_jumps++;
		note(run->calibration, CALIBRATION_CLOCK, NAN, i + 1 < CALIBRATION_ATTEMPTS);
	}
	return -EPROTO;
}

/* Enough repeats: few, if they agree. A change of the clock or another program shows as a spread, and then
 * more of them count. */
static bool enough(const double *usec, unsigned n, double *ret_median, double *ret_spread)
{
	double sorted[CALIBRATION_REPEATS_MAX];

	if (n < CALIBRATION_REPEATS)
		return false;
	memcpy(sorted, usec, n * sizeof(*usec));
	*ret_median = statistic_median(sorted, n); /* sorts them */
	*ret_spread = (sorted[n - 1] - sorted[0]) / *ret_median * 100;
	return *ret_spread <= CALIBRATION_SPREAD || n == CALIBRATION_REPEATS_MAX;
}

int calibration_median(const struct calibration_run *run, void *stream, enum neighbours kind,
		       struct cuset *seen, unsigned *ret_repeats, double *ret_usec,
		       double *ret_spread)
{
	const struct work work = { kind, run->calibration->groups,
				   kind == NEIGHBOURS_MEMORY ? CALIBRATION_READS
							     : CALIBRATION_SPINS,
				   0 };
	double usec[CALIBRATION_REPEATS_MAX], host;
	unsigned n = 0;
	int r;

	/* The first is for warming up. */
	r = calibration_time(run, stream, &work, seen, &usec[0], &host);
	while (r >= 0 && !enough(usec, n, ret_usec, ret_spread)) {
		r = run->stop->wait(run->stop->data, 0);
		if (r >= 0)
			r = calibration_time(run, stream, &work, seen, &usec[n++], &host);
	}
	*ret_repeats = n;
	return r;
}

int calibration_stream(const struct calibration_run *run, const struct cuset *set, void **ret)
{
	uint32_t mask[CODEC_WORDS] = { 0 };

	codec_encode(&run->model->codec, set, mask);
	return run->device->calls->create(run->device->data, mask, codec_words(&run->model->codec),
					  ret);
}

static int repeat(const struct calibration_run *run, void *stream, struct calibration_point *point)
{
	struct cuset seen = { 0 };
	unsigned repeats;
	double spread;
	int r;

	r = calibration_median(run, stream, NEIGHBOURS_COMPUTE, &seen, &point->repeats,
			       &point->usec, &point->spread);
	point->honoured = occupied_judge(run->model, &point->expected, &seen, &point->occupied);
	if (r >= 0 && point->use == CALIBRATION_LAW)
		r = calibration_median(run, stream, NEIGHBOURS_MEMORY, NULL, &repeats,
				       &point->memory_usec, &spread);
	return r;
}

static int open_stream(const struct calibration_run *run, const struct calibration_point *point,
		       void **ret)
{
	const struct device *device = run->device;
	uint32_t mask[CODEC_WORDS] = { 0 };

	if (point->use != CALIBRATION_BAD)
		return calibration_stream(run, &point->set, ret);
	codec_encode(&run->model->codec, &point->set, mask);
	return device->calls->create_raw(device->data, mask, codec_words(&run->model->codec), ret);
}

static int measure(const struct calibration_run *run, struct calibration_point *point)
{
	void *stream;
	int r = open_stream(run, point, &stream);

	if (r < 0)
		return r;
	r = repeat(run, stream, point);
	run->device->calls->destroy(run->device->data, stream);
	return r;
}

/* The whole GPU, measured before and after each mask. It is slower than at its fastest if it is hot, or
 * another program uses it. */
struct reference {
	void *stream;
	double fastest;
	double slower; /* the last time than the fastest, in percent */
};

static int compare_speed(const struct calibration_run *run, struct reference *reference)
{
	double usec, spread;
	unsigned n;
	int r = calibration_median(run, reference->stream, NEIGHBOURS_COMPUTE, NULL, &n, &usec,
				   &spread);

	if (r < 0)
		return r;
	if (!(reference->fastest > 0) || usec < reference->fastest)
		reference->fastest = usec;
	reference->slower = (usec / reference->fastest - 1) * 100;
	return 0;
}

/* A GPU that has become slower gets a pause, and the mask is measured again. */
static int measure_cool(const struct calibration_run *run, struct reference *reference,
			struct calibration_point *point)
{
	int r;

	run->calibration->during = point->name;
	do {
		double before = reference->slower, slower;

		r = measure(run, point);
		if (r >= 0)
			r = compare_speed(run, reference);
		if (r < 0)
			return r;
		slower = fmax(before, reference->slower);
		point->throttled = slower > CALIBRATION_SPREAD;
		if (!point->throttled)
			return 0;
		r = calibration_cool(run, slower);
	} while (r > 0 && compare_speed(run, reference) >= 0);
	return r;
}

/* Where masks are ignored, all times are equal, and there is no law. */
static void fit(const struct calibration *c, bool memory, struct law_fit *ret)
{
	struct law_point points[CALIBRATION_POINTS];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct calibration_point *p = &c->point[i];

		if (p->use == CALIBRATION_LAW)
			points[n++] = (struct law_point){ p->effective,
							  memory ? p->memory_usec : p->usec };
	}
	if (law_fit(points, n, ret) < 0)
		*ret = (struct law_fit){ NAN, NAN, NAN, NAN, NAN };
}

/* The shader engine alone, against the same with a unit more. */
static double find_cliff(const struct model *model, const struct calibration *c)
{
	unsigned whole = calibration_height(model, 1) * geometry_step(&model->geometry) *
			 model->geometry.xccs;
	double with = 0, alone = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct calibration_point *p = &c->point[i];

		if (p->use == CALIBRATION_CLIFF)
			with = p->usec;
		if (p->use == CALIBRATION_LAW && p->cus == whole &&
		    cuset_engines(&p->set) == UINT32_C(1) << engine_at(model, 0))
			alone = p->usec;
	}
	return alone > 0 ? with / alone : 0;
}

static int measure_all(const struct calibration_run *run, struct reference *reference)
{
	struct calibration *c = run->calibration;
	size_t planned = c->n;
	int r;

	c->during = "the whole GPU";
	r = compare_speed(run, reference);
	c->begun = r >= 0;
	c->n = 0;
	for (size_t i = 0; i < planned && r >= 0; i++) {
		struct calibration_point point = c->point[i];

		if (run->progress)
			run->progress("masks", i, planned);
		r = measure_cool(run, reference, &point);
		if (r < 0) {
			r = calibration_miss(run, point.name, r);
			continue;
		}
		c->honoured += point.honoured;
		c->point[c->n++] = point;
	}
	return r;
}

int calibration_measure(const struct calibration_run *run)
{
	struct calibration *c = run->calibration;
	struct reference reference = { 0 };
	int r;

	r = calibration_stream(run, &run->model->all, &reference.stream);
	if (r < 0)
		return r;
	r = measure_all(run, &reference);
	run->device->calls->destroy(run->device->data, reference.stream);
	fit(c, false, &c->law);
	fit(c, true, &c->memory_law);
	c->cliff = find_cliff(run->model, c);
	c->emulated = run->device->emulated;
	return r;
}

/* ---- changes of a mask ----------------------------------------------------------------------- */

/* The mask changes between the whole GPU and a unit less of each shader engine that has more than one. */
int costs_measure(const struct calibration_run *run)
{
	unsigned step = geometry_step(&run->model->geometry);
	uint32_t all[CODEC_WORDS] = { 0 }, less[CODEC_WORDS] = { 0 };
	const uint32_t *const masks[] = { all, less };
	struct cuset set = run->model->all;

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		if (cuset_count_word(set.pair[pair]) > step)
			set.pair[pair] &= ~(((UINT32_C(1) << step) - 1)
					    << __builtin_ctz(set.pair[pair]));
	run->calibration->during = "changes";
	codec_encode(&run->model->codec, &run->model->all, all);
	codec_encode(&run->model->codec, &set, less);
	return run->device->calls->change(run->device->data, masks, codec_words(&run->model->codec),
					  CALIBRATION_CHANGES, &run->calibration->costs);
}
