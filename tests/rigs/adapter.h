/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bus adapter alone, in this process, on a bus of its own: two GPUs that are plain
 * values, a host that saves nothing, and clients that wait in the same loop. So a test
 * decides what has happened when.
 */

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bus/bus.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "rig.h"

struct adapter {
	struct rig rig;
	sd_event *event;
	struct arbiter *arbiter;
	struct bus *bus;

	struct caller caller; /* of the last call that came to the host */
	unsigned refreshed, described;
	int fail; /* reserve fails so, without a verdict; 0: it does not */

	/* Answers that must outlive the daemon: the last one is kept here if hold is set. */
	bool hold;
	int settle_fails; /* why none is taken; 0: they are */
	void (*settled)(void *call, int r);
	void *call;
	bool disconnected;
};

void adapter_carry_out(struct adapter *adapter);

extern const struct bus_host adapter_host;
extern const struct bus_events adapter_events;

void adapter_new(struct adapter *ret);

void adapter_done(struct adapter *adapter);

/* Clients of an adapter under test: connections in its loop, calls, answers. */

/* A connection in the adapter's loop. */
sd_bus *adapter_connect(struct adapter *adapter, uid_t uid);

void adapter_run(struct adapter *adapter, const bool *until);

/* An answer that is awaited. */
struct answer {
	bool came;
	unsigned number; /* counts answers */
	sd_bus_message *m;
};

extern unsigned answer_count;

sd_bus_message *call_new(sd_bus *bus, const char *path, const char *interface, const char *member);

/* Sends a call, which it frees. */
void call_send(sd_bus_message *call, struct answer *answer);

/* Sends a call and runs the loop until it is answered. The answer is the caller's. */
sd_bus_message *call_run(struct adapter *adapter, sd_bus_message *call);

/* Whether the answer is this error, and the sentence says so; frees it. */
bool is_error(sd_bus_message *answer, const char *name, const char *says);

/* Whether it is no error; frees it. */
bool is_fine(sd_bus_message *answer);

/* ---- what is called ---- */

#define STRANGER 1 /* "daemon", on every Debian and Fedora */

#define NEEDS_BUS()                                                     \
	do {                                                            \
		if (rig_bus_missing())                                  \
			SKIP(rig_bus_missing());                        \
		if (geteuid() != 0)                                     \
			SKIP("it acts as two users, which takes root"); \
	} while (0)

sd_bus_message *call_arbiter(sd_bus *bus, const char *member);

sd_bus_message *call_lease(sd_bus *bus, const char *path, const char *member);

/* Appends to a call. */
sd_bus_message *with(sd_bus_message *m, const char *types, ...);

sd_bus_message *drain(sd_bus *bus, const char *gpu);

sd_bus_message *ask(sd_bus *bus, const char *member, unsigned cus);

sd_bus_message *get(sd_bus *bus, const char *path, const char *interface, const char *name);

/* Until the bus has passed on all that this connection sent. */
void settle(sd_bus *bus);
