/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The connection to the bus: the top of this folder. */

#include "bus/bus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-calls.h"
#include "bus/bus-clients.h"
#include "bus/bus-managed.h"
#include "bus/bus-methods.h"
#include "bus/bus-objects.h"
#include "bus/bus-polkit.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-unread.h"
#include "bus/bus-users.h"
#include "dbus/names.h"

/* Whatever the call is: sd-bus drops the error of a finder where the object has no such method. */
static int refuse_missing(const struct bus *bus, sd_bus_message *m)
{
	const char *path = sd_bus_message_get_path(m);
	int r = 0;

	if (bus_lacks(bus, &bus_leases, path))
		r = sd_bus_reply_method_errorf(m, GPUARB_ERROR_NO_SUCH_LEASE,
					       "%s: no such lease: it does not exist, or has ended",
					       path);
	else if (bus_lacks(bus, &bus_gpus, path))
		r = sd_bus_reply_method_errorf(m, GPUARB_ERROR_NO_SUCH_GPU,
					       "%s: no such GPU: it does not exist, or was removed",
					       path);
	else
		return 0;
	return r < 0 ? r : 1;
}

/* A filter, so that it runs before sd-bus finds the object: the scan may remove it. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	int r;

	if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0 || !sd_bus_message_get_sender(m))
		return 0;
	r = bus_calls_arrived(userdata, m);
	if (r == 0)
		r = bus_managed_arrived(userdata, m);
	return r == 0 ? refuse_missing(userdata, m) : r;
}

static int on_name_lost(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct bus *bus = userdata;
	const char *name;

	if (sd_bus_message_read(m, "s", &name) < 0)
		return 0;
	bus_forget_deferred(bus, name);
	bus_forget_client_calls(bus, name);
	bus_forget_questions(bus, name);
	bus_forget_sender(bus, name);
	return 0;
}

/* From now on forgets what belongs to a connection when it closes. */
static int watch_senders(struct bus *bus)
{
	int r;

	/* sd-bus closes a connection when it has not read the answer in time, which is 25 s by default: a
	 * gpuarbd that starts on a busy machine comes to its loop later. */
	r = sd_bus_set_method_call_timeout(bus->sd, UINT64_MAX);
	if (r >= 0)
		r = sd_bus_add_match_async(bus->sd, NULL,
					   "type='signal',sender='org.freedesktop.DBus',"
					   "path='/org/freedesktop/DBus',"
					   "interface='org.freedesktop.DBus',"
					   "member='NameOwnerChanged',arg2=''",
					   on_name_lost, NULL, bus);
	if (r >= 0)
		r = sd_bus_set_method_call_timeout(bus->sd, 0);
	return r;
}

/* sd-bus does not connect again: the daemon makes another bus. */
static int on_disconnected(sd_bus_message *, void *userdata, sd_bus_error *)
{
	struct bus *bus = userdata;

	bus->events->disconnected(bus->userdata);
	return 0;
}

static int connect_bus(const char *address, sd_bus **ret)
{
	_cleanup_(sd_bus_unrefp) sd_bus *sd = NULL;
	int r;

	if (!address)
		return sd_bus_open_system(ret);

	r = sd_bus_new(&sd);
	if (r >= 0)
		r = sd_bus_set_address(sd, address);
	if (r >= 0)
		r = sd_bus_set_bus_client(sd, true);
	if (r >= 0)
		r = sd_bus_start(sd);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(sd);
	return 0;
}

static int export(struct bus *bus)
{
	int r;

	r = sd_bus_add_filter(bus->sd, NULL, on_message, bus);
	if (r >= 0)
		r = sd_bus_add_object_manager(bus->sd, NULL, GPUARB_PATH);
	if (r >= 0)
		r = bus_export_arbiter(bus);
	if (r >= 0)
		r = bus_export(bus, &bus_gpus, &bus->gpus);
	if (r >= 0)
		r = bus_export(bus, &bus_leases, &bus->leases);
	return r;
}

int bus_new(sd_event *event, const char *address, const struct arbiter *arbiter,
	    const struct bus_host *host, const struct bus_events *events, void *userdata,
	    struct bus **ret)
{
	_cleanup_(bus_freep) struct bus *bus = calloc(1, sizeof(*bus));
	int r;

	if (!bus)
		return -ENOMEM;
	TAILQ_INIT(&bus->users);
	TAILQ_INIT(&bus->client_calls);
	TAILQ_INIT(&bus->held_signals);
	bus->event = sd_event_ref(event);
	bus->arbiter = arbiter;
	bus->host = host;
	bus->events = events;
	bus->userdata = userdata;

	r = connect_bus(address, &bus->sd);
	if (r >= 0)
		r = bus_calls_start(bus);
	if (r >= 0)
		r = bus_unread_start(bus);
	if (r >= 0)
		r = bus_managed_start(bus);
	if (r >= 0)
		r = sd_bus_match_signal_async(
			bus->sd, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
			"org.freedesktop.DBus.Local", "Disconnected", on_disconnected, NULL, bus);
	if (r >= 0)
		r = watch_senders(bus);
	if (r >= 0)
		r = export(bus);
	if (r >= 0)
		r = sd_bus_attach_event(bus->sd, event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0) /* bus_free() sends answers after the loop has ended */
		r = sd_bus_set_close_on_exit(bus->sd, false);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bus);
	return 0;
}

struct bus *bus_free(struct bus *bus)
{
	if (!bus)
		return NULL;

	bus_refuse_deferred(bus, RESULT_SHUTDOWN, BUS_STOPPING);
	bus_drop_client_calls(bus);
	bus_drop_questions(bus);
	bus_managed_stop(bus);
	bus_calls_stop(bus);
	bus_drop_senders(bus);
	bus_drop_users(bus);
	bus_unread_stop(bus);
	if (bus_calls_are_stalled(bus))
		sd_bus_close_unref(bus->sd);
	else
		sd_bus_flush_close_unref(bus->sd);
	bus_calls_free(bus);
	sd_event_unref(bus->event);
	free(bus);
	return NULL;
}

int bus_own_name(struct bus *bus)
{
	int r = sd_bus_request_name(bus->sd, GPUARB_BUS_NAME, 0);

	return r < 0 ? r : 0;
}

static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct bus *bus = userdata;
	uint32_t answer = 0;
	int r;

	r = sd_bus_message_is_method_error(m, NULL) ? -sd_bus_message_get_errno(m)
						    : sd_bus_message_read(m, "u", &answer);
	/* RequestName, D-Bus specification: 3: another connection has it; 1, 4: this one. */
	bus->events->named(bus->userdata, r < 0 ? r : answer == 3 ? -EEXIST : 0);
	return 1;
}

int bus_own_name_async(struct bus *bus)
{
	int r = sd_bus_request_name_async(bus->sd, NULL, GPUARB_BUS_NAME, 0, on_name, bus);

	return r < 0 ? r : 0;
}

/* ---- systemd ---------------------------------------------------------------------- */

#define TIMEOUT_USEC 2000000U

int bus_store_max(struct bus *bus, unsigned *ret)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *property = NULL;
	uint32_t max;
	int r;

	r = sd_bus_message_new_method_call(bus->sd, &m, "org.freedesktop.systemd1",
					   "/org/freedesktop/systemd1/unit/self",
					   "org.freedesktop.DBus.Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", "org.freedesktop.systemd1.Service",
					  "FileDescriptorStoreMax");
	if (r >= 0)
		r = sd_bus_call(bus->sd, m, TIMEOUT_USEC, NULL, &property);
	if (r >= 0)
		r = sd_bus_message_read(property, "v", "u", &max);
	if (r < 0)
		return r;
	*ret = max;
	return 0;
}
