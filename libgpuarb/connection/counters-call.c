/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What happened since gpuarbd was started, from ReadCounters. */

#include <errno.h>

#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

struct gpuarb_counters {
	struct arena arena;
	const struct gpuarb_counters_row *rows;
	const struct gpuarb_duration *durations;
	size_t n_rows, n_durations;
	uint64_t since;
};

static const struct dictionary refused_dictionary =
	DICTIONARY(gpuarb_refused, MEMBERS(gpuarb_refused, reason, count));

static const struct dictionary row_dictionary = DICTIONARY(
	gpuarb_counters_row,
	MEMBERS(gpuarb_counters_row, tenant, grants, waits, revocations, preemptions, moves,
		drifts),
	ROWS('R', "refusals", &refused_dictionary, gpuarb_counters_row, refusals, n_refusals));

static const struct dictionary duration_dictionary = DICTIONARY(
	gpuarb_duration, MEMBERS(gpuarb_duration, name, sum_usec), LISTS(gpuarb_duration, counts),
	LIST('T', "bounds-usec", gpuarb_duration, bounds_usec, n_bounds));

static const struct dictionary counters_dictionary = DICTIONARY(gpuarb_counters,
								MEMBERS(gpuarb_counters, since));

static const struct argument arguments[] = {
	ARGUMENT_ROWS(&row_dictionary, gpuarb_counters, rows, n_rows),
	ARGUMENT_ROWS(&duration_dictionary, gpuarb_counters, durations, n_durations),
	{ .dictionary = &counters_dictionary },
};

static bool durations_are_complete(const struct gpuarb_counters *counters)
{
	for (size_t i = 0; i < counters->n_durations; i++)
		if (counters->durations[i].n_counts != counters->durations[i].n_bounds + 1)
			return false;
	return true;
}

GPUARB_EXPORT int gpuarb_read_counters(struct gpuarb *gpuarb, struct gpuarb_counters **ret)
{
	_cleanup_(arena_object_freep) void *counters = NULL;
	int r;

	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	r = call_read(gpuarb, "ReadCounters", DBUS_TYPE_INVALID, NULL, arguments,
		      ARRAY_SIZE(arguments), sizeof(**ret), &counters);
	if (r >= 0 && !durations_are_complete(counters))
		r = fail_answer(gpuarb, "ReadCounters", "counts");
	if (r >= 0)
		*ret = TAKE_PTR(counters);
	return handle_end(gpuarb, r);
}

GPUARB_EXPORT void gpuarb_counters_free(struct gpuarb_counters *counters)
{
	arena_object_free(counters);
}

GPUARB_EXPORT const struct gpuarb_counters_row *
gpuarb_counters_get(const struct gpuarb_counters *counters, size_t i)
{
	return counters && i < counters->n_rows ? &counters->rows[i] : NULL;
}

GPUARB_EXPORT const struct gpuarb_duration *
gpuarb_counters_duration(const struct gpuarb_counters *counters, size_t i)
{
	return counters && i < counters->n_durations ? &counters->durations[i] : NULL;
}

GPUARB_EXPORT uint64_t gpuarb_counters_since(const struct gpuarb_counters *counters)
{
	return counters ? counters->since : 0;
}
