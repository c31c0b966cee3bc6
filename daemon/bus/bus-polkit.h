/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Administrators, and callers that polkit makes one. */

#include "bus/bus-private.h"
#include "core/policy/caller.h"

/*
 * The caller of a method that only administrators may call. what: the method in words, such as
 * "drain a GPU". NULL: the handler returns 1. Then the caller is being looked up, or polkit was
 * asked, and `handler` is called again; or the call was answered with an error.
 */
const struct caller *bus_administrator(struct bus *bus, sd_bus_message *call,
				       sd_bus_message_handler_t handler, const char *what);

/* The same for a method that the owner of the lease may call as well. A caller that is neither is
 * returned with administrator = false: the daemon refuses the call. */
const struct caller *bus_owner(struct bus *bus, sd_bus_message *call,
			       sd_bus_message_handler_t handler, uint64_t lease);

/* Cancels the questions about a connection that has closed. */
void bus_forget_questions(struct bus *bus, const char *sender);

/* Answers the calls that wait for polkit with Shutdown. */
void bus_drop_questions(struct bus *bus);
