/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who sent a call: what the bus vouches for, asked for once for each connection and kept
 * until it closes. The bus never gives a unique name twice.
 */

#include <systemd/sd-bus.h>

#include "core/policy/request.h"

struct bus;

/*
 * Who sent the call. NULL: the handler is done and returns 1. Then the sender is being
 * looked up and `handler` will be called again, in the order of the sender's calls; or the
 * call was answered with an error.
 */
const struct caller *bus_sender(struct bus *bus, sd_bus_message *call,
				sd_bus_message_handler_t handler);

/* Forgets senders whose connection has closed, from now on. */
int bus_watch_senders(struct bus *bus);

/* Forgets all of them; calls that still wait are answered: shutdown. */
void bus_drop_senders(struct bus *bus);
