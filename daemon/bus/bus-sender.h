/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The callers of methods, for whom the bus vouches. */

#include "bus/bus-users.h"

/* The connection of a call, whose caller may be unknown yet. NULL: the call was answered. */
struct bus_peer *bus_peer_of(struct bus *bus, sd_bus_message *call);

/* A call of the connection was taken from a queue. */
void bus_peer_unqueue(struct bus_peer *peer);

/* The caller of a method, which is known since the call passed the filter. NULL: the handler returns
 * 1, because the connection has closed since. */
const struct caller *bus_sender(struct bus *bus, sd_bus_message *call);

/* Its connection has closed: the caller is forgotten, and its calls are dropped. */
void bus_forget_sender(struct bus *bus, const char *name);

/* Answers the calls that wait for a look-up with Shutdown, and forgets all callers. */
void bus_drop_senders(struct bus *bus);
