/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The limits of users and what each user has of them, from ReadLimits. */

#include <errno.h>
#include <stdlib.h>

#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

struct gpuarb_limits {
	struct arena arena;
	struct gpuarb_limit_values values;
	struct gpuarb_limits_row *rows;
	size_t n;
};

static const struct dictionary value_dictionary =
	DICTIONARY(gpuarb_limit_values, MEMBERS(gpuarb_limit_values, unread_known),
		   FIELD('u', "max-calls-per-user", gpuarb_limit_values, calls),
		   FIELD('u', "max-time-per-user", gpuarb_limit_values, time_percent),
		   FIELD('u', "max-pending-per-user", gpuarb_limit_values, pending),
		   FIELD('t', "max-unread-per-user", gpuarb_limit_values, unread_bytes),
		   FIELD('u', "max-leases", gpuarb_limit_values, leases_total),
		   FIELD('u', "max-leases-per-user", gpuarb_limit_values, leases),
		   FIELD('u', "max-holders", gpuarb_limit_values, holders_total));

static const struct dictionary row_dictionary = DICTIONARY(
	gpuarb_limits_row, MEMBERS(gpuarb_limits_row, uid, administrator, connections, calls,
				   calls_delayed, calls_refused, time_usec, pending, pending_bytes,
				   unread_bytes, unread_fds, leases, waiting, holders));

static int row_compare(const void *a, const void *b)
{
	uint32_t left = ((const struct gpuarb_limits_row *)a)->uid,
		 right = ((const struct gpuarb_limits_row *)b)->uid;

	return (left > right) - (left < right);
}

static const struct argument arguments[] = {
	ARGUMENT(&value_dictionary, gpuarb_limits, values),
	ARGUMENT_ROWS(&row_dictionary, gpuarb_limits, rows, n),
};

GPUARB_EXPORT int gpuarb_read_limits(struct gpuarb *gpuarb, struct gpuarb_limits **ret)
{
	struct gpuarb_limits *limits;
	void *object;
	int r;

	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	r = call_read(gpuarb, "ReadLimits", DBUS_TYPE_INVALID, NULL, arguments,
		      ARRAY_SIZE(arguments), sizeof(*limits), &object);
	if (r < 0)
		return handle_end(gpuarb, r);
	*ret = limits = object;
	if (limits->n > 0)
		qsort(limits->rows, limits->n, sizeof(*limits->rows), row_compare);
	return handle_end(gpuarb, 0);
}

GPUARB_EXPORT void gpuarb_limits_free(struct gpuarb_limits *limits)
{
	arena_object_free(limits);
}

GPUARB_EXPORT const struct gpuarb_limit_values *
gpuarb_limits_values(const struct gpuarb_limits *limits)
{
	return limits ? &limits->values : NULL;
}

GPUARB_EXPORT const struct gpuarb_limits_row *gpuarb_limits_get(const struct gpuarb_limits *limits,
								size_t i)
{
	return limits && i < limits->n ? &limits->rows[i] : NULL;
}
