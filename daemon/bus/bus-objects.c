/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the objects of all interfaces need: paths, lists of child objects, properties, removal. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-private.h"
#include "util/number.h"
#include "util/text.h"

bool bus_is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && path[n] == '/';
}

int bus_path_number(const char *path, const char *prefix, uint64_t *ret)
{
	if (!bus_is_below(path, prefix))
		return -ENOENT;
	path += strlen(prefix) + 1;
	if (path[0] == '0' && path[1] != '\0')
		return -ENOENT;
	return number_parse(path, 0, UINT64_MAX, ret) < 0 ? -ENOENT : 0;
}

struct bus_path bus_path(const char *prefix, uint64_t number)
{
	struct bus_path path;

	snprintf(path.text, sizeof(path.text), "%s/%" PRIu64, prefix, number);
	return path;
}

int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret)
{
	char **nodes = calloc(n + 1, sizeof(*nodes));
	size_t i, used = 0;

	if (!nodes)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		uint64_t node = number(bus, i);

		if (node == BUS_NO_NODE)
			continue;
		if (asprintf(&nodes[used], "%s/%" PRIu64, prefix, node) < 0)
			break;
		used++;
	}
	if (i == n) {
		*ret = nodes;
		return 0;
	}
	while (used > 0)
		free(nodes[--used]);
	free(nodes);
	return -ENOMEM;
}

int bus_append_text(sd_bus_message *m, const char *text)
{
	char clean[512];

	return sd_bus_message_append_basic(m, 's', text_clean(clean, sizeof(clean), text));
}

static int append_property(sd_bus_message *m, const struct bus_property *property,
			   const struct arbiter *arbiter, const void *object)
{
	int r = bus_open_entry(m, property->name, property->type);

	return r < 0 ? r : bus_close_entry(m, property->append(m, arbiter, object));
}

/* sd-bus has these interfaces on each object; their properties are none. */
static int append_standard_interfaces(sd_bus_message *m)
{
	static const char *const interfaces[] = { BUS_STANDARD_INTERFACES };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(interfaces) && r >= 0; i++)
		r = sd_bus_message_append(m, "{sa{sv}}", interfaces[i], 0);
	return r;
}

int bus_append_object(sd_bus_message *m, const char *path, const char *interface,
		      const struct bus_property *properties, size_t n,
		      const struct arbiter *arbiter, const void *object)
{
	int r = sd_bus_message_open_container(m, 'e', "oa{sa{sv}}");

	if (r >= 0)
		r = sd_bus_message_append_basic(m, 'o', path);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{sa{sv}}");
	if (r >= 0)
		r = append_standard_interfaces(m);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'e', "sa{sv}");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', interface);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{sv}");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = append_property(m, &properties[i], arbiter, object);
	for (unsigned containers = 4; containers > 0 && r >= 0; containers--)
		r = sd_bus_message_close_container(m);
	return r;
}

/* sd_bus_emit_object_removed() would ask the object for its interfaces, and it is gone. These are
 * the interfaces that sd_bus_emit_object_added() sent. */
void bus_emit_removed(struct bus *bus, const char *path, const char *interface)
{
	sd_bus_emit_interfaces_removed(bus->sd, path, BUS_STANDARD_INTERFACES, interface, NULL);
}
