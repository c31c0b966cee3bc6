/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadUsage: what tenants and users held, waited for and were refused. */

#include "bus/bus-private.h"
#include "util/text.h"

static int append_row(sd_bus_message *m, const struct usage_row *row)
{
	char tenant[sizeof(row->tenant)];

	return sd_bus_message_append(
		m, "a{sv}", 10, "tenant", "s", text_clean(tenant, sizeof(tenant), row->tenant),
		"uid", "u", (uint32_t)row->uid, "class", "s", class_names[row->class], "leases",
		"t", row->leases, "held-usec", "t", row->held_usec, "cu-usec", "t", row->cu_usec,
		"queue-usec", "t", row->queue_usec, "waits", "t", row->waits, "waited-usec", "t",
		row->waited_usec, "refusals", "t", row->refusals);
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
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_row(reply, &rows[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "a{sv}", 1, "from", "t", from);
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}
