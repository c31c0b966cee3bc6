/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/connection/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/reconnect.h"

int call_new(const char *path, const char *interface, const char *member, DBusMessage **ret)
{
	DBusMessage *m = dbus_message_new_method_call(GPUARB_BUS_NAME, path, interface, member);

	if (!m)
		return -ENOMEM;
	*ret = m;
	return 0;
}

static int send_once(struct gpuarb *gpuarb, DBusMessage *call, const char *signature,
		     DBusMessage **ret)
{
	bool reply_has_fd = signature && strchr(signature, DBUS_TYPE_UNIX_FD);
	int r = connection_ensure(gpuarb);

	if (r < 0)
		return r;
	if ((reply_has_fd || dbus_message_contains_unix_fds(call)) &&
	    !connection_passes_fds(gpuarb->connection))
		return fail(gpuarb, -EOPNOTSUPP,
			    "the bus at %s passes no file descriptors: use a bus on a unix socket",
			    gpuarb->address);

	r = connection_call(gpuarb, gpuarb->connection, call, signature, ret);
	if (r < 0 && reply_has_fd && !gpuarb->error_name) {
		connection_free(gpuarb->connection);
		gpuarb->connection = NULL;
	}
	return r;
}

int call_send(struct gpuarb *gpuarb, DBusMessage *call, const char *signature, DBusMessage **ret)
{
	_cleanup_(outage_clear) struct outage outage = { .error = 0 };
	int r;

	gpuarb->repeated = false;
	r = outage_wait(gpuarb, &outage, send_once(gpuarb, call, signature, ret));
	while (r > 0) {
		_cleanup_(free_message) DBusMessage *again = dbus_message_copy(call);

		if (!again)
			return -ENOMEM;
		r = outage_wait(gpuarb, &outage, send_once(gpuarb, again, signature, ret));
	}
	if (r >= 0) {
		free(gpuarb->sentence); /* of earlier attempts */
		gpuarb->sentence = NULL;
	}
	return r;
}

void call_no_reply(struct gpuarb *gpuarb, const char *path, const char *interface,
		   const char *member)
{
	_cleanup_(free_message) DBusMessage *call = NULL;

	if (!gpuarb->connection || call_new(path, interface, member, &call) < 0)
		return;

	/* libdbus writes at once as much as the socket takes. */
	dbus_message_set_no_reply(call, TRUE);
	dbus_message_set_auto_start(call, FALSE);
	connection_send(gpuarb->connection, call, NULL);
}

int call_simple(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		int type, const void *value)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	r = call_new(path, interface, member, &call);
	if (r < 0)
		return r;

	if (type != DBUS_TYPE_INVALID &&
	    !dbus_message_append_args(call, type, value, DBUS_TYPE_INVALID))
		return -ENOMEM;
	return call_send(gpuarb, call, NULL, NULL);
}

int call_properties(struct gpuarb *gpuarb, const char *path, const char *interface,
		    DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	r = call_new(path, DBUS_INTERFACE_PROPERTIES, "GetAll", &call);
	if (r < 0)
		return r;

	if (!dbus_message_append_args(call, DBUS_TYPE_STRING, &interface, DBUS_TYPE_INVALID))
		return -ENOMEM;
	return call_send(gpuarb, call, "a{sv}", ret);
}

int call_property(struct gpuarb *gpuarb, const char *path, const char *interface,
		  const char *property, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	r = call_new(path, DBUS_INTERFACE_PROPERTIES, "Get", &call);
	if (r < 0)
		return r;

	if (!dbus_message_append_args(call, DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING,
				      &property, DBUS_TYPE_INVALID))
		return -ENOMEM;
	return call_send(gpuarb, call, "v", ret);
}
