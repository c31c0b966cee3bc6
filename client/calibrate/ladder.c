/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/calibrate/calibration.h"
#include "util/base.h"

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
