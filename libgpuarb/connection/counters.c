/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What happened since gpuarbd was started, from ReadCounters. */

#include <errno.h>
#include <stdlib.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

struct gpuarb_counters {
	struct arena arena;
	const struct gpuarb_counters_row *rows;
	const struct gpuarb_duration *durations;
	size_t n_rows, n_durations;
	uint64_t since;
};

DEFINE_CLEANUP(struct gpuarb_counters *, gpuarb_counters_free)

static const struct field refused_fields[] = {
	FIELD('s', "reason", gpuarb_refused, reason),
	FIELD('t', "count", gpuarb_refused, count),
};

static const struct dictionary refused_dictionary = DICTIONARY(refused_fields, gpuarb_refused);

static const struct field row_fields[] = {
	FIELD('s', "tenant", gpuarb_counters_row, tenant),
	FIELD('t', "grants", gpuarb_counters_row, grants),
	FIELD('t', "waits", gpuarb_counters_row, waits),
	FIELD('t', "revocations", gpuarb_counters_row, revocations),
	FIELD('t', "preemptions", gpuarb_counters_row, preemptions),
	FIELD('t', "moves", gpuarb_counters_row, moves),
	FIELD('t', "drifts", gpuarb_counters_row, drifts),
	ROWS('R', "refusals", &refused_dictionary, gpuarb_counters_row, refusals, n_refusals),
};

static const struct dictionary row_dictionary = DICTIONARY(row_fields, gpuarb_counters_row);

static const struct field duration_fields[] = {
	FIELD('s', "name", gpuarb_duration, name),
	LIST('T', "bounds-usec", gpuarb_duration, bounds_usec, n_bounds),
	LIST('T', "counts", gpuarb_duration, counts, n_counts),
	FIELD('t', "sum-usec", gpuarb_duration, sum_usec),
};

static const struct dictionary duration_dictionary = DICTIONARY(duration_fields, gpuarb_duration);

static const struct field counters_fields[] = {
	FIELD('t', "since", gpuarb_counters, since),
};

static const struct dictionary counters_dictionary = DICTIONARY(counters_fields, gpuarb_counters);

static int check_durations(const struct gpuarb_counters *counters, const char **ret_key)
{
	for (size_t i = 0; i < counters->n_durations; i++)
		if (counters->durations[i].n_counts != counters->durations[i].n_bounds + 1) {
			*ret_key = "counts";
			return -EPROTO;
		}
	return 0;
}

static int counters_read(DBusMessage *reply, struct gpuarb_counters *counters, const char **ret_key)
{
	DBusMessageIter iter;
	int r;

	dbus_message_iter_init(reply, &iter);
	r = read_rows(&iter, &row_dictionary, &counters->arena, &counters->rows, &counters->n_rows,
		      ret_key);
	if (r < 0)
		return r;
	dbus_message_iter_next(&iter);
	r = read_rows(&iter, &duration_dictionary, &counters->arena, &counters->durations,
		      &counters->n_durations, ret_key);
	if (r >= 0)
		r = check_durations(counters, ret_key);
	if (r < 0)
		return r;
	dbus_message_iter_next(&iter);
	return read_dictionary(&iter, &counters_dictionary, &counters->arena, counters, ret_key);
}

static int counters_new(struct gpuarb *gpuarb, struct gpuarb_counters **ret)
{
	_cleanup_(gpuarb_counters_freep) struct gpuarb_counters *counters =
		calloc(1, sizeof(*counters));
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	const char *key = NULL;
	int r;

	if (!counters)
		return -ENOMEM;
	r = call_new(GPUARB_PATH, GPUARB_INTERFACE, "ReadCounters", &call, DBUS_TYPE_INVALID);
	if (r >= 0)
		r = call_send(gpuarb, call, "aa{sv}aa{sv}a{sv}", &reply);
	if (r < 0)
		return r;
	r = counters_read(reply, counters, &key);
	if (r < 0)
		return r == -EPROTO ? fail_answer(gpuarb, "ReadCounters", key) : r;
	*ret = TAKE_PTR(counters);
	return 0;
}

GPUARB_EXPORT int gpuarb_read_counters(struct gpuarb *gpuarb, struct gpuarb_counters **ret)
{
	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	return handle_end(gpuarb, counters_new(gpuarb, ret));
}

GPUARB_EXPORT void gpuarb_counters_free(struct gpuarb_counters *counters)
{
	if (!counters)
		return;

	arena_clear(&counters->arena);
	free(counters);
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
