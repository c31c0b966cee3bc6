/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Snapshots of all GPUs and leases, from GetManagedObjects, and watching for changes. */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define OBJECTS_MAX 65536U

struct gpuarb_view {
	struct arena arena;
	const char *version;
	const char *queue_budgets; /* NULL: the daemon does not say */
	const char *const *tenants;
	size_t n_tenants;
	const char *const *restart_keys;
	size_t n_restart_keys;
	struct gpuarb_gpu *gpus;
	uint64_t *gpu_numbers;        /* of their object paths, in the same order */
	struct gpu_facts *gpus_facts; /* in the same order */
	size_t n_gpus;
	struct gpuarb_lease_info *leases;
	struct lease_facts *leases_facts; /* by lease, in the same order */
	size_t n_leases;
};

static const struct dictionary root_dictionary =
	DICTIONARY(gpuarb_view, MEMBERS(gpuarb_view, version, queue_budgets),
		   LISTS(gpuarb_view, tenants, restart_keys));

/* An object of the answer. */
struct object {
	uint64_t number;            /* at the end of its object path */
	DBusMessageIter properties; /* of one interface */
};

/* Sets *ret to the properties of the interface. False: the object (a{sa{sv}}) does not have it. */
static bool find_interface(DBusMessageIter *object, const char *interface, DBusMessageIter *ret)
{
	DBusMessageIter interfaces;

	dbus_message_iter_recurse(object, &interfaces);
	for (; dbus_message_iter_get_arg_type(&interfaces) != DBUS_TYPE_INVALID;
	     dbus_message_iter_next(&interfaces)) {
		const char *name;

		dbus_message_iter_recurse(&interfaces, ret);
		dbus_message_iter_get_basic(ret, &name);
		dbus_message_iter_next(ret);
		if (strcmp(name, interface) == 0)
			return true;
	}
	return false;
}

struct objects {
	struct object *list;
	size_t n;
};

static int compare_objects(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Lists the objects PREFIX/NUMBER that have the interface, sorted by number. */
static int find_objects(DBusMessageIter *answer, const char *prefix, const char *interface,
			struct arena *arena, struct objects *ret)
{
	size_t room = iter_count(answer), n = 0;
	struct object *list = room <= OBJECTS_MAX ? arena_alloc(arena, room, sizeof(*list)) : NULL;
	DBusMessageIter entries, entry;

	if (!list)
		return -ENOMEM;

	dbus_message_iter_recurse(answer, &entries);
	for (; dbus_message_iter_get_arg_type(&entries) != DBUS_TYPE_INVALID;
	     dbus_message_iter_next(&entries)) {
		const char *path;

		dbus_message_iter_recurse(&entries, &entry);
		dbus_message_iter_get_basic(&entry, &path);
		dbus_message_iter_next(&entry);
		if (path_number(path, prefix, &list[n].number) >= 0 &&
		    find_interface(&entry, interface, &list[n].properties))
			n++;
	}
	qsort(list, n, sizeof(*list), compare_objects);
	*ret = (struct objects){ list, n };
	return 0;
}

static int read_gpus(const struct objects *objects, struct gpuarb_view *view, const char **ret_key)
{
	int r = 0;

	view->gpus = arena_alloc(&view->arena, objects->n, sizeof(*view->gpus));
	view->gpu_numbers = arena_alloc(&view->arena, objects->n, sizeof(*view->gpu_numbers));
	view->gpus_facts = arena_alloc(&view->arena, objects->n, sizeof(*view->gpus_facts));
	if (!view->gpus || !view->gpu_numbers || !view->gpus_facts)
		return -ENOMEM;
	view->n_gpus = objects->n;
	for (size_t i = 0; i < objects->n && r >= 0; i++) {
		view->gpu_numbers[i] = objects->list[i].number;
		r = read_gpu(&objects->list[i].properties, &view->arena, &view->gpus[i],
			     &view->gpus_facts[i], ret_key);
	}
	return r;
}

static int read_leases(const struct objects *objects, struct gpuarb_view *view,
		       const char **ret_key)
{
	int r = 0;

	view->leases = arena_alloc(&view->arena, objects->n, sizeof(*view->leases));
	view->leases_facts = arena_alloc(&view->arena, objects->n, sizeof(*view->leases_facts));
	if (!view->leases || !view->leases_facts)
		return -ENOMEM;
	view->n_leases = objects->n;
	for (size_t i = 0; i < objects->n && r >= 0; i++) {
		r = read_lease(&objects->list[i].properties, &view->arena, &view->leases[i],
			       &view->leases_facts[i], ret_key);
		view->leases[i].id = objects->list[i].number;
	}
	return r;
}

static int read_root(struct gpuarb *gpuarb, struct gpuarb_view *view)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	const char *key = NULL;
	DBusMessageIter iter;
	int r;

	r = call_properties(gpuarb, GPUARB_PATH, GPUARB_INTERFACE, &reply);
	if (r < 0)
		return r;

	dbus_message_iter_init(reply, &iter);
	r = read_dictionary(&iter, &root_dictionary, &view->arena, view, &key);
	return r == -EPROTO ? fail_answer(gpuarb, "GetAll", key) : r;
}

static int read_tree(struct gpuarb *gpuarb, struct gpuarb_view *view)
{
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	_cleanup_(arena_clear) struct arena scratch = { NULL };
	struct objects gpus, leases;
	const char *key = NULL;
	DBusMessageIter iter;
	int r;

	r = call_new(GPUARB_PATH, OBJECT_MANAGER, "GetManagedObjects", &call, DBUS_TYPE_INVALID);
	if (r >= 0)
		r = call_send(gpuarb, call, "a{oa{sa{sv}}}", &reply);
	if (r < 0)
		return r;

	dbus_message_iter_init(reply, &iter);
	r = find_objects(&iter, GPUARB_PATH_GPU, GPUARB_INTERFACE_GPU, &scratch, &gpus);
	if (r >= 0)
		r = find_objects(&iter, GPUARB_PATH_LEASE, GPUARB_INTERFACE_LEASE, &scratch,
				 &leases);
	if (r >= 0)
		r = read_gpus(&gpus, view, &key);
	if (r >= 0)
		r = read_leases(&leases, view, &key);
	return r == -EPROTO ? fail_answer(gpuarb, "GetManagedObjects", key) : r;
}

static int view_new(struct gpuarb *gpuarb, struct gpuarb_view **ret)
{
	_cleanup_(gpuarb_view_freep) struct gpuarb_view *view = calloc(1, sizeof(*view));
	int r;

	if (!view)
		return -ENOMEM;

	r = read_root(gpuarb, view);
	if (r >= 0)
		r = read_tree(gpuarb, view);
	if (r >= 0)
		*ret = TAKE_PTR(view);
	return r;
}

/* The name of the GPU whose object path ends with this number, or NULL. */
static const char *view_gpu_name(const struct gpuarb_view *view, uint64_t number)
{
	for (size_t i = 0; i < view->n_gpus; i++)
		if (view->gpu_numbers[i] == number)
			return view->gpus[i].name;
	return NULL;
}

GPUARB_EXPORT int gpuarb_look(struct gpuarb *gpuarb, struct gpuarb_view **ret)
{
	HANDLE_BEGIN(gpuarb && ret, gpuarb);
	return handle_end(gpuarb, view_new(gpuarb, ret));
}

GPUARB_EXPORT void gpuarb_view_free(struct gpuarb_view *view)
{
	arena_object_free(view);
}

GPUARB_EXPORT const char *gpuarb_view_version(const struct gpuarb_view *view)
{
	return view ? view->version : "";
}

GPUARB_EXPORT const char *gpuarb_view_queue_budgets(const struct gpuarb_view *view)
{
	return view && view->queue_budgets ? view->queue_budgets : "";
}

/* Defines the function that returns this list. */
#define VIEW_MEMBER(type, function, member)                                             \
	GPUARB_EXPORT size_t function(const struct gpuarb_view *view, const type **ret) \
	{                                                                               \
		if (ret)                                                                \
			*ret = view ? view->member : NULL;                              \
		return view ? view->n_##member : 0;                                     \
	}

VIEW_MEMBER(char *const, gpuarb_view_tenants, tenants)
VIEW_MEMBER(char *const, gpuarb_view_restart_keys, restart_keys)
VIEW_MEMBER(struct gpuarb_gpu, gpuarb_view_gpus, gpus)
VIEW_MEMBER(struct gpuarb_lease_info, gpuarb_view_leases, leases)

/* Defines the function that returns a fact of lease or GPU i. */
#define LEASE_FACT(type, name, none) FACT(type, name, none, leases)
#define GPU_FACT(type, name, none) FACT(type, name, none, gpus)
#define FACT(type, name, none, rows)                                                     \
	GPUARB_EXPORT type gpuarb_view_##name(const struct gpuarb_view *view, size_t i)  \
	{                                                                                \
		return view && i < view->n_##rows ? view->rows##_facts[i].name : (none); \
	}

LEASE_FACTS(LEASE_FACT)
GPU_FACTS(GPU_FACT)

/* Defines the function that returns one of the rows of GPU or lease i, or NULL. */
#define ROW_MEMBER(type, function, rows, list)                                                 \
	GPUARB_EXPORT const type *function(const struct gpuarb_view *view, size_t i, size_t n) \
	{                                                                                      \
		bool known = view && i < view->n_##rows && n < view->rows##_facts[i].n_##list; \
                                                                                               \
		return known ? &view->rows##_facts[i].list[n] : NULL;                          \
	}

ROW_MEMBER(struct gpuarb_client, gpuarb_view_client, gpus, clients)
ROW_MEMBER(struct gpuarb_cover, gpuarb_view_cover, gpus, covers)
ROW_MEMBER(struct gpuarb_drift, gpuarb_view_drift, leases, drift)
ROW_MEMBER(struct gpuarb_intruder, gpuarb_view_intruder, leases, intruders)

GPUARB_EXPORT const struct gpuarb_calibration *
gpuarb_view_calibration(const struct gpuarb_view *view, size_t i)
{
	if (!view || i >= view->n_gpus || !view->gpus_facts[i].calibration.date ||
	    !view->gpus_facts[i].calibration.problem)
		return NULL;
	return &view->gpus_facts[i].calibration;
}

GPUARB_EXPORT const struct gpuarb_refusal *
gpuarb_view_waits_for(const struct gpuarb_view *view, size_t i,
		      const struct gpuarb_refusal_facts **ret_facts)
{
	const struct refusals *waits_for;

	if (!view || i >= view->n_leases || view->leases_facts[i].waits_for.n == 0)
		return NULL;
	waits_for = &view->leases_facts[i].waits_for;
	if (ret_facts)
		*ret_facts = waits_for->facts;
	return waits_for->rows;
}

#define PAUSE_MEMBER(type, function, member)                                              \
	GPUARB_EXPORT const type *function(const struct gpuarb_view *view, size_t i)      \
	{                                                                                 \
		return view && i < view->n_leases ? &view->leases_facts[i].member : NULL; \
	}

PAUSE_MEMBER(struct gpuarb_pause, gpuarb_view_pause, pause)
PAUSE_MEMBER(struct gpuarb_pause, gpuarb_view_evictions, evictions)

GPUARB_EXPORT size_t gpuarb_view_driver_events(const struct gpuarb_view *view, size_t i,
					       const struct gpuarb_driver_events **ret)
{
	bool known = view && i < view->n_gpus;

	if (ret)
		*ret = known ? view->gpus_facts[i].events : NULL;
	return known ? view->gpus_facts[i].n_events : 0;
}

GPUARB_EXPORT uint32_t gpuarb_view_cus_min(const struct gpuarb_view *view, size_t i,
					   size_t partition)
{
	return view && i < view->n_leases && partition < view->leases_facts[i].n_cus_min
		       ? view->leases_facts[i].cus_min[partition]
		       : 0;
}

/* ---- watching ---------------------------------------------------------------------------- */

/*
 * gpuarb_watch() has a connection of its own until it returns. So signals do not mix with the
 * answers of calls that the callback makes with the handle.
 */
struct watch {
	struct gpuarb *gpuarb;
	struct gpuarb_view *view; /* for the names of GPUs; NULL: take a new snapshot */
	gpuarb_changed_t callback;
	void *userdata;
	uint64_t deadline;
	int stop_fd;      /* the watch ends when it is readable; -1: none */
	bool daemon_gone; /* and reported */
};

#define OBJECTS_RULE "type='signal',sender='" GPUARB_BUS_NAME "',path_namespace='" GPUARB_PATH "'"

static int subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_present)
{
	int r = connection_call_bus(gpuarb, connection, "AddMatch", OBJECTS_RULE, NULL, NULL);

	return r < 0 ? r : daemon_subscribe(gpuarb, connection, ret_present);
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
static int report_object(struct watch *watch, const char *lease_event, const char *gpu_event,
			 const char *path)
{
	char decimal[24];
	uint64_t number;

	if (path_number(path, GPUARB_PATH_GPU, &number) >= 0)
		return report_gpu(watch, gpu_event, number);
	if (path_number(path, GPUARB_PATH_LEASE, &number) >= 0) {
		snprintf(decimal, sizeof(decimal), "%" PRIu64, number);
		watch->callback(lease_event, decimal, watch->userdata);
	}
	return 0;
}

static void report_daemon(struct watch *watch, bool present)
{
	gpuarb_view_free(TAKE_PTR(watch->view));
	watch->daemon_gone = !present;
	watch->callback(present ? "daemon-back" : "daemon-gone", "", watch->userdata);
}

static const struct {
	const char *interface, *member, *lease_event, *gpu_event;
} signals[] = {
	{ DBUS_INTERFACE_PROPERTIES, "PropertiesChanged", "lease-changed", "gpu-changed" },
	{ OBJECT_MANAGER, "InterfacesAdded", "lease-added", "gpu-added" },
	{ OBJECT_MANAGER, "InterfacesRemoved", "lease-removed", "gpu-removed" },
};

static int report(struct watch *watch, DBusMessage *m)
{
	const char *path = dbus_message_get_path(m);

	/* The signals of the object manager have the path of the object as their first argument. */
	dbus_message_get_args(m, NULL, DBUS_TYPE_OBJECT_PATH, &path, DBUS_TYPE_INVALID);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (dbus_message_is_signal(m, signals[i].interface, signals[i].member))
			return report_object(watch, signals[i].lease_event, signals[i].gpu_event,
					     path);
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

static int watch_begin(struct watch *watch, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	_cleanup_(outage_clear) struct outage outage = { .error = 0 };
	struct gpuarb *gpuarb = watch->gpuarb;
	bool present;
	int r;

	do
		r = outage_wait(gpuarb, &outage, connection_new(gpuarb, &connection));
	while (r > 0);
	if (r >= 0) {
		connection->cancel = &watch->stop_fd;
		r = subscribe(watch->gpuarb, connection, &present);
	}
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
	watch->gpuarb->cancel = &watch->stop_fd; /* for this connection alone */
	r = reconnect_bus(watch->gpuarb, watch->deadline, connection);
	watch->gpuarb->cancel = NULL;
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
	return watch->gpuarb->stop_watch || r == -ECANCELED ||
			       (r == -ETIMEDOUT && now_usec() >= watch->deadline)
		       ? 0
		       : r;
}

GPUARB_EXPORT int gpuarb_watch_until(struct gpuarb *gpuarb, int stop_fd, uint64_t usec,
				     gpuarb_changed_t callback, void *userdata)
{
	struct watch watch = {
		.gpuarb = gpuarb,
		.callback = callback,
		.userdata = userdata,
		.stop_fd = stop_fd,
	};
	int r;

	HANDLE_BEGIN(gpuarb && callback, gpuarb);
	gpuarb->stop_watch = false;
	watch.deadline = deadline_after(usec);
	r = handle_end(gpuarb, watch_all(&watch));
	gpuarb_view_free(watch.view);
	return r;
}

GPUARB_EXPORT int gpuarb_watch(struct gpuarb *gpuarb, uint64_t usec, gpuarb_changed_t callback,
			       void *userdata)
{
	return gpuarb_watch_until(gpuarb, -1, usec, callback, userdata);
}

GPUARB_EXPORT void gpuarb_watch_stop(struct gpuarb *gpuarb)
{
	if (gpuarb)
		gpuarb->stop_watch = true;
}
