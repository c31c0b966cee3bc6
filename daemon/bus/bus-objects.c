/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the objects of all interfaces need: paths, lists of child objects, properties, removal. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-objects.h"
#include "bus/bus-write.h"
#include "util/number.h"

static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && path[n] == '/';
}

int bus_path_number(const char *path, const char *prefix, uint64_t *ret)
{
	if (!is_below(path, prefix))
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

static int find(sd_bus *, const char *path, const char *, void *userdata, void **ret_found,
		sd_bus_error *)
{
	const struct bus_exported *exported = userdata;

	*ret_found = exported->bus;
	return exported->kind->at(exported->bus->arbiter, path) != NULL;
}

/* sd-bus passes the path of the object that is introspected, which can be a parent. */
static int enumerate(sd_bus *, const char *, void *userdata, char ***ret_nodes, sd_bus_error *)
{
	const struct bus_exported *exported = userdata;
	const struct bus_kind *kind = exported->kind;

	return bus_list_nodes(exported->bus, kind->prefix, kind->count(exported->bus->arbiter),
			      kind->number, ret_nodes);
}

int bus_export(struct bus *bus, const struct bus_kind *kind, struct bus_exported *exported)
{
	int r;

	*exported = (struct bus_exported){ bus, kind };
	r = sd_bus_add_fallback_vtable(bus->sd, NULL, kind->prefix, kind->interface, kind->vtable,
				       find, exported);
	return r < 0 ? r
		     : sd_bus_add_node_enumerator(bus->sd, NULL, kind->prefix, enumerate, exported);
}

bool bus_lacks(const struct bus *bus, const struct bus_kind *kind, const char *path)
{
	return is_below(path, kind->prefix) && !kind->at(bus->arbiter, path);
}

int bus_append_object(sd_bus_message *m, const struct bus_kind *kind, uint64_t number,
		      const struct arbiter *arbiter, const void *object)
{
	static const char *const standard[] = { BUS_STANDARD_INTERFACES }; /* without properties */
	int r = 0;

	sd_bus_message_open_container(m, 'e', "oa{sa{sv}}");
	sd_bus_message_append_basic(m, 'o', bus_path(kind->prefix, number).text);
	bus_open(m, "{sa{sv}}");
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
		sd_bus_message_append(m, "{sa{sv}}", standard[i], 0);
	sd_bus_message_open_container(m, 'e', "sa{sv}");
	sd_bus_message_append_basic(m, 's', kind->interface);
	bus_open(m, "{sv}");
	for (size_t i = 0; i < kind->n_properties && r >= 0; i++) {
		bus_open_entry(m, kind->properties[i].name, kind->properties[i].type);
		r = kind->properties[i].append(m, arbiter, object);
		bus_close_entry(m);
	}
	for (unsigned containers = 4; containers > 0 && r >= 0; containers--)
		r = bus_close(m);
	return r;
}

/* sd_bus_emit_object_removed() would ask the object for its interfaces, and it is gone. These are
 * the interfaces that sd_bus_emit_object_added() sent. */
void bus_emit(struct bus *bus, const struct bus_kind *kind, uint64_t number, unsigned changes)
{
	struct bus_path path = bus_path(kind->prefix, number);
	char *names[BUS_PROPERTIES_MAX + 1] = { NULL };
	size_t n_names = 0;

	bus->unproved = true;
	if (changes & CHANGE_REMOVED)
		sd_bus_emit_interfaces_removed(bus->sd, path.text, BUS_STANDARD_INTERFACES,
					       kind->interface, NULL);
	if (changes & CHANGE_ADDED)
		sd_bus_emit_object_added(bus->sd, path.text);
	if (!(changes & CHANGE_PROPERTIES))
		return;
	for (size_t i = 0; i < kind->n_properties; i++)
		if (kind->properties[i].flags == CHANGES)
			names[n_names++] = kind->properties[i].name;
	sd_bus_emit_properties_changed_strv(bus->sd, path.text, kind->interface, names);
}
