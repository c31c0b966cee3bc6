/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that wait for an observation. */

#include "bus/bus-private.h"
#include "core/policy/caller.h"

/* Lets the call wait: the handler returns 1 and is called again after what the daemon observes next. False: too
 * many calls of the user wait, or there is no memory, or no room for the file descriptors of the call. */
bool bus_waits(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Whether an observation of the processes that draw is under way: then the handler returns 1 and is
 * called again when the observation has ended. */
bool bus_wait_for_clients(struct bus *bus, bool all, sd_bus_message *call,
			  sd_bus_message_handler_t handler);

/* Whether the names in the configuration are looked up: the same. A call that cannot wait is refused. */
bool bus_waits_for_names(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* The same for a request to grant or to activate a lease: where policy refuses GPUs on which a process
 * draws, it is decided after that was observed. */
bool bus_decides_later(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Whether a request for a lease of this class waits for the first read of hardware queue descriptors: until
 * then the queues over CUs are unknown. The handler returns 1 and may be called again; a call that cannot
 * wait is refused. */
bool bus_waits_for_masks(struct bus *bus, enum lease_class lease_class, sd_bus_message *call,
			 sd_bus_message_handler_t handler);

/* The class that is asked for, or that of the tenant. */
enum lease_class bus_asked_class(const struct bus *bus, const struct caller *caller,
				 const struct request *request);

/* Forgets the calls of a connection that has closed; answers all of them with Shutdown. */
void bus_forget_client_calls(struct bus *bus, const char *sender);
void bus_drop_client_calls(struct bus *bus);
