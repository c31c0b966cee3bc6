/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The objects of an interface, and tables of its properties. */

#include "bus/bus-private.h"
#include "dbus/names.h"

/* The number in PREFIX/NUMBER; -ENOENT: the path has another form. */
int bus_path_number(const char *path, const char *prefix, uint64_t *ret);

struct bus_path {
	char text[sizeof(GPUARB_PATH_LEASE) + 24];
};

/* PREFIX/NUMBER */
struct bus_path bus_path(const char *prefix, uint64_t number);

/* The child paths PREFIX/number(bus, i) for each i < n, as sd_bus_node_enumerator_t returns them.
 * BUS_NO_NODE: i has no object. */
#define BUS_NO_NODE UINT64_MAX
int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret);

#define BUS_PROPERTIES_MAX 64U /* of an interface */

struct bus_property {
	char *name;
	const char *type;
	uint64_t flags;
	int (*append)(sd_bus_message *m, const struct arbiter *arbiter, const void *object);
};

/* Objects of one interface. */
struct bus_kind {
	const char *prefix, *interface;
	const struct bus_property *properties;
	size_t n_properties;
	const sd_bus_vtable *vtable;
	size_t (*count)(const struct arbiter *arbiter);
	uint64_t (*number)(const struct bus *bus, size_t i); /* as bus_list_nodes() takes it */
	const void *(*at)(const struct arbiter *arbiter,
			  const char *path); /* NULL: there is none */
};

int bus_export(struct bus *bus, const struct bus_kind *kind, struct bus_exported *exported);

/* Whether the path is below the prefix, and there is no such object. */
bool bus_lacks(const struct bus *bus, const struct bus_kind *kind, const char *path);

/* {oa{sa{sv}}}: the entry of the object in an answer to GetManagedObjects, with all properties of its interface, and
 * the interfaces of sd-bus. */
int bus_append_object(sd_bus_message *m, const struct bus_kind *kind, uint64_t number,
		      const struct arbiter *arbiter, const void *object);

#define BUS_STANDARD_INTERFACES                                             \
	"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", \
		"org.freedesktop.DBus.Properties"

/* Sends the signals of these changes of an object as it is now: bits of enum bus_change. */
void bus_emit(struct bus *bus, const struct bus_kind *kind, uint64_t number, unsigned changes);

/* Defines the getter of a property: its body appends to `reply`. */
#define BUS_GETTER(name)                                                                  \
	static int name(sd_bus *, const char *path __attribute__((unused)), const char *, \
			const char *, sd_bus_message *reply, void *userdata, sd_bus_error *)

/* For the table PROPERTIES of an interface: ROW(name, type, flags, append). The getter returns what
 * append returns: VALUE(), or a function that appends to `reply`. */
#define BUS_PROPERTY_ROW(name, type, flags, append) \
	SD_BUS_PROPERTY(#name, type, get_##name, 0, flags),
#define BUS_PROPERTY(name, type, flags, append) { #name, type, flags, append_##name },
#define VALUE(type, value) sd_bus_message_append(reply, type, value)
#define CONST SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

/* Defines append_NAME() and get_NAME() of a property of a `struct KIND`, which KIND_at() finds by its
 * path; `append` may use `reply`, `arbiter` and the object, by the name KIND. */
#define BUS_APPENDER(kind, name, append)                                                 \
	static int append_##name(sd_bus_message *reply,                                  \
				 const struct arbiter *arbiter __attribute__((unused)),  \
				 const void *object)                                     \
	{                                                                                \
		const struct kind *kind = object;                                        \
                                                                                         \
		return append;                                                           \
	}                                                                                \
	BUS_GETTER(get_##name)                                                           \
	{                                                                                \
		const struct arbiter *arbiter = ((const struct bus *)userdata)->arbiter; \
                                                                                         \
		return append_##name(reply, arbiter, kind##_at(arbiter, path));          \
	}

extern const struct bus_kind bus_gpus, bus_leases; /* bus-gpu.c, bus-lease.c */
