/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/measure.h"

#include <errno.h>
#include <stdio.h>

#define UNMET_IN_A_ROW 3U /* each takes seconds */

static int play(const struct measurement *m, void **streams, struct matrix *matrix, size_t a,
		size_t b, char *buf, size_t size)
{
	const struct device *device = m->device;
	struct outcome outcome;
	int r;

	r = device->calls->play(device->data, streams, m->same_line, m->units->lanes, &outcome);
	if (r < 0) {
		snprintf(buf, size, "%s", device->problem);
		return r;
	}

	r = matrix_take(matrix, m->units, m->target, a, b, &outcome);
	if (r == -ENODATA)
		snprintf(buf, size,
			 "the kernel did not run: HIP reports its end, but it has written nothing "
			 "(an emulated GPU behaves like this)");
	else if (r == -EPROTO)
		snprintf(buf, size,
			 "a kernel was cut off: HIP reports its end, but not all of its workgroups "
			 "have written a report");
	return r;
}

/* Creates two streams for each pair: one stream for each unit would be too many queues. */
static int play_pair(const struct measurement *m, struct matrix *matrix, size_t a, size_t b,
		     char *buf, size_t size)
{
	const size_t units[2] = { a, b };
	void *streams[2] = { NULL, NULL };
	const struct device *device = m->device;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < 2; i++) {
		r = device->calls->create(device->data, m->units->list[units[i]].mask,
					  m->units->words, &streams[i]);
		if (r < 0)
			snprintf(buf, size, "%s", device->problem);
	}
	if (r >= 0)
		r = play(m, streams, matrix, a, b, buf, size);
	for (size_t i = 2; i-- > 0;) {
		if (streams[i])
			device->calls->destroy(device->data, streams[i]);
	}
	return r;
}

int measure(const struct measurement *m, struct matrix *matrix, char *buf, size_t size)
{
	size_t n = pairs_count(m->units->n), unmet = 0;

	for (size_t k = 0; k < n; k++) {
		size_t a, b;
		int r;

		if (m->progress)
			m->progress(k, n, m->progress_data);
		r = m->stop->wait(m->stop->data, 0);
		pairs_get(m->units->n, k, &a, &b);
		if (r >= 0)
			r = play_pair(m, matrix, a, b, buf, size);
		if (r < 0 && r != -EAGAIN)
			return r;

		unmet = r < 0 ? unmet + 1 : 0;
		matrix->unmet += r < 0;
		if (unmet == UNMET_IN_A_ROW || unmet == n) {
			snprintf(buf, size,
				 "the two kernels did not meet: each waited for the other, %zu "
				 "times in a row; their queues may take turns (gpuarbctl status)",
				 unmet);
			return -EAGAIN;
		}
	}
	return 0;
}
