/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What systemd says of our own unit. */

#include <stdarg.h>
#include <unistd.h>

#include "bus/bus-private.h"

#define MANAGER "org.freedesktop.systemd1"
#define PATIENCE_USEC 2000000U

static int call(struct bus *bus, const char *path, const char *interface, const char *member,
		sd_bus_message **ret, const char *types, ...)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	va_list arguments;
	int r;

	r = sd_bus_message_new_method_call(bus->sd, &m, MANAGER, path, interface, member);
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r < 0)
		return r;
	va_start(arguments, types);
	r = sd_bus_message_appendv(m, types, arguments);
	va_end(arguments);
	return r < 0 ? r : sd_bus_call(bus->sd, m, PATIENCE_USEC, NULL, ret);
}

int bus_store_max(struct bus *bus, unsigned *ret)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *unit = NULL, *property = NULL;
	const char *path;
	uint32_t max;
	int r;

	r = call(bus, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		 "GetUnitByPID", &unit, "u", (uint32_t)getpid());
	if (r >= 0)
		r = sd_bus_message_read(unit, "o", &path);
	if (r >= 0)
		r = call(bus, path, "org.freedesktop.DBus.Properties", "Get", &property, "ss",
			 "org.freedesktop.systemd1.Service", "FileDescriptorStoreMax");
	if (r >= 0)
		r = sd_bus_message_read(property, "v", "u", &max);
	if (r < 0)
		return r;
	*ret = max;
	return 0;
}
