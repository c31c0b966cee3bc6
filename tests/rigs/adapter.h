/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bus adapter of the daemon in the process of the test, on a private bus: two GPUs, a host
 * that saves nothing, and clients in the same event loop, so that a test controls the order of
 * events.
 */

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "bus/bus.h"
#include "check-cond.h"
#include "dbus/names.h"
#include "rig.h"
#include "core/policy/caller.h"

struct adapter {
	struct rig rig;
	sd_event *event;
	struct arbiter *arbiter;
	struct bus *bus;

	struct caller caller; /* of the last call that reached the host */
	struct late_user late[2];
	size_t n_late;
	unsigned refreshed, decided, described;
	int fail; /* negative errno that reserve returns without a result; 0: reserve works */

	/* With hold set, settle keeps the last answer here instead of sending it. */
	bool hold;
	bool defer;         /* the next leases wait for borrowers, until the test grants them */
	uint64_t abandoned; /* the last lease whose caller does not know of it */
	int settle_fails;   /* negative errno that settle returns; 0: settle works */
	void (*settled)(void *call, int r);
	void *call;
	bool disconnected;
	bool awaits_masks; /* until the test clears it and calls bus_observed() */
};

void adapter_carry_out(struct adapter *adapter);

extern const struct bus_host adapter_host;
extern const struct bus_events adapter_events;

void adapter_new(struct adapter *ret);

void adapter_done(struct adapter *adapter);

/* ---- clients ---- */

/* Connects as uid; the connection runs in the adapter's loop. */
sd_bus *adapter_connect(struct adapter *adapter, uid_t uid);

/* adapter_new(), and its first client. */
sd_bus *adapter_begin(struct adapter *ret, uid_t uid);

void adapter_run(struct adapter *adapter, const bool *until);

/* Lets the bus adapter receive the calls that the bus has forwarded. The bus does not answer meanwhile,
 * so callers that are not known yet stay unknown. */
void adapter_take_calls(struct adapter *adapter);

/* The answer to a call that was sent. */
struct answer {
	bool came;
	uint64_t number; /* which the service counts up with each message that it sends */
	sd_bus_message *m;
};

sd_bus_message *call_new(sd_bus *bus, const char *path, const char *interface, const char *member);

/* Sends the call and frees it. The answer arrives in *answer. */
void call_send(sd_bus_message *call, struct answer *answer);

/* Sends the call, runs the loop until the answer arrives, and returns it for the caller to free. */
sd_bus_message *call_run(struct adapter *adapter, sd_bus_message *call);

/* Whether the answer is the error NAME and its message contains the text; frees the answer. */
bool is_error(sd_bus_message *answer, const char *name, const char *says);

/* Whether the answer is no error; frees it. */
bool is_fine(sd_bus_message *answer);

/* ---- calls ---- */

#define STRANGER 1 /* "daemon", on every Debian and Fedora */

/* For NEEDS(): why there can be no bus with two users. */
const char *bus_missing(void);

sd_bus_message *call_arbiter(sd_bus *bus, const char *member);

sd_bus_message *call_lease(sd_bus *bus, const char *path, const char *member);

/* Appends arguments to a call and returns it. */
sd_bus_message *with(sd_bus_message *m, const char *types, ...);

/* Appends a request to a call and returns it: its wants as text, separated by '|', and after ';' its options,
 * "gpu=0 cus=15 | gpu=1 cus=15; class=realtime wait-usec=forever". process=N is a descriptor. */
sd_bus_message *with_request(sd_bus_message *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A Reserve call with such a request. */
sd_bus_message *ask_for(sd_bus *bus, const char *format, ...) __attribute__((format(printf, 2, 3)));

sd_bus_message *drain(sd_bus *bus, const char *gpu);

sd_bus_message *ask(sd_bus *bus, const char *member, unsigned cus);

sd_bus_message *get(sd_bus *bus, const char *path, const char *interface, const char *name);

/* Waits until the bus has forwarded every message that this connection sent. */
void settle(sd_bus *bus);
