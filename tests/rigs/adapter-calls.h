/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Clients of an adapter under test: connections in its loop, calls, answers. */

#include <stdarg.h>

#include "adapter.h"

/* A connection in the adapter's loop. */
static inline sd_bus *adapter_connect(struct adapter *adapter, uid_t uid)
{
	sd_bus *bus = rig_connect(&adapter->rig, uid);

	CHECK(sd_bus_attach_event(bus, adapter->event, 0) >= 0);
	return bus;
}

static inline void adapter_run(struct adapter *adapter, const bool *until)
{
	while (!*until)
		CHECK(sd_event_run(adapter->event, 60 * 1000 * 1000) > 0);
}

/* An answer that is awaited. */
struct answer {
	bool came;
	unsigned number; /* counts answers */
	sd_bus_message *m;
};

static unsigned answer_count;

static inline int answer_take(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct answer *answer = userdata;

	(void)error;
	answer->came = true;
	answer->number = answer_count++;
	answer->m = sd_bus_message_ref(m);
	return 0;
}

static inline sd_bus_message *call_new(sd_bus *bus, const char *path, const char *interface,
				       const char *member)
{
	sd_bus_message *m;

	CHECK(sd_bus_message_new_method_call(bus, &m, GPUARB_BUS_NAME, path, interface, member) >=
	      0);
	return m;
}

/* Sends a call, which it frees. */
static inline void call_send(sd_bus_message *call, struct answer *answer)
{
	*answer = (struct answer){ 0 };
	CHECK(sd_bus_call_async(NULL, NULL, call, answer_take, answer, 0) >= 0);
	sd_bus_message_unref(call);
}

/* Sends a call and runs the loop until it is answered. The answer is the caller's. */
static inline sd_bus_message *call_run(struct adapter *adapter, sd_bus_message *call)
{
	struct answer answer;

	call_send(call, &answer);
	adapter_run(adapter, &answer.came);
	return answer.m;
}

/* Whether the answer is this error, and the sentence says so; frees it. */
static inline bool is_error(sd_bus_message *answer, const char *name, const char *says)
{
	const sd_bus_error *error = sd_bus_message_get_error(answer);
	bool ok = error && strcmp(error->name, name) == 0 && strstr(error->message, says);

	if (!ok)
		fprintf(stderr, "%s: %s\n", error ? error->name : "no error",
			error ? error->message : "");
	sd_bus_message_unref(answer);
	return ok;
}

/* Whether it is no error; frees it. */
static inline bool is_fine(sd_bus_message *answer)
{
	const sd_bus_error *error = sd_bus_message_get_error(answer);

	if (error)
		fprintf(stderr, "%s: %s\n", error->name, error->message);
	sd_bus_message_unref(answer);
	return !error;
}

/* ---- what is called ---- */

#define STRANGER 1 /* "daemon", on every Debian and Fedora */

#define NEEDS_BUS()                                                     \
	do {                                                            \
		if (rig_bus_missing())                                  \
			SKIP(rig_bus_missing());                        \
		if (geteuid() != 0)                                     \
			SKIP("it acts as two users, which takes root"); \
	} while (0)

static inline sd_bus_message *call_arbiter(sd_bus *bus, const char *member)
{
	return call_new(bus, GPUARB_PATH, GPUARB_INTERFACE, member);
}

static inline sd_bus_message *call_lease(sd_bus *bus, const char *path, const char *member)
{
	return call_new(bus, path, GPUARB_INTERFACE_LEASE, member);
}

/* Appends to a call. */
static inline sd_bus_message *with(sd_bus_message *m, const char *types, ...)
{
	va_list args;

	va_start(args, types);
	CHECK(sd_bus_message_appendv(m, types, args) >= 0);
	va_end(args);
	return m;
}

static inline sd_bus_message *drain(sd_bus *bus, const char *gpu)
{
	return with(call_arbiter(bus, "Drain"), "s", gpu);
}

static inline sd_bus_message *ask(sd_bus *bus, const char *member, unsigned cus)
{
	return with(call_arbiter(bus, member), "aa{sv}a{sv}", 1, 2, "gpu", "s", "0", "cus", "u",
		    cus, 1, "name", "s", "n");
}

static inline sd_bus_message *get(sd_bus *bus, const char *path, const char *interface,
				  const char *name)
{
	return with(call_new(bus, path, "org.freedesktop.DBus.Properties", "Get"), "ss", interface,
		    name);
}

/* Until the bus has passed on all that this connection sent. */
static inline void settle(sd_bus *bus)
{
	CHECK(sd_bus_call_method(bus, "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetId",
				 NULL, NULL, "") >= 0);
}
