/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls of the daemon's methods through the handle. They outlast a restart of daemon and bus. */

#include "libgpuarb/connection/connection.h"

/* Makes a call of the daemon's method; arguments as of dbus_message_append_args(). */
int call_new(const char *path, const char *interface, const char *member, DBusMessage **ret,
	     int type, ...);

/*
 * Sends the call and waits for the answer, which must have this signature unless it is NULL. When
 * the daemon or the bus went away the call is sent again after their return; gpuarb->repeated then
 * says that the daemon may have carried it out before. A failure is noted in gpuarb.
 *
 * When no answer came and the answer would carry an fd, the connection is closed: the bus then
 * drops a late answer together with the fd.
 */
int call_send(struct gpuarb *gpuarb, DBusMessage *call, const char *signature, DBusMessage **ret);

/* Calls a method of the arbiter with no argument (type DBUS_TYPE_INVALID) or one. The pointer at ret becomes an
 * object for arena_object_free() of this size, filled from the answer, which must have these arguments (at most 4).
 * A failure is noted in gpuarb. */
struct argument;
int call_read(struct gpuarb *gpuarb, const char *method, int type, const void *value,
	      const struct argument *arguments, size_t n, size_t size, void *ret);

/* Calls with no argument (type DBUS_TYPE_INVALID) or one; the answer is ignored. */
int call_simple(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		int type, const void *value);

/* Properties.GetAll; *ret has the signature "a{sv}". */
int call_properties(struct gpuarb *gpuarb, const char *path, const char *interface,
		    DBusMessage **ret);

/* Properties.Get for a value of this basic type. A string belongs to *ret. */
int call_property(struct gpuarb *gpuarb, const char *path, const char *interface,
		  const char *property, int type, DBusMessage **ret, void *ret_value);

/* ---- waiting for a daemon or a bus that went away ------------------------------------------ */

/* One call, from its first failure because the daemon or the bus was away. Starts zeroed. */
struct outage {
	int error;                   /* of the first failure; 0: none yet */
	char *sentence, *error_name; /* with it */
	uint64_t since, deadline;
	unsigned losses; /* how often the connection was lost during the call */
};
void outage_clear(struct outage *outage);

/*
 * Decides after a call returned r. 1: send it again, the daemon and the bus may be back. Else the
 * result of the call, noted in gpuarb: r itself, the first failure if the time is over, or -EINTR.
 */
int outage_wait(struct gpuarb *gpuarb, struct outage *outage, int r);

/* Tries connection_new() with pauses until there is a bus. -ECONNREFUSED: none by the deadline. */
int reconnect_bus(struct gpuarb *gpuarb, uint64_t deadline, struct connection **ret);

/* Subscribes the connection to the daemon's arrival and departure. *ret_present: it is there
 * now. */
int daemon_subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_present);

/* What a message says about the daemon: 1: it arrived, 0: it left, -1: nothing. */
int daemon_presence(DBusMessage *m);
