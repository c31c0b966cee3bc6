/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"

/* The daemon gives a person two minutes (bus-polkit.c), and this is a little more. */
#define PERSON_USEC UINT64_C(130000000)

int call_new(const char *path, const char *interface, const char *member, DBusMessage **ret)
{
	DBusMessage *m = dbus_message_new_method_call(GPUARB_BUS_NAME, path, interface, member);

	if (!m)
		return -ENOMEM;
	*ret = m;
	return 0;
}

/* Reads (s) or (s aa{sv}): the daemon's sentence, then what each GPU lacked. */
static int note_error(struct gpuarb *gpuarb, DBusMessage *reply)
{
	const char *name = dbus_message_get_error_name(reply), *sentence = name;
	DBusMessageIter iter;
	int r = error_from_name(name);

	gpuarb->error_name = strdup(name);
	if (!gpuarb->error_name)
		return -ENOMEM;

	if (dbus_message_iter_init(reply, &iter) &&
	    dbus_message_iter_get_arg_type(&iter) == DBUS_TYPE_STRING) {
		dbus_message_iter_get_basic(&iter, &sentence);
		if (dbus_message_iter_next(&iter) &&
		    read_refusals(&iter, &gpuarb->answer, &gpuarb->refusals, &gpuarb->n_refusals,
				  NULL) == -ENOMEM)
			return -ENOMEM;
	}

	if (r == -ECONNREFUSED)
		return fail(gpuarb, r, "gpuarbd does not run on this bus (%s): %s", gpuarb->address,
			    sentence);
	if (r == -ECONNRESET)
		return fail(gpuarb, r, "gpuarbd went away before it answered: %s", sentence);
	return fail(gpuarb, r, "%s", sentence);
}

static int await(struct gpuarb *gpuarb, struct connection *connection, dbus_uint32_t serial,
		 DBusMessage **ret)
{
	bool person = gpuarb->interactive && gpuarb->answer_usec < PERSON_USEC;
	uint64_t usec = person ? PERSON_USEC : gpuarb->answer_usec;
	uint64_t deadline = deadline_after(usec);

	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(connection, deadline, &m);

		if (r == -ETIMEDOUT)
			return fail(gpuarb, r,
				    "no answer on the bus at %s within %u s: does "
				    "gpuarbd hang?",
				    gpuarb->address, (unsigned)(usec / 1000000));
		if (r == -EINTR)
			return interrupted(gpuarb);
		if (r == -ECONNRESET)
			return fail(gpuarb, r, "the connection to the bus at %s was lost",
				    gpuarb->address);
		if (r < 0)
			return r;
		if (dbus_message_get_reply_serial(m) != serial)
			continue;

		*ret = TAKE_PTR(m);
		return 0;
	}
}

int call_send_on(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		 const char *signature, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	dbus_uint32_t serial;
	int r;

	free(gpuarb->error_name);
	gpuarb->error_name = NULL;
	dbus_message_set_allow_interactive_authorization(call, gpuarb->interactive);
	r = connection_send(connection, call, &serial);
	if (r < 0)
		return r;

	r = await(gpuarb, connection, serial, &reply);
	if (r < 0)
		return r;

	if (!dbus_message_has_sender(reply, DBUS_SERVICE_DBUS))
		gpuarb->known = true;
	if (dbus_message_get_type(reply) == DBUS_MESSAGE_TYPE_ERROR)
		return note_error(gpuarb, reply);
	if (signature && !dbus_message_has_signature(reply, signature))
		return misunderstood(gpuarb, dbus_message_get_member(call), NULL);
	if (ret)
		*ret = TAKE_PTR(reply);
	return 0;
}

static int send_once(struct gpuarb *gpuarb, DBusMessage *call, const char *signature,
		     DBusMessage **ret)
{
	bool brings = signature && strchr(signature, DBUS_TYPE_UNIX_FD);
	int r = connection_ensure(gpuarb);

	if (r < 0)
		return r;
	if ((brings || dbus_message_contains_unix_fds(call)) &&
	    !connection_passes_fds(gpuarb->connection))
		return fail(gpuarb, -EOPNOTSUPP,
			    "the bus at %s passes no file descriptors: use one on a unix socket",
			    gpuarb->address);

	r = call_send_on(gpuarb, gpuarb->connection, call, signature, ret);
	if (r < 0 && brings && !gpuarb->error_name) {
		connection_free(gpuarb->connection);
		gpuarb->connection = NULL;
	}
	return r;
}

int call_send(struct gpuarb *gpuarb, DBusMessage *call, const char *signature, DBusMessage **ret)
{
	_cleanup_(outage_done) struct outage outage = { .error = 0 };
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
		free(gpuarb->sentence); /* of what failed on the way */
		gpuarb->sentence = NULL;
	}
	return r;
}

int call_bus(struct gpuarb *gpuarb, struct connection *connection, const char *member,
	     const char *argument, const char *signature, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = dbus_message_new_method_call(
		DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, member);

	if (!call || (argument && !dbus_message_append_args(call, DBUS_TYPE_STRING, &argument,
							    DBUS_TYPE_INVALID)))
		return -ENOMEM;
	return call_send_on(gpuarb, connection, call, signature, ret);
}

void call_tell(struct gpuarb *gpuarb, const char *path, const char *interface, const char *member)
{
	_cleanup_(free_message) DBusMessage *call = NULL;

	if (!gpuarb->connection || call_new(path, interface, member, &call) < 0)
		return;

	/* libdbus writes at once what the socket takes. */
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
