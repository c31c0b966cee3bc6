/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/connection/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/reconnect.h"

int call_new(const char *path, const char *interface, const char *member, DBusMessage **ret,
	     int type, ...)
{
	_cleanup_(free_message) DBusMessage *m = dbus_message_new_method_call(GPUARB_BUS_NAME, path,
									      interface, member);
	bool complete;
	va_list args;

	va_start(args, type);
	complete = m && dbus_message_append_args_valist(m, type, args);
	va_end(args);
	if (!complete)
		return -ENOMEM;
	*ret = TAKE_PTR(m);
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
	    !dbus_connection_can_send_type(gpuarb->connection->dbus, DBUS_TYPE_UNIX_FD))
		return fail(gpuarb, -EOPNOTSUPP,
			    "the bus at %s passes no file descriptors: use a bus on a unix socket",
			    gpuarb->address);

	r = connection_call(gpuarb, gpuarb->connection, call, signature, ret);
	if (r < 0 && reply_has_fd && !gpuarb->error_name)
		connection_free(TAKE_PTR(gpuarb->connection));
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

int call_simple(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member,
		int type, const void *value)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(path, interface, member, &call, type, value, DBUS_TYPE_INVALID);

	return r < 0 ? r : call_send(gpuarb, call, NULL, NULL);
}

int call_properties(struct gpuarb *gpuarb, const char *path, const char *interface,
		    DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = call_new(path, DBUS_INTERFACE_PROPERTIES, "GetAll", &call, DBUS_TYPE_STRING,
			 &interface, DBUS_TYPE_INVALID);

	return r < 0 ? r : call_send(gpuarb, call, "a{sv}", ret);
}

int call_property(struct gpuarb *gpuarb, const char *path, const char *interface,
		  const char *property, int type, DBusMessage **ret, void *ret_value)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	DBusMessageIter iter, value;
	int r;

	r = call_new(path, DBUS_INTERFACE_PROPERTIES, "Get", &call, DBUS_TYPE_STRING, &interface,
		     DBUS_TYPE_STRING, &property, DBUS_TYPE_INVALID);
	if (r >= 0)
		r = call_send(gpuarb, call, "v", ret);
	if (r < 0)
		return r;

	dbus_message_iter_init(*ret, &iter);
	dbus_message_iter_recurse(&iter, &value);
	if (dbus_message_iter_get_arg_type(&value) != type)
		return fail_answer(gpuarb, "Get", property);
	dbus_message_iter_get_basic(&value, ret_value);
	return 0;
}
