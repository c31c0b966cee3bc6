/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What gpuarbd tells beside its objects: the answers of ReadUsage, ReadLimits, ReadCounters and ReadSlots. */

#include <errno.h>
#include <stdlib.h>

#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

/* Defines the function that frees an answer. */
#define FREE(name)                                                       \
	GPUARB_EXPORT void gpuarb_##name##_free(struct gpuarb_##name *p) \
	{                                                                \
		arena_object_free(p);                                    \
	}

/* Defines the function that returns a number of an answer, or 0 for NULL. */
#define NUMBER(name, member)                                                           \
	GPUARB_EXPORT uint64_t gpuarb_##name##_##member(const struct gpuarb_##name *p) \
	{                                                                              \
		return p ? p->member : 0;                                              \
	}

/* Defines the function that returns row i of an answer, or NULL. */
#define ROW(type, name, function, rows, n_rows)                                                    \
	GPUARB_EXPORT const struct type *gpuarb_##name##_##function(const struct gpuarb_##name *p, \
								    size_t i)                      \
	{                                                                                          \
		return p && i < p->n_rows ? &p->rows[i] : NULL;                                    \
	}

/* ---- what users held, waited for and were refused ------------------------------------------- */

struct gpuarb_usage {
	struct arena arena;
	uint64_t from;
	const struct gpuarb_usage_row *rows;
	size_t n;
};

static const struct dictionary usage_row_dictionary =
	DICTIONARY(gpuarb_usage_row,
		   MEMBERS(gpuarb_usage_row, tenant, uid, leases, held_usec, cu_usec, queue_usec,
			   waits, waited_usec, refusals),
		   FIELD('s', "class", gpuarb_usage_row, lease_class));

static const struct dictionary usage_dictionary = DICTIONARY(gpuarb_usage,
							     MEMBERS(gpuarb_usage, from));

static const struct argument usage_arguments[] = {
	ARGUMENT_ROWS(&usage_row_dictionary, gpuarb_usage, rows, n),
	{ .dictionary = &usage_dictionary },
};

GPUARB_EXPORT int gpuarb_read_usage(struct gpuarb *gpuarb, uint64_t since,
				    struct gpuarb_usage **ret)
{
	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	return handle_end(gpuarb,
			  call_read(gpuarb, "ReadUsage", DBUS_TYPE_UINT64, &since, usage_arguments,
				    ARRAY_SIZE(usage_arguments), sizeof(**ret), ret));
}

FREE(usage)
NUMBER(usage, from)
ROW(gpuarb_usage_row, usage, get, rows, n)

/* ---- the limits of users and what each user has of them -------------------------------------- */

struct gpuarb_limits {
	struct arena arena;
	struct gpuarb_limit_values values;
	struct gpuarb_limits_row *rows;
	size_t n;
};

static const struct dictionary limit_dictionary =
	DICTIONARY(gpuarb_limit_values, MEMBERS(gpuarb_limit_values, unread_known),
		   FIELD('u', "max-calls-per-user", gpuarb_limit_values, calls),
		   FIELD('u', "max-time-per-user", gpuarb_limit_values, time_percent),
		   FIELD('u', "max-pending-per-user", gpuarb_limit_values, pending),
		   FIELD('t', "max-unread-per-user", gpuarb_limit_values, unread_bytes),
		   FIELD('u', "max-leases", gpuarb_limit_values, leases_total),
		   FIELD('u', "max-leases-per-user", gpuarb_limit_values, leases),
		   FIELD('u', "max-holders", gpuarb_limit_values, holders_total));

static const struct dictionary limits_row_dictionary = DICTIONARY(
	gpuarb_limits_row, MEMBERS(gpuarb_limits_row, uid, administrator, connections, calls,
				   calls_delayed, calls_refused, time_usec, pending, pending_bytes,
				   unread_bytes, unread_fds, leases, waiting, holders));

static int limits_row_compare(const void *a, const void *b)
{
	uint32_t left = ((const struct gpuarb_limits_row *)a)->uid,
		 right = ((const struct gpuarb_limits_row *)b)->uid;

	return (left > right) - (left < right);
}

static const struct argument limits_arguments[] = {
	ARGUMENT(&limit_dictionary, gpuarb_limits, values),
	ARGUMENT_ROWS(&limits_row_dictionary, gpuarb_limits, rows, n),
};

GPUARB_EXPORT int gpuarb_read_limits(struct gpuarb *gpuarb, struct gpuarb_limits **ret)
{
	int r;

	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	r = call_read(gpuarb, "ReadLimits", DBUS_TYPE_INVALID, NULL, limits_arguments,
		      ARRAY_SIZE(limits_arguments), sizeof(**ret), ret);
	if (r >= 0 && (*ret)->n > 0)
		qsort((*ret)->rows, (*ret)->n, sizeof(*(*ret)->rows), limits_row_compare);
	return handle_end(gpuarb, r);
}

FREE(limits)
ROW(gpuarb_limits_row, limits, get, rows, n)

GPUARB_EXPORT const struct gpuarb_limit_values *
gpuarb_limits_values(const struct gpuarb_limits *limits)
{
	return limits ? &limits->values : NULL;
}

/* ---- what happened since gpuarbd was started -------------------------------------------------- */

struct gpuarb_counters {
	struct arena arena;
	const struct gpuarb_counters_row *rows;
	const struct gpuarb_duration *durations;
	size_t n_rows, n_durations;
	uint64_t since;
};

static const struct dictionary refused_dictionary =
	DICTIONARY(gpuarb_refused, MEMBERS(gpuarb_refused, reason, count));

static const struct dictionary counters_row_dictionary = DICTIONARY(
	gpuarb_counters_row,
	MEMBERS(gpuarb_counters_row, tenant, grants, waits, revocations, preemptions, moves,
		drifts),
	ROWS('R', "refusals", &refused_dictionary, gpuarb_counters_row, refusals, n_refusals));

static const struct dictionary duration_dictionary = DICTIONARY(
	gpuarb_duration, MEMBERS(gpuarb_duration, name, sum_usec), LISTS(gpuarb_duration, counts),
	LIST('T', "bounds-usec", gpuarb_duration, bounds_usec, n_bounds));

static const struct dictionary counters_dictionary = DICTIONARY(gpuarb_counters,
								MEMBERS(gpuarb_counters, since));

static const struct argument counters_arguments[] = {
	ARGUMENT_ROWS(&counters_row_dictionary, gpuarb_counters, rows, n_rows),
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
	r = call_read(gpuarb, "ReadCounters", DBUS_TYPE_INVALID, NULL, counters_arguments,
		      ARRAY_SIZE(counters_arguments), sizeof(**ret), &counters);
	if (r >= 0 && !durations_are_complete(counters))
		r = fail_answer(gpuarb, "ReadCounters", "counts");
	if (r >= 0)
		*ret = TAKE_PTR(counters);
	return handle_end(gpuarb, r);
}

FREE(counters)
NUMBER(counters, since)
ROW(gpuarb_counters_row, counters, get, rows, n_rows)
ROW(gpuarb_duration, counters, duration, durations, n_durations)

/* ---- the queue slots of a GPU ------------------------------------------------------------------ */

static const struct dictionary slot_dictionary =
	DICTIONARY(gpuarb_queue_slot,
		   MEMBERS(gpuarb_queue_slot, xcc, pipe, queue, active, vmid, priority, doorbell,
			   pid, lease, command),
		   FIELD('u', "engine", gpuarb_queue_slot, pipe));

static const struct dictionary slots_dictionary =
	DICTIONARY(gpuarb_slots, MEMBERS(gpuarb_slots, usec, queues, without_slot),
		   ROWS('R', "sdma", &slot_dictionary, gpuarb_slots, sdma, n_sdma));

const struct argument slots_arguments[SLOTS_ARGUMENTS] = {
	ARGUMENT_ROWS(&slot_dictionary, gpuarb_slots, rows, n),
	{ .dictionary = &slots_dictionary },
};

GPUARB_EXPORT int gpuarb_read_slots(struct gpuarb *gpuarb, const char *gpu,
				    struct gpuarb_slots **ret)
{
	HANDLE_BEGIN(gpuarb && gpu && ret, gpuarb);
	if (!dbus_validate_utf8(gpu, NULL))
		return handle_end(gpuarb, fail(gpuarb, -EINVAL, "gpu is not UTF-8"));
	return handle_end(gpuarb, call_read(gpuarb, "ReadSlots", DBUS_TYPE_STRING, &gpu,
					    slots_arguments, SLOTS_ARGUMENTS, sizeof(**ret), ret));
}

FREE(slots)
NUMBER(slots, usec)
ROW(gpuarb_queue_slot, slots, get, rows, n)
ROW(gpuarb_queue_slot, slots, sdma, sdma, n_sdma)

GPUARB_EXPORT unsigned gpuarb_slots_queues(const struct gpuarb_slots *slots, unsigned *ret_without)
{
	if (ret_without)
		*ret_without = slots ? slots->without_slot : 0;
	return slots ? slots->queues : 0;
}
