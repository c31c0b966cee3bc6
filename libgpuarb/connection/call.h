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

/* Calls with no argument (type DBUS_TYPE_INVALID) or one; the answer is ignored. */
int call_simple(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		int type, const void *value);

/* Properties.GetAll; *ret has the signature "a{sv}". */
int call_properties(struct gpuarb *gpuarb, const char *path, const char *interface,
		    DBusMessage **ret);

/* Properties.Get for a value of this basic type. A string belongs to *ret. */
int call_property(struct gpuarb *gpuarb, const char *path, const char *interface,
		  const char *property, int type, DBusMessage **ret, void *ret_value);
