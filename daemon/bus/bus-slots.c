/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadSlots. The call waits until the daemon has read the slots; several calls share one reading. */

#include <errno.h>

#include "bus/bus-clients.h"
#include "bus/bus-methods.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-write.h"

static void append_queue(sd_bus_message *m, const struct queue_slot *slot)
{
	BUS_MEMBERS(m, slot, vmid, priority, doorbell);
	if (slot->pid != 0)
		BUS_MEMBERS(m, slot, pid, lease, command);
}

static void append_slot(sd_bus_message *m, const struct queue_slot *slot)
{
	bus_open(m, "{sv}");
	BUS_VALUE(m, slot->sdma ? "engine" : "pipe", slot->pipe);
	BUS_MEMBERS(m, slot, queue, active);
	if (!slot->sdma)
		BUS_MEMBERS(m, slot, xcc);
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
	BUS_MEMBERS(m, reading, usec, queues, without_slot);
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
