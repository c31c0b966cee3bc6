/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus/bus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-polkit.h"
#include "bus/bus-private.h"
#include "bus/bus-sender.h"
#include "util/text.h"
#include "dbus/names.h"

int bus_path_number(const char *path, const char *prefix, uint64_t *ret)
{
	size_t length = strlen(prefix);
	uint64_t number = 0;

	if (strncmp(path, prefix, length) != 0 || path[length] != '/')
		return -ENOENT;
	path += length + 1;
	if (*path == '\0' || (path[0] == '0' && path[1] != '\0'))
		return -ENOENT;
	for (; *path; path++) {
		if (*path < '0' || *path > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (unsigned)(*path - '0'), &number))
			return -ENOENT;
	}
	*ret = number;
	return 0;
}

int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret)
{
	char **nodes = calloc(n + 1, sizeof(*nodes));
	size_t i = 0;

	if (!nodes)
		return -ENOMEM;
	while (i < n &&
	       asprintf(&nodes[i], "%s/%llu", prefix, (unsigned long long)number(bus, i)) >= 0)
		i++;
	if (i == n) {
		*ret = nodes;
		return 0;
	}
	while (i > 0)
		free(nodes[--i]);
	free(nodes);
	return -ENOMEM;
}

int bus_append_text(sd_bus_message *m, const char *text)
{
	char clean[512];

	return sd_bus_message_append_basic(m, 's', text_clean(clean, sizeof(clean), text));
}

/* What is gone has no object to ask for its interfaces: these are the ones that
 * sd_bus_emit_object_added() told. */
void bus_emit_removed(struct bus *bus, const char *path, const char *interface)
{
	sd_bus_emit_interfaces_removed(bus->sd, path, "org.freedesktop.DBus.Peer",
				       "org.freedesktop.DBus.Introspectable",
				       "org.freedesktop.DBus.Properties", interface, NULL);
}

/* Before anything is looked up for a call, properties included. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *bus = userdata;
	const char *path = sd_bus_message_get_path(m);

	(void)error;
	if (sd_bus_message_is_method_call(m, NULL, NULL) > 0 && path &&
	    strncmp(path, GPUARB_PATH, strlen(GPUARB_PATH)) == 0)
		bus->host->refresh(bus->userdata);
	return 0;
}

/* There is no way back to the bus from here: the host makes another. */
static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *bus = userdata;

	(void)m;
	(void)error;
	bus->host->disconnected(bus->userdata);
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
		r = bus_export_gpus(bus);
	if (r >= 0)
		r = bus_export_leases(bus);
	return r;
}

int bus_new(sd_event *event, const char *address, const struct arbiter *arbiter,
	    const struct bus_host *host, void *userdata, struct bus **ret)
{
	_cleanup_(bus_freep) struct bus *bus = calloc(1, sizeof(*bus));
	int r;

	if (!bus)
		return -ENOMEM;
	bus->event = sd_event_ref(event);
	bus->arbiter = arbiter;
	bus->host = host;
	bus->userdata = userdata;

	r = connect_bus(address, &bus->sd);
	if (r >= 0)
		r = sd_bus_match_signal_async(
			bus->sd, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
			"org.freedesktop.DBus.Local", "Disconnected", on_disconnected, NULL, bus);
	if (r >= 0)
		r = bus_watch_senders(bus);
	if (r >= 0)
		r = export(bus);
	if (r >= 0)
		r = sd_bus_attach_event(bus->sd, event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0) /* bus_free() has answers to send when the loop is over */
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

	bus_drop_deferred(bus);
	bus_drop_questions(bus);
	bus_drop_senders(bus);
	sd_bus_flush_close_unref(bus->sd);
	sd_event_unref(bus->event);
	free(bus);
	return NULL;
}

int bus_own_name(struct bus *bus)
{
	int r = sd_bus_request_name(bus->sd, GPUARB_BUS_NAME, 0);

	return r < 0 ? r : 0;
}

static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *bus = userdata;
	uint32_t answer = 0;
	int r;

	(void)error;
	r = sd_bus_message_is_method_error(m, NULL) ? -sd_bus_message_get_errno(m)
						    : sd_bus_message_read(m, "u", &answer);
	/* 3: it exists; 1 and 4: it is ours (RequestName, D-Bus specification). */
	bus->host->named(bus->userdata, r < 0 ? r : answer == 3 ? -EEXIST : 0);
	return 1;
}

int bus_own_name_async(struct bus *bus)
{
	int r = sd_bus_request_name_async(bus->sd, NULL, GPUARB_BUS_NAME, 0, on_name, bus);

	return r < 0 ? r : 0;
}
