/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One connection to the bus, single calls on it, and opening a handle.
 *
 * libdbus aborts the program when it gets a string that is not UTF-8, or an invalid path or name.
 * Check every string of the program with check_string() before it gets here.
 */

#include <dbus/dbus.h>

#include "libgpuarb/connection/handle.h"

/* The daemon answers at once. This limit is for a daemon that is stopped, or that hangs because
 * the service manager does. */
#define ANSWER_USEC (25U * UINT64_C(1000000))

/* How long a call waits for a daemon or a bus that went away, at most ANSWER_USEC. */
#define RECONNECT_USEC (10U * UINT64_C(1000000))

#define WATCHES 4U /* libdbus uses two for a socket: one to read, one to write */

struct connection {
	DBusConnection *dbus;
	DBusWatch *watches[WATCHES];
	const int *cancel;     /* as in struct gpuarb */
	uint64_t present_usec; /* when the daemon was on the bus; 0: it was not */
};

void free_message(DBusMessage **m);

/* Connects, says Hello and asks whether the daemon is on the bus, within the handle's answer_usec. A
 * failure is noted in gpuarb. */
int connection_new(struct gpuarb *gpuarb, struct connection **ret);
void connection_free(struct connection *connection); /* takes NULL */
DEFINE_CLEANUP(struct connection *, connection_free)

/* Makes gpuarb->connection unless it is there and the bus has not closed it. */
int connection_ensure(struct gpuarb *gpuarb);

/* Returns the next message, waiting for it until the deadline: 0, -ETIMEDOUT, -EINTR, -ECANCELED,
 * -ECONNRESET, -ENOMEM. */
int connection_receive(struct connection *connection, uint64_t deadline, DBusMessage **ret);

/*
 * Sends the call once and waits for the answer, which must have this signature unless it is NULL.
 * A failure is noted in gpuarb. The connection stays as it is.
 */
int connection_call(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		    const char *signature, DBusMessage **ret);

/* Calls a method of the bus itself with no argument (NULL) or one string. */
int connection_call_bus(struct gpuarb *gpuarb, struct connection *connection, const char *member,
			const char *argument, const char *signature, DBusMessage **ret);

/* Makes a handle without connecting. address NULL: the bus that gpuarb_open() uses. */
int gpuarb_new(const char *address, struct gpuarb **ret);

struct gpuarb *gpuarb_reference(struct gpuarb *gpuarb);
void gpuarb_unreference(struct gpuarb *gpuarb);
