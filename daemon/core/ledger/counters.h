/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What happened since the daemon was started, for monitoring: events of each tenant, and how long
 * decisions, activations and waits took. A restart begins at 0 again.
 */

#include <stddef.h>

#include "core/policy/class.h"
#include "core/policy/refusal.h"

#define COUNTERS_TENANTS 256U /* further ones are counted together, as "" */
#define COUNTERS_BOUNDS 10U

enum counter {
	COUNTER_GRANTS,
	COUNTER_WAITS,       /* leases that began to wait */
	COUNTER_REVOCATIONS, /* leases that their holders did not end: lease_was_revoked() */
	COUNTER_PREEMPTIONS, /* leases that are revoked for a waiting one */
	COUNTER_MOVES,       /* leases that moved for another one */
	COUNTER_DRIFTS, /* times that a lease began to use more, or otherwise more, than it was granted */
	COUNTERS,
};

enum duration {
	DURATION_DECISION,   /* of a Reserve: until it is saved, or refused */
	DURATION_ACTIVATION, /* until an inactive or a new lease has the CUs that borrowers had */
	DURATION_WAIT,       /* until a waiting lease is granted */
	DURATIONS,
};

struct counters_row {
	char tenant[REQUEST_TEXT];
	uint64_t events[COUNTERS];
	uint64_t refusals[REASONS]; /* of the GPU, or the bound, that the answer follows from */
};

struct histogram {
	uint64_t counts[COUNTERS_BOUNDS +
			1]; /* up to each bound, more than the one before; the rest */
	uint64_t sum_usec;
};

struct counters {
	uint64_t usec;    /* when it began: of CLOCK_BOOTTIME */
	uint64_t seconds; /* … of CLOCK_REALTIME */
	struct histogram histograms[DURATIONS];
	struct counters_row rows[COUNTERS_TENANTS + 1];
	size_t n;
};

extern const char *const counter_names[COUNTERS];
extern const char *const duration_names[DURATIONS];
extern const uint64_t duration_bounds[DURATIONS][COUNTERS_BOUNDS]; /* microseconds, ascending */

/* The row of a tenant. */
struct counters_row *counters_row(struct counters *counters, const char *tenant);

void counters_add(struct counters *counters, const char *tenant, enum counter counter);

void counters_took(struct counters *counters, enum duration duration, uint64_t usec);
