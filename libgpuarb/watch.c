/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Watching has a connection of its own for as long as it lasts: signals do not mix with
 * answers, and the callback may use the handle.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/call.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

struct watch {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view; /* for the names of GPUs; NULL: to be looked up again */
	gpuarb_changed_t callback;
	void *userdata;
};

static const char *const rules[] = {
	"type='signal',sender='" GPUARB_BUS_NAME "',path_namespace='" GPUARB_PATH "'",
	"type='signal',sender='" DBUS_SERVICE_DBUS "',member='NameOwnerChanged',"
	"arg0='" GPUARB_BUS_NAME "'",
};

static int subscribe(struct gpuarb *gpuarb, struct connection *connection)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		_cleanup_(free_message) DBusMessage *call = dbus_message_new_method_call(
			DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "AddMatch");
		int r;

		if (!call || !dbus_message_append_args(call, DBUS_TYPE_STRING, &rules[i],
						       DBUS_TYPE_INVALID))
			return -ENOMEM;
		r = call_send_on(gpuarb, connection, call, NULL, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static void tell_lease(struct watch *watch, const char *kind, uint64_t id)
{
	char what[24];

	snprintf(what, sizeof(what), "%" PRIu64, id);
	watch->callback(kind, what, watch->userdata);
}

/* A GPU whose object is not in the picture came after it: look once more. */
static int tell_gpu(struct watch *watch, uint64_t number)
{
	const char *name = watch->view ? view_gpu_name(watch->view, number) : NULL;

	if (!name) {
		struct gpuarb_view *view;
		int r = view_new(watch->gpuarb, &view);

		/* A daemon or a bus that has just gone is told of in its turn. */
		if (r == -ECONNREFUSED || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return r;
		gpuarb_view_free(watch->view);
		watch->view = view;
		name = view_gpu_name(view, number);
	}
	if (name)
		watch->callback("gpu-changed", name, watch->userdata);
	return 0;
}

static int tell_object(struct watch *watch, const char *lease_kind, const char *path)
{
	uint64_t number;

	if (path_number(path, GPUARB_PATH_GPU, &number) >= 0)
		return tell_gpu(watch, number);
	if (path_number(path, GPUARB_PATH_LEASE, &number) >= 0)
		tell_lease(watch, lease_kind, number);
	return 0;
}

static void tell_daemon(struct watch *watch, DBusMessage *m)
{
	const char *name, *from, *to;

	if (!dbus_message_get_args(m, NULL, DBUS_TYPE_STRING, &name, DBUS_TYPE_STRING, &from,
				   DBUS_TYPE_STRING, &to, DBUS_TYPE_INVALID) ||
	    strcmp(name, GPUARB_BUS_NAME) != 0)
		return;

	/* Another daemon may have other GPUs behind the same numbers. */
	gpuarb_view_free(TAKE_PTR(watch->view));
	watch->callback(*to ? "daemon-back" : "daemon-gone", "", watch->userdata);
}

/* An object that came or went is the first argument of its signal. */
static int tell_argument(struct watch *watch, const char *lease_kind, DBusMessage *m)
{
	DBusMessageIter iter;
	const char *path;

	if (!dbus_message_iter_init(m, &iter) ||
	    dbus_message_iter_get_arg_type(&iter) != DBUS_TYPE_OBJECT_PATH)
		return 0;
	dbus_message_iter_get_basic(&iter, &path);
	return tell_object(watch, lease_kind, path);
}

static int tell(struct watch *watch, DBusMessage *m)
{
	if (dbus_message_is_signal(m, DBUS_INTERFACE_PROPERTIES, "PropertiesChanged"))
		return tell_object(watch, "lease-changed", dbus_message_get_path(m));
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesAdded"))
		return tell_argument(watch, "lease-added", m);
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesRemoved"))
		return tell_argument(watch, "lease-removed", m);
	if (dbus_message_is_signal(m, DBUS_INTERFACE_DBUS, "NameOwnerChanged"))
		tell_daemon(watch, m);
	return 0;
}

static int watch_until(struct watch *watch, struct connection *connection, uint64_t deadline)
{
	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(connection, deadline, &m);

		if (r == -ETIMEDOUT)
			return 0;
		if (r == -EINTR)
			return fail(watch->gpuarb, r, "interrupted by a signal");
		if (r == -ECONNRESET)
			return fail(watch->gpuarb, r, "the connection to the bus at %s was lost",
				    watch->gpuarb->address);
		if (r >= 0)
			r = tell(watch, m);
		if (r < 0)
			return r;
	}
}

static int watch_all(struct gpuarb *gpuarb, uint64_t deadline, gpuarb_changed_t callback,
		     void *userdata)
{
	struct watch watch = { .gpuarb = gpuarb, .callback = callback, .userdata = userdata };
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	r = connection_new(gpuarb, &connection);
	if (r >= 0)
		r = subscribe(gpuarb, connection);
	if (r >= 0)
		r = view_new(gpuarb, &watch.view);
	if (r >= 0) {
		callback("watching", "", userdata);
		r = watch_until(&watch, connection, deadline);
	}

	gpuarb_view_free(watch.view);
	return r;
}

GPUARB_EXPORT int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback,
			       void *userdata)
{
	if (!gpuarb || !callback)
		return -EINVAL;

	begin(gpuarb);
	return done(gpuarb, watch_all(gpuarb, deadline_after(usec), callback, userdata));
}
