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
#include "libgpuarb/connection/call.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

struct watch {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view; /* for the names of GPUs; NULL: to be looked up again */
	gpuarb_changed_t callback;
	void *userdata;
	uint64_t deadline;
	bool gone; /* the daemon; and that was told */
};

#define OBJECTS_RULE "type='signal',sender='" GPUARB_BUS_NAME "',path_namespace='" GPUARB_PATH "'"

static int subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_there)
{
	int r = call_bus(gpuarb, connection, "AddMatch", OBJECTS_RULE, NULL, NULL);

	return r < 0 ? r : return_subscribe(gpuarb, connection, ret_there);
}

static void tell_lease(struct watch *watch, const char *kind, uint64_t id)
{
	char what[24];

	snprintf(what, sizeof(what), "%" PRIu64, id);
	watch->callback(kind, what, watch->userdata);
}

/* A picture without waiting for a daemon that is not there: what became of it is told in its
 * turn. */
static int look_now(struct gpuarb *gpuarb, struct gpuarb_view **ret)
{
	uint64_t usec = gpuarb->return_usec;
	int r;

	gpuarb->return_usec = 0;
	r = view_new(gpuarb, ret);
	gpuarb->return_usec = usec;
	return r;
}

/* A GPU whose object is not in the picture came after it: look once more. */
static int tell_gpu(struct watch *watch, const char *kind, uint64_t number)
{
	const char *name;

	if (strcmp(kind, "gpu-added") == 0) /* the picture may have another of this number */
		gpuarb_view_free(TAKE_PTR(watch->view));
	name = watch->view ? view_gpu_name(watch->view, number) : NULL;
	if (!name) {
		struct gpuarb_view *view;
		int r = look_now(watch->gpuarb, &view);

		if (r == -ECONNREFUSED || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return r;
		gpuarb_view_free(watch->view);
		watch->view = view;
		name = view_gpu_name(view, number);
	}
	if (name)
		watch->callback(kind, name, watch->userdata);
	return 0;
}

/* Of whichever of the two the path is. */
static int tell_object(struct watch *watch, const char *lease_kind, const char *gpu_kind,
		       const char *path)
{
	uint64_t number;

	if (path_number(path, GPUARB_PATH_GPU, &number) >= 0)
		return tell_gpu(watch, gpu_kind, number);
	if (path_number(path, GPUARB_PATH_LEASE, &number) >= 0)
		tell_lease(watch, lease_kind, number);
	return 0;
}

static void tell_daemon(struct watch *watch, bool there)
{
	gpuarb_view_free(TAKE_PTR(watch->view));
	watch->gone = !there;
	watch->callback(there ? "daemon-back" : "daemon-gone", "", watch->userdata);
}

/* An object that came or went is the first argument of its signal. */
static int tell_argument(struct watch *watch, const char *lease_kind, const char *gpu_kind,
			 DBusMessage *m)
{
	DBusMessageIter iter;
	const char *path;

	if (!dbus_message_iter_init(m, &iter) ||
	    dbus_message_iter_get_arg_type(&iter) != DBUS_TYPE_OBJECT_PATH)
		return 0;
	dbus_message_iter_get_basic(&iter, &path);
	return tell_object(watch, lease_kind, gpu_kind, path);
}

static int tell(struct watch *watch, DBusMessage *m)
{
	if (dbus_message_is_signal(m, DBUS_INTERFACE_PROPERTIES, "PropertiesChanged"))
		return tell_object(watch, "lease-changed", "gpu-changed", dbus_message_get_path(m));
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesAdded"))
		return tell_argument(watch, "lease-added", "gpu-added", m);
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesRemoved"))
		return tell_argument(watch, "lease-removed", "gpu-removed", m);
	if (return_told(m) >= 0)
		tell_daemon(watch, return_told(m));
	return 0;
}

static int watch_connection(struct watch *watch, struct connection *connection)
{
	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(connection, watch->deadline, &m);

		if (r == -EINTR)
			return interrupted(watch->gpuarb);
		if (r >= 0)
			r = tell(watch, m);
		if (r < 0 || watch->gpuarb->stop)
			return r;
	}
}

static int connect_patiently(struct gpuarb *gpuarb, struct connection **ret)
{
	_cleanup_(outage_done) struct outage outage = { .error = 0 };
	int r;

	do
		r = outage_wait(gpuarb, &outage, connection_new(gpuarb, ret));
	while (r > 0);
	return r;
}

static int watch_begin(struct watch *watch, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	bool there;
	int r;

	r = connect_patiently(watch->gpuarb, &connection);
	if (r >= 0)
		r = subscribe(watch->gpuarb, connection, &there);
	if (r >= 0)
		r = view_new(watch->gpuarb, &watch->view);
	if (r < 0)
		return r;

	watch->callback("watching", "", watch->userdata);
	*ret = TAKE_PTR(connection);
	return 0;
}

/* The bus was lost: goes on when there is one again. */
static int watch_again(struct watch *watch, struct connection **connection)
{
	bool there = false;
	int r;

	if (!watch->gone)
		tell_daemon(watch, false);
	if (watch->gpuarb->stop)
		return 0;

	connection_free(TAKE_PTR(*connection));
	r = return_of_bus(watch->gpuarb, watch->deadline, connection);
	if (r == -ECONNREFUSED)
		return -ETIMEDOUT;
	if (r >= 0)
		r = subscribe(watch->gpuarb, *connection, &there);
	if (r >= 0 && there)
		tell_daemon(watch, true);
	return r;
}

static int watch_all(struct watch *watch)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	r = watch_begin(watch, &connection);
	while (r >= 0 && !watch->gpuarb->stop) {
		r = watch_connection(watch, connection);
		while (r == -ECONNRESET)
			r = watch_again(watch, &connection);
	}
	return watch->gpuarb->stop || (r == -ETIMEDOUT && now_usec() >= watch->deadline) ? 0 : r;
}

GPUARB_EXPORT int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback,
			       void *userdata)
{
	struct watch watch = { .gpuarb = gpuarb, .callback = callback, .userdata = userdata };
	int r;

	if (!gpuarb || !callback)
		return -EINVAL;

	begin(gpuarb);
	gpuarb->stop = false;
	watch.deadline = deadline_after(usec);
	r = done(gpuarb, watch_all(&watch));
	gpuarb_view_free(watch.view);
	return r;
}

GPUARB_EXPORT void gpuarb_watch_stop(struct gpuarb *gpuarb)
{
	if (gpuarb)
		gpuarb->stop = true;
}
