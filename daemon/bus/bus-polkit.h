/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Administrators: root, the user that the daemon runs as, and whom polkit lets
 * org.gpuarb.Arbiter1.manage. Polkit is asked without waiting for it; where it is absent, says
 * nothing in time or dies, it has not allowed it.
 */

#include <systemd/sd-bus.h>

#include "core/policy/request.h"

struct bus;

/*
 * The sender as one who may administer; `what` follows "may". NULL: the handler is done and
 * returns 1; the sender is being looked up or polkit asked, and `handler` will be called
 * again, or the call was answered with an error.
 */
const struct caller *bus_administrator(struct bus *bus, sd_bus_message *call,
				       sd_bus_message_handler_t handler, const char *what);

/* The same for what a lease's owner may do too. Whom neither is true of is returned as he is:
 * the host refuses it in its own words. */
const struct caller *bus_owner(struct bus *bus, sd_bus_message *call,
			       sd_bus_message_handler_t handler, uint64_t lease);

/* Forgets all that polkit was asked; the calls are answered: shutdown. */
void bus_drop_questions(struct bus *bus);
