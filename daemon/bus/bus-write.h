/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Dictionaries of the bus contract. */

#include "bus/bus-private.h"
#include "util/each.h"

struct advice;
struct gpu;

/* sd-bus keeps a failure: what is appended after it fails, too. So the end of a container tells whether all that
 * was appended before it is in the message. -ENOMEM: it is not. */

int bus_append_text(sd_bus_message *m, const char *text); /* text_clean() first */

void bus_open(sd_bus_message *m, const char *type); /* begins an array */
int bus_close(sd_bus_message *m);

/* An entry of a{sv} whose value has this type. '-' replaces '_' in the key. */
void bus_open_entry(sd_bus_message *m, const char *key, const char *type);
int bus_close_entry(sd_bus_message *m);

/* An entry with a value of this basic type; text_clean() first. */
void bus_append_value(sd_bus_message *m, const char *key, const char *type, ...);

/* The same for a value that is a bool, a double, a text, 64 or at most 32 bits: then the type follows from it. */
#define BUS_VALUE(m, key, value) bus_append_value(m, key, BUS_TYPE(value), value)
/* clang-format off */
#define BUS_TYPE(value)                                                                        \
	_Generic((value), bool: "b", double: "d", uint64_t: "t", char *: "s", const char *: "s", \
		 default: "u")
/* clang-format on */

/* An entry for each of these members of an object. */
#define BUS_MEMBERS(m, object, ...) ((void)(EACH(BUS_MEMBER, m, object, __VA_ARGS__)))
#define BUS_MEMBER(m, object, member) BUS_VALUE(m, #member, (object)->member)

/* A dictionary of them. */
#define BUS_ROW(m, object, ...) \
	((void)(bus_open(m, "{sv}"), BUS_MEMBERS(m, object, __VA_ARGS__), bus_close(m)))

/* An entry with numbers of this type ("u", "t"), as many bytes of them. */
void bus_append_numbers(sd_bus_message *m, const char *key, const char *type, const void *numbers,
			size_t size);

/* Whether the policy of the tenant asks launchers to cap the queues of the lease. */
bool bus_asks_for_cap(const struct arbiter *arbiter, const struct lease *lease);

/* aa{sv}: a dictionary for each partition of the lease; none for NULL. request: only the partitions that it asked for, if it
 * has fewer wants than the lease has partitions; NULL: all. */
int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct request *request,
			  const struct effects *effects);

/* aa{sv}: a dictionary for each GPU that refused. */
int bus_append_refusals(sd_bus_message *m, const struct refusal *refusals, size_t n,
			const struct advice *advice, const struct effects *effects);

/* aa{sv}: a dictionary for each process without a lease that uses the GPU. */
int bus_append_unmanaged(sd_bus_message *m, const struct gpu *gpu);

/* aa{sv}: a dictionary for each process that uses the GPU through DRM. */
int bus_append_clients(sd_bus_message *m, const struct gpu *gpu);

/* aa{sv}: a dictionary for each process of which queues on the GPU were observed. */
int bus_append_covers(sd_bus_message *m, const struct arbiter *arbiter, const struct gpu *gpu);

/* aa{sv}: a dictionary for each process that disturbs a partition, INTRUDERS of each at most. */
int bus_append_intruders(sd_bus_message *m, const struct arbiter *arbiter,
			 const struct lease *lease);

/* aa{sv}: a dictionary for each kind of drift of each partition. */
int bus_append_drift(sd_bus_message *m, const struct arbiter *arbiter, const struct lease *lease);

/* aau and, with arrays, aaau: CUs by XCC and shader engine (and shader array). */
int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry);
int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry);
