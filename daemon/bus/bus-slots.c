/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadSlots. The call waits until the daemon has read the slots; several calls share one reading. */

#include <errno.h>

#include "bus/bus-private.h"

static void append_queue(sd_bus_message *m, const struct queue_slot *slot)
{
	sd_bus_message_append(m, "{sv}{sv}{sv}", "vmid", "u", slot->vmid, "priority", "u",
			      slot->priority, "doorbell", "u", slot->doorbell);
	if (slot->pid == 0)
		return;
	sd_bus_message_append(m, "{sv}{sv}", "pid", "u", (uint32_t)slot->pid, "lease", "t",
			      slot->lease);
	bus_open_entry(m, "command", "s");
	bus_append_text(m, slot->command);
	bus_close_entry(m);
}

static void append_slot(sd_bus_message *m, const struct queue_slot *slot)
{
	bus_open(m, "{sv}");
	sd_bus_message_append(m, "{sv}{sv}{sv}", slot->sdma ? "engine" : "pipe", "u", slot->pipe,
			      "queue", "u", slot->queue, "active", "b", slot->active);
	if (!slot->sdma)
		sd_bus_message_append(m, "{sv}", "xcc", "u", slot->xcc);
	if (slot->active)
		append_queue(m, slot);
	bus_close(m);
}

/* The slots of pipes, or of SDMA engines. */
static int append_slots(sd_bus_message *m, const struct slots_reading *reading, bool sdma)
{
	bus_open(m, "a{sv}");
	for (size_t i = 0; i < reading->n; i++)
		if (reading->slots[i].kfd_gpu_id == reading->kfd_gpu_id &&
		    reading->slots[i].sdma == sdma)
			append_slot(m, &reading->slots[i]);
	return bus_close(m);
}

static int append_facts(sd_bus_message *m, const struct slots_reading *reading)
{
	bus_open(m, "{sv}");
	sd_bus_message_append(m, "{sv}{sv}{sv}", "usec", "t", reading->usec, "queues", "u",
			      reading->queues, "without-slot", "u", reading->without_slot);
	bus_open_entry(m, "sdma", "aa{sv}");
	append_slots(m, reading, true);
	bus_close_entry(m);
	return bus_close(m);
}

static int reply_slots(sd_bus_message *call, const struct slots_reading *reading)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r < 0)
		return r;
	append_slots(reply, reading, false);
	return bus_send(reply, append_facts(reply, reading));
}

int bus_method_read_slots(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct slots_reading reading;
	struct bus *bus = userdata;
	const char *gpu;
	int r;

	r = sd_bus_message_read(m, "s", &gpu);
	if (r < 0)
		return r;
	r = bus->host->read_slots(bus->userdata, gpu, &reading, &result);
	if (r == -EINPROGRESS)
		return bus_waits(bus, m, bus_method_read_slots)
			       ? 1
			       : sd_bus_reply_method_errorf(
					 m, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "too many calls of this user wait already: try again later");
	return r < 0 ? bus_refuse(m, r, &result) : reply_slots(m, &reading);
}
