/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/wcet.h"

const char *rt_source_name(enum rt_source source)
{
	static const char *const names[] = {
		[RT_MEASURED] = "measured",
		[RT_MODELLED] = "modelled",
		[RT_KEPT] = "kept",
		[RT_UNKNOWN] = "unknown",
	};

	return names[source];
}

/* The time on so many CUs by the law of masks, rounded up. */
static uint64_t scaled(const struct rt_point *point, unsigned cus)
{
	return (point->usec * point->cus + cus - 1) / cus;
}

static uint64_t between(const struct rt_point *less, const struct rt_point *more, unsigned cus)
{
	uint64_t up = scaled(less, cus), down = scaled(more, cus);
	uint64_t longer = up > down ? up : down;

	return longer < less->usec ? longer : less->usec;
}

uint64_t rt_wcet(const struct rt_task *task, unsigned cus, bool law, enum rt_source *ret_source)
{
	const struct rt_point *points = task->points;
	size_t n = 0; /* points with at most so many CUs */

	while (n < task->n_points && points[n].cus <= cus)
		n++;
	if (n == 0) {
		*ret_source = RT_UNKNOWN;
		return RT_UNSET;
	}
	if (points[n - 1].cus == cus) {
		*ret_source = RT_MEASURED;
		return points[n - 1].usec;
	}
	if (n == task->n_points || !law) {
		*ret_source = RT_KEPT;
		return points[n - 1].usec;
	}
	*ret_source = RT_MODELLED;
	return between(&points[n - 1], &points[n], cus);
}
