/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadUsage: what tenants and users held, waited for and were refused. ReadCounters: what happened since
 * the start. */

#include "bus/bus-methods.h"
#include "bus/bus-reply.h"
#include "bus/bus-write.h"
#include "core/ledger/usage.h"

static void append_row(sd_bus_message *m, const struct usage_row *row)
{
	bus_open(m, "{sv}");
	BUS_MEMBERS(m, row, tenant, uid, leases, held_usec, cu_usec, queue_usec, waits, waited_usec,
		    refusals);
	BUS_VALUE(m, "class", class_names[row->class]);
	bus_close(m);
}

int bus_method_read_usage(sd_bus_message *call, void *userdata, sd_bus_error *)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) struct usage_row *rows = NULL;
	const struct bus *bus = userdata;
	uint64_t since, from;
	size_t n;
	int r;

	r = sd_bus_message_read(call, "t", &since);
	if (r >= 0)
		r = bus->host->read_usage(bus->userdata, since, &rows, &n, &from);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r < 0)
		return r;
	bus_open(reply, "a{sv}");
	for (size_t i = 0; i < n; i++)
		append_row(reply, &rows[i]);
	r = bus_close(reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "a{sv}", 1, "from", "t", from);
	return bus_send(reply, r);
}

/* ---- ReadCounters ------------------------------------------------------------------------ */

static void append_refusals(sd_bus_message *m, const uint64_t refusals[static REASONS])
{
	bus_open_entry(m, "refusals", "aa{sv}");
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < REASONS; i++)
		if (refusals[i] > 0)
			sd_bus_message_append(m, "a{sv}", 2, "reason", "s", reason_names[i],
					      "count", "t", refusals[i]);
	bus_close(m);
	bus_close_entry(m);
}

static void append_tenant(sd_bus_message *m, const struct counters_row *row)
{
	bus_open(m, "{sv}");
	BUS_MEMBERS(m, row, tenant);
	for (size_t i = 0; i < COUNTERS; i++)
		BUS_VALUE(m, counter_names[i], row->events[i]);
	append_refusals(m, row->refusals);
	bus_close(m);
}

static void append_duration(sd_bus_message *m, const struct counters *counters, size_t i)
{
	const struct histogram *histogram = &counters->histograms[i];

	bus_open(m, "{sv}");
	BUS_VALUE(m, "name", duration_names[i]);
	BUS_MEMBERS(m, histogram, sum_usec);
	bus_append_numbers(m, "bounds-usec", "t", duration_bounds[i],
			   COUNTERS_BOUNDS * sizeof(duration_bounds[i][0]));
	bus_append_numbers(m, "counts", "t", histogram->counts, sizeof(histogram->counts));
	bus_close(m);
}

int bus_method_read_counters(sd_bus_message *call, void *userdata, sd_bus_error *)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const struct bus *bus = userdata;
	const struct counters *counters = bus->host->counters(bus->userdata);
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r < 0)
		return r;
	bus_open(reply, "a{sv}");
	for (size_t i = 0; i < counters->n; i++)
		append_tenant(reply, &counters->rows[i]);
	bus_close(reply);
	bus_open(reply, "a{sv}");
	for (size_t i = 0; i < DURATIONS; i++)
		append_duration(reply, counters, i);
	r = bus_close(reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "a{sv}", 1, "since", "t", counters->seconds);
	return bus_send(reply, r);
}
