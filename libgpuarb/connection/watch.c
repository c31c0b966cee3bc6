/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb_watch() has a connection of its own until it returns. So signals do not mix with the
 * answers of calls that the callback makes with the handle.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/read.h"
#include "libgpuarb/connection/reconnect.h"
#include "libgpuarb/connection/snapshot.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

struct watch {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view; /* for the names of GPUs; NULL: take a new snapshot */
	gpuarb_changed_t callback;
	void *userdata;
	uint64_t deadline;
	bool daemon_gone; /* and reported */
};

#define OBJECTS_RULE "type='signal',sender='" GPUARB_BUS_NAME "',path_namespace='" GPUARB_PATH "'"

static int subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_present)
{
	int r = connection_call_bus(gpuarb, connection, "AddMatch", OBJECTS_RULE, NULL, NULL);

	return r < 0 ? r : daemon_subscribe(gpuarb, connection, ret_present);
}

static void report_lease(struct watch *watch, const char *kind, uint64_t id)
{
	char decimal[24];

	snprintf(decimal, sizeof(decimal), "%" PRIu64, id);
	watch->callback(kind, decimal, watch->userdata);
}

/* Takes a snapshot without waiting for a daemon that is away: its departure is reported by the
 * next signal. */
static int view_without_waiting(struct gpuarb *gpuarb, struct gpuarb_view **ret)
{
	uint64_t usec = gpuarb->reconnect_usec;
	int r;

	gpuarb->reconnect_usec = 0;
	r = view_new(gpuarb, ret);
	gpuarb->reconnect_usec = usec;
	return r;
}

/* A GPU that is not in the snapshot is newer than it: take another snapshot. */
static int report_gpu(struct watch *watch, const char *kind, uint64_t number)
{
	const char *name;

	if (strcmp(kind, "gpu-added") == 0) /* the snapshot may have an older GPU of this number */
		gpuarb_view_free(TAKE_PTR(watch->view));
	name = watch->view ? view_gpu_name(watch->view, number) : NULL;
	if (!name) {
		struct gpuarb_view *view;
		int r = view_without_waiting(watch->gpuarb, &view);

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

/* Reports a lease or a GPU, according to the path. */
static int report_object(struct watch *watch, const char *lease_kind, const char *gpu_kind,
			 const char *path)
{
	uint64_t number;

	if (path_number(path, GPUARB_PATH_GPU, &number) >= 0)
		return report_gpu(watch, gpu_kind, number);
	if (path_number(path, GPUARB_PATH_LEASE, &number) >= 0)
		report_lease(watch, lease_kind, number);
	return 0;
}

static void report_daemon(struct watch *watch, bool present)
{
	gpuarb_view_free(TAKE_PTR(watch->view));
	watch->daemon_gone = !present;
	watch->callback(present ? "daemon-back" : "daemon-gone", "", watch->userdata);
}

/* The first argument of InterfacesAdded and InterfacesRemoved is the path of the object. */
static int report_argument(struct watch *watch, const char *lease_kind, const char *gpu_kind,
			   DBusMessage *m)
{
	DBusMessageIter iter;
	const char *path;

	if (!dbus_message_iter_init(m, &iter) ||
	    dbus_message_iter_get_arg_type(&iter) != DBUS_TYPE_OBJECT_PATH)
		return 0;
	dbus_message_iter_get_basic(&iter, &path);
	return report_object(watch, lease_kind, gpu_kind, path);
}

static int report(struct watch *watch, DBusMessage *m)
{
	if (dbus_message_is_signal(m, DBUS_INTERFACE_PROPERTIES, "PropertiesChanged"))
		return report_object(watch, "lease-changed", "gpu-changed",
				     dbus_message_get_path(m));
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesAdded"))
		return report_argument(watch, "lease-added", "gpu-added", m);
	if (dbus_message_is_signal(m, OBJECT_MANAGER, "InterfacesRemoved"))
		return report_argument(watch, "lease-removed", "gpu-removed", m);
	if (daemon_presence(m) >= 0)
		report_daemon(watch, daemon_presence(m));
	return 0;
}

static int watch_on(struct watch *watch, struct connection *connection)
{
	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(connection, watch->deadline, &m);

		if (r == -EINTR)
			return fail_interrupted(watch->gpuarb);
		if (r >= 0)
			r = report(watch, m);
		if (r < 0 || watch->gpuarb->stop_watch)
			return r;
	}
}

static int connect_and_wait(struct gpuarb *gpuarb, struct connection **ret)
{
	_cleanup_(outage_clear) struct outage outage = { .error = 0 };
	int r;

	do
		r = outage_wait(gpuarb, &outage, connection_new(gpuarb, ret));
	while (r > 0);
	return r;
}

static int watch_begin(struct watch *watch, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	bool present;
	int r;

	r = connect_and_wait(watch->gpuarb, &connection);
	if (r >= 0)
		r = subscribe(watch->gpuarb, connection, &present);
	if (r >= 0)
		r = view_new(watch->gpuarb, &watch->view);
	if (r < 0)
		return r;

	watch->callback("watching", "", watch->userdata);
	*ret = TAKE_PTR(connection);
	return 0;
}

/* The connection to the bus was lost: connects again as soon as there is a bus. */
static int watch_reconnect(struct watch *watch, struct connection **connection)
{
	bool present = false;
	int r;

	if (!watch->daemon_gone)
		report_daemon(watch, false);
	if (watch->gpuarb->stop_watch)
		return 0;

	connection_free(TAKE_PTR(*connection));
	r = reconnect_bus(watch->gpuarb, watch->deadline, connection);
	if (r == -ECONNREFUSED)
		return -ETIMEDOUT;
	if (r >= 0)
		r = subscribe(watch->gpuarb, *connection, &present);
	if (r >= 0 && present)
		report_daemon(watch, true);
	return r;
}

static int watch_all(struct watch *watch)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	r = watch_begin(watch, &connection);
	while (r >= 0 && !watch->gpuarb->stop_watch) {
		r = watch_on(watch, connection);
		while (r == -ECONNRESET)
			r = watch_reconnect(watch, &connection);
	}
	return watch->gpuarb->stop_watch || (r == -ETIMEDOUT && now_usec() >= watch->deadline) ? 0
											       : r;
}

GPUARB_EXPORT int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback,
			       void *userdata)
{
	struct watch watch = { .gpuarb = gpuarb, .callback = callback, .userdata = userdata };
	int r;

	if (!gpuarb || !callback)
		return -EINVAL;

	handle_begin(gpuarb);
	gpuarb->stop_watch = false;
	watch.deadline = deadline_after(usec);
	r = handle_end(gpuarb, watch_all(&watch));
	gpuarb_view_free(watch.view);
	return r;
}

GPUARB_EXPORT void gpuarb_watch_stop(struct gpuarb *gpuarb)
{
	if (gpuarb)
		gpuarb->stop_watch = true;
}
