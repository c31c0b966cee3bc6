/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A call is sent again when the connection was lost during the call, or when the daemon or the bus
 * was there before and is away now. The bus announces the return of the daemon. Nothing announces
 * the return of the bus, so reconnect_bus() tries to connect with growing pauses.
 */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

#define PAUSE_MIN_USEC 10000U /* between two attempts to connect */
#define PAUSE_MAX_USEC 250000U

/* A call that lost the connection so often may be the reason why the daemon crashes. */
#define LOSSES_MAX 3U

#define NAME_RULE                                                                 \
	"type='signal',sender='" DBUS_SERVICE_DBUS "',member='NameOwnerChanged'," \
	"arg0='" GPUARB_BUS_NAME "'"

int daemon_subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_present)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	dbus_bool_t present = FALSE;
	int r;

	r = connection_call_bus(gpuarb, connection, "AddMatch", NAME_RULE, NULL, NULL);
	if (r >= 0)
		r = connection_call_bus(gpuarb, connection, "NameHasOwner", GPUARB_BUS_NAME, "b",
					&reply);
	if (r < 0)
		return r;

	dbus_message_get_args(reply, NULL, DBUS_TYPE_BOOLEAN, &present, DBUS_TYPE_INVALID);
	*ret_present = present;
	return 0;
}

int daemon_presence(DBusMessage *m)
{
	const char *name, *from, *to;

	if (!dbus_message_is_signal(m, DBUS_INTERFACE_DBUS, "NameOwnerChanged") ||
	    !dbus_message_get_args(m, NULL, DBUS_TYPE_STRING, &name, DBUS_TYPE_STRING, &from,
				   DBUS_TYPE_STRING, &to, DBUS_TYPE_INVALID) ||
	    strcmp(name, GPUARB_BUS_NAME) != 0)
		return -1;
	return *to != '\0';
}

int reconnect_bus(struct gpuarb *gpuarb, uint64_t deadline, struct connection **ret)
{
	uint64_t pause = PAUSE_MIN_USEC;

	for (;;) {
		uint64_t until = deadline_after(pause);
		struct pollfd cancel = { .fd = gpuarb->cancel ? *gpuarb->cancel : -1,
					 .events = POLLIN };
		int r = poll_until(&cancel, 1, until < deadline ? until : deadline);

		if (r >= 0)
			return -ECANCELED;
		r = r == -EINTR ? fail_interrupted(gpuarb) : connection_new(gpuarb, ret);
		if (r != -ECONNREFUSED || now_usec() >= deadline)
			return r;
		pause = pause < PAUSE_MAX_USEC / 2 ? pause * 2 : PAUSE_MAX_USEC;
	}
}

/* 0: the daemon may be back, or the bus is gone too; the next call shows which. -ETIMEDOUT. */
static int wait_for_daemon(struct gpuarb *gpuarb, uint64_t deadline)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	bool present = false;
	int r;

	r = connection_new(gpuarb, &connection);
	if (r >= 0)
		r = daemon_subscribe(gpuarb, connection, &present);
	while (r >= 0 && !present) {
		_cleanup_(free_message) DBusMessage *m = NULL;

		r = connection_receive(connection, deadline, &m);
		if (r >= 0)
			present = daemon_presence(m) > 0;
	}
	if (r == -EINTR)
		return fail_interrupted(gpuarb);
	return r == -ECONNRESET || r == -ECONNREFUSED ? 0 : r;
}

void outage_clear(struct outage *outage)
{
	free(outage->sentence);
	free(outage->error_name);
}

/* The final result is the first failure, or the first -ECONNRESET: after that the daemon may have
 * carried the call out. */
static void outage_note(struct gpuarb *gpuarb, struct outage *outage, int r)
{
	uint64_t window = gpuarb->reconnect_usec < gpuarb->answer_usec ? gpuarb->reconnect_usec
								       : gpuarb->answer_usec;

	if (outage->error == 0) {
		outage->since = now_usec();
		outage->deadline = outage->since + window;
	}
	if (outage->error == 0 || (outage->error == -ECONNREFUSED && r == -ECONNRESET)) {
		outage_clear(outage);
		outage->error = r;
		outage->sentence = TAKE_PTR(gpuarb->sentence);
		outage->error_name = TAKE_PTR(gpuarb->error_name);
	}
	free(gpuarb->error_name); /* the next failure may have none */
	gpuarb->error_name = NULL;
}

static int outage_over(struct gpuarb *gpuarb, struct outage *outage)
{
	uint64_t tenths = (now_usec() - outage->since) / 100000;

	free(gpuarb->error_name);
	gpuarb->error_name = TAKE_PTR(outage->error_name);
	return fail(gpuarb, outage->error, "%s; waited %u.%u s for its return", outage->sentence,
		    (unsigned)(tenths / 10), (unsigned)(tenths % 10));
}

int outage_wait(struct gpuarb *gpuarb, struct outage *outage, int r)
{
	bool named = gpuarb->error_name;

	if (gpuarb->reconnect_usec == 0 ||
	    (r != -ECONNRESET && (r != -ECONNREFUSED || (named && !gpuarb->daemon_seen))))
		return r;

	outage_note(gpuarb, outage, r);
	if (r == -ECONNRESET) {
		gpuarb->daemon_seen = gpuarb->repeated = true;
		r = ++outage->losses < LOSSES_MAX ? 0 : -ETIMEDOUT;
	} else if (named) {
		r = wait_for_daemon(gpuarb, outage->deadline);
	} else {
		connection_free(TAKE_PTR(gpuarb->connection));
		r = reconnect_bus(gpuarb, outage->deadline, &gpuarb->connection);
	}
	if (r == -ETIMEDOUT || r == -ECONNREFUSED || (r >= 0 && now_usec() >= outage->deadline))
		return outage_over(gpuarb, outage);
	return r < 0 ? r : 1;
}

/* ---- calls ------------------------------------------------------------------------------- */

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

int call_read(struct gpuarb *gpuarb, const char *method, int type, const void *value,
	      const struct argument *arguments, size_t n, size_t size, void *ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL, *answer = NULL;
	_cleanup_(arena_object_freep) void *object = calloc(1, size);
	char signature[4 * sizeof("aa{sv}")] = "";
	const char *key = NULL;
	int r = -ENOMEM;

	for (size_t i = 0; i < n; i++)
		strcat(signature, arguments[i].count_offset > 0 ? "aa{sv}" : "a{sv}");
	if (object)
		r = call_new(GPUARB_PATH, GPUARB_INTERFACE, method, &call, type, value,
			     DBUS_TYPE_INVALID);
	if (r >= 0)
		r = call_send(gpuarb, call, signature, &answer);
	if (r < 0)
		return r;
	r = read_arguments(answer, arguments, n, object, object, &key);
	if (r < 0)
		return r == -EPROTO ? fail_answer(gpuarb, method, key) : r;
	memcpy(ret, &object, sizeof(object));
	object = NULL;
	return 0;
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
