/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/counters.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000)
#define S UINT64_C(1000000)
#define HOUR (3600 * S)

const char *const counter_names[COUNTERS] = {
	[COUNTER_GRANTS] = "grants",
	[COUNTER_WAITS] = "waits",
	[COUNTER_REVOCATIONS] = "revocations",
	[COUNTER_PREEMPTIONS] = "preemptions",
	[COUNTER_MOVES] = "moves",
	[COUNTER_DRIFTS] = "drifts",
};

const char *const duration_names[DURATIONS] = {
	[DURATION_DECISION] = "decision",
	[DURATION_ACTIVATION] = "activation",
	[DURATION_WAIT] = "wait",
};

const uint64_t duration_bounds[DURATIONS][COUNTERS_BOUNDS] = {
	[DURATION_DECISION] = { 100, 250, 500, MS, 5 * MS / 2, 5 * MS, 10 * MS, 50 * MS, 250 * MS,
				S },
	[DURATION_ACTIVATION] = { MS, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 500 * MS, S,
				  5 * S, 30 * S },
	[DURATION_WAIT] = { 100 * MS, S, 10 * S, 60 * S, 300 * S, 900 * S, HOUR, 4 * HOUR,
			    12 * HOUR, 24 * HOUR },
};

static struct counters_row *find_row(struct counters *counters, const char *tenant)
{
	for (size_t i = 0; i < counters->n; i++)
		if (strcmp(counters->rows[i].tenant, tenant) == 0)
			return &counters->rows[i];
	return NULL;
}

struct counters_row *counters_row(struct counters *counters, const char *tenant)
{
	struct counters_row *row = find_row(counters, tenant);

	if (!row && counters->n >= COUNTERS_TENANTS)
		row = find_row(counters, tenant = "");
	if (row)
		return row;
	row = &counters->rows[counters->n++];
	snprintf(row->tenant, sizeof(row->tenant), "%s", tenant);
	return row;
}

void counters_add(struct counters *counters, const char *tenant, enum counter counter)
{
	counters_row(counters, tenant)->events[counter]++;
}

void counters_took(struct counters *counters, enum duration duration, uint64_t usec)
{
	struct histogram *histogram = &counters->histograms[duration];
	size_t i = 0;

	while (i < COUNTERS_BOUNDS && usec > duration_bounds[duration][i])
		i++;
	histogram->counts[i]++;
	histogram->sum_usec += usec;
}
