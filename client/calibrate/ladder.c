/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/calibrate/calibration.h"
#include "util/base.h"

static void add_step(struct calibration *c, unsigned queues, unsigned processes, double usec)
{
	if (c->n_steps < CALIBRATION_STEPS)
		c->step[c->n_steps++] = (struct calibration_step){ queues, processes, usec };
}

static void destroy_all(const struct calibration_run *run, void *const *streams, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		run->device->calls->destroy(run->device->data, streams[i]);
}

/* The work of one kernel, divided among 1, 2, 4 … queues of this process, each on the whole GPU. */
static int climb_queues(const struct calibration_run *run, void *const *streams, unsigned n)
{
	const struct device *device = run->device;
	double usec;
	int r = 0;

	for (unsigned queues = 1; queues <= n && r >= 0;
	     queues = queues < n ? min_u(2 * queues, n) : n + 1) {
		const struct work work = { NEIGHBOURS_COMPUTE, run->calibration->groups / queues,
					   CALIBRATION_SPINS };

		r = run->stop->wait(run->stop->data, 0);
		if (r >= 0)
			r = device->calls->together(device->data, streams, queues, &work, &usec);
		if (r >= 0)
			add_step(run->calibration, queues, 1, usec);
	}
	return r;
}

/* One kernel, while other processes run kernels on the whole GPU, too. */
static int climb_processes(const struct calibration_run *run, void *stream, unsigned most)
{
	struct cuset sets[CALIBRATION_NEIGHBOURS];
	const struct work work = { NEIGHBOURS_COMPUTE, run->calibration->groups,
				   CALIBRATION_SPINS };
	double usec;
	int r = 0;

	for (unsigned others = 1; others <= most && r >= 0; others++) {
		sets[others - 1] = run->model->all;
		r = run->partners->start(run->partners->data, NEIGHBOURS_COMPUTE, sets, others);
		if (r >= 0)
			r = run->device->calls->together(run->device->data, &stream, 1, &work,
							 &usec);
		run->partners->stop(run->partners->data);
		if (r >= 0)
			add_step(run->calibration, others + 1, others + 1, usec);
	}
	return r;
}

int ladder_measure(const struct calibration_run *run, unsigned queues, unsigned processes)
{
	void *streams[CALIBRATION_QUEUES];
	unsigned n = 0, most = min_u(queues, CALIBRATION_QUEUES);
	int r = 0;

	while (n < most && r >= 0) {
		r = calibration_stream(run, &run->model->all, &streams[n]);
		n += r >= 0;
	}
	if (r >= 0)
		r = climb_queues(run, streams, n);
	if (r >= 0 && n > 0)
		r = climb_processes(run, streams[0], min_u(processes - 1, CALIBRATION_NEIGHBOURS));
	destroy_all(run, streams, n);
	return r;
}
