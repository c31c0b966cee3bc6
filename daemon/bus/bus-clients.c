/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls that wait until it was observed which processes draw, what queues cover, or which queue slots are
 * used. */

#include <stdlib.h>
#include <string.h>

#include "bus/bus-clients.h"

#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "core/change/graphics.h"
#include "core/policy/request.h"

#define CALLS_OF_USER 256U

struct client_call {
	sd_bus_message *call;
	sd_bus_message_handler_t handler;
	uid_t uid;
	TAILQ_ENTRY(client_call) link;
};

static void remove_call(struct bus *bus, struct client_call *call)
{
	TAILQ_REMOVE(&bus->client_calls, call, link);
	sd_bus_message_unref(call->call);
	free(call);
}

/* A user with too many calls that wait takes the room of no other user. Each call keeps its file descriptors
 * open. */
static bool has_room(const struct bus *bus, uid_t uid)
{
	const struct client_call *call;
	unsigned n = 0;

	TAILQ_FOREACH(call, &bus->client_calls, link)
	n += call->uid == uid;
	return n < CALLS_OF_USER && !bus_fds_are_scarce(bus);
}

bool bus_waits(struct bus *bus, sd_bus_message *m, sd_bus_message_handler_t handler)
{
	const struct caller *caller = bus_sender(bus, m);
	struct client_call *call;

	if (!caller || !has_room(bus, caller->uid))
		return false;
	call = calloc(1, sizeof(*call));
	if (!call)
		return false;
	call->call = sd_bus_message_ref(m);
	call->uid = caller->uid;
	call->handler = handler;
	TAILQ_INSERT_TAIL(&bus->client_calls, call, link);
	return true;
}

/* Beyond the limit, and without memory, a call is answered by the last observation. */
bool bus_wait_for_clients(struct bus *bus, bool all, sd_bus_message *m,
			  sd_bus_message_handler_t handler)
{
	return bus->host->observe_clients(bus->userdata, all) && bus_waits(bus, m, handler);
}

bool bus_waits_for_names(struct bus *bus, sd_bus_message *m, sd_bus_message_handler_t handler)
{
	if (!bus->host->resolve(bus->userdata))
		return false;
	if (!bus_waits(bus, m, handler))
		bus_refuse_as(m, RESULT_NO_MEMORY, "too many calls wait: try again");
	return true;
}

bool bus_decides_later(struct bus *bus, sd_bus_message *m, sd_bus_message_handler_t handler)
{
	return bus->arbiter->settings->graphics == GRAPHICS_REFUSE_REALTIME &&
	       bus_wait_for_clients(bus, true, m, handler);
}

bool bus_waits_for_masks(struct bus *bus, enum lease_class lease_class, sd_bus_message *m,
			 sd_bus_message_handler_t handler)
{
	if (lease_class == CLASS_REALTIME && arbiter_has_user_queues(bus->arbiter) &&
	    bus_wait_for_clients(bus, true, m, handler))
		return true;
	if (lease_class == CLASS_BESTEFFORT ||
	    bus->arbiter->settings->unmasked == UNMASKED_IGNORE ||
	    !bus->host->awaits_masks(bus->userdata))
		return false;
	/* There is no last observation: an answer would be a guess. */
	if (!bus_waits(bus, m, handler))
		bus_refuse_as(
			m, RESULT_NO_MEMORY,
			"gpuarbd has started and reads the hardware queue descriptors, and too "
			"many requests wait for that: try again");
	return true;
}

enum lease_class bus_asked_class(const struct bus *bus, const struct caller *caller,
				 const struct request *request)
{
	_cleanup_(result_done) struct result result = { 0 };
	const struct tenant *tenant;

	if (request->class >= 0)
		return (enum lease_class)request->class;
	if (tenant_find(bus->arbiter->settings, caller, request->tenant, &tenant, &result) < 0)
		return CLASS_BESTEFFORT; /* it is refused */
	return tenant->class;
}

/* Answers each call that waits now. A call that has to wait for another observation goes to the end of
 * the list. */
void bus_observed(struct bus *bus)
{
	struct client_call *last = TAILQ_LAST(&bus->client_calls, client_call_list), *call;
	bool more = last != NULL;

	bus->changed = true; /* calls may have waited for the end of a round */
	while (more && (call = TAILQ_FIRST(&bus->client_calls))) {
		more = call != last;
		bus_handle_again(bus, call->call, call->handler);
		remove_call(bus, call);
	}
}

void bus_forget_client_calls(struct bus *bus, const char *sender)
{
	struct client_call *next;

	for (struct client_call *call = TAILQ_FIRST(&bus->client_calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (strcmp(sd_bus_message_get_sender(call->call), sender) == 0)
			remove_call(bus, call);
	}
}

void bus_drop_client_calls(struct bus *bus)
{
	for (struct client_call *call; (call = TAILQ_FIRST(&bus->client_calls));) {
		bus_refuse_as(call->call, RESULT_SHUTDOWN, BUS_STOPPING);
		remove_call(bus, call);
	}
}
