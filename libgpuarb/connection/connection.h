/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One connection to the bus, and single calls on it.
 *
 * libdbus aborts the program when it gets a string that is not UTF-8, or an invalid path or name.
 * Check every string of the program with check_string() before it gets here.
 */

#include <dbus/dbus.h>

#include "libgpuarb/connection/handle.h"

void free_message(DBusMessage **m);

/* Connects and says Hello, within the handle's answer_usec. A failure is noted in gpuarb. */
int connection_new(struct gpuarb *gpuarb, struct connection **ret);
void connection_free(struct connection *connection); /* takes NULL */
DEFINE_CLEANUP(struct connection *, connection_free)

/* Makes gpuarb->connection unless it is there and the bus has not closed it. */
int connection_ensure(struct gpuarb *gpuarb);

bool connection_passes_fds(const struct connection *connection);

/* Replaces the fd that cancels waits on this connection; a new connection has the handle's. */
void connection_set_cancel(struct connection *connection, const int *cancel);

/* Returns the next message, waiting for it until the deadline: 0, -ETIMEDOUT, -EINTR, -ECANCELED,
 * -ECONNRESET, -ENOMEM. */
int connection_receive(struct connection *connection, uint64_t deadline, DBusMessage **ret);

/* Queues a message, and sends as much as the socket takes. -ENOMEM. */
int connection_send(struct connection *connection, DBusMessage *m, dbus_uint32_t *ret_serial);

/*
 * Sends the call once and waits for the answer, which must have this signature unless it is NULL.
 * A failure is noted in gpuarb. The connection stays as it is.
 */
int connection_call(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		    const char *signature, DBusMessage **ret);

/* Calls a method of the bus itself with no argument (NULL) or one string. */
int connection_call_bus(struct gpuarb *gpuarb, struct connection *connection, const char *member,
			const char *argument, const char *signature, DBusMessage **ret);
