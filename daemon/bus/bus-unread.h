/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Answers that clients do not read. */

#include "bus/bus-users.h"

int bus_unread_start(struct bus *bus);

/* Counts the answer to a call of this size, with what is in the arbiter, just before it is sent. */
void bus_unread_answer(struct bus_peer *peer, const struct arbiter *arbiter, sd_bus_message *m,
		       size_t size);

/* Counts a refusal, if there is still room for one. */
bool bus_unread_has_room(struct bus *bus, struct bus_peer *peer);

/* Whether calls of the user wait until its connections have read their answers. */
bool bus_unread_holds(struct bus *bus, struct bus_user *user);

void bus_unread_forget(struct bus_peer *peer); /* its connection has closed */

/* Whether the bus tells what is unread. */
bool bus_unread_is_known(const struct bus *bus);

void bus_unread_stop(struct bus *bus);
