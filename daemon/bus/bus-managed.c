/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * GetManagedObjects. sd-bus would build the answer at once, and many leases take it longer than another
 * caller should wait. So a large answer is built in parts, one in each turn of the event loop, from a copy
 * of the ledger: it has the state of one moment. Signals of later changes follow it (bus-signals.c). One
 * answer is built at a time; other calls for one wait as calls do (bus-calls.c).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-managed.h"

#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-signals.h"
#include "bus/bus-unread.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

/* The weight of an object is about the number of dictionaries that it takes in the answer. */
#define WEIGHT_OF_PART 128U
#define WEIGHT_OF_GPU 4U

bool bus_is_managed_call(sd_bus_message *m)
{
	const char *path = sd_bus_message_get_path(m);

	return sd_bus_message_is_method_call(m, OBJECT_MANAGER, "GetManagedObjects") > 0 && path &&
	       strcmp(path, GPUARB_PATH) == 0 && sd_bus_message_is_empty(m) > 0;
}

bool bus_managed_is_busy(const struct bus *bus)
{
	return bus->managed->call || bus_signals_are_held(bus);
}

static size_t n_objects(const struct arbiter *arbiter)
{
	return arbiter->n_gpus + arbiter->n_leases;
}

static size_t weight(const struct arbiter *arbiter, size_t object)
{
	const struct gpu *gpu;

	if (object >= arbiter->n_gpus)
		return 1 + arbiter->leases[object - arbiter->n_gpus]->n_partitions;
	gpu = &arbiter->gpus[object];
	return WEIGHT_OF_GPU + gpu->observed.n_processes + gpu->observed.n_idle +
	       gpu->graphics.n_clients + arbiter->n_covers / arbiter->n_gpus;
}

static int append(sd_bus_message *m, const struct arbiter *arbiter, size_t object)
{
	const struct lease *lease;

	if (object < arbiter->n_gpus)
		return arbiter->gpus[object].absent
			       ? 0
			       : bus_append_object(m, &bus_gpus, object, arbiter,
						   &arbiter->gpus[object]);
	lease = lease_shown(arbiter->leases[object - arbiter->n_gpus]);
	return bus_append_object(m, &bus_leases, lease->id, arbiter, lease);
}

/* Appends objects from *next on, as many as one turn may take. */
static int append_part(sd_bus_message *m, const struct arbiter *arbiter, size_t *next)
{
	int r = 0;

	for (size_t left = WEIGHT_OF_PART; *next < n_objects(arbiter) && r >= 0; ++*next) {
		size_t taken = weight(arbiter, *next);

		if (taken > left && left < WEIGHT_OF_PART)
			break;
		left -= taken < left ? taken : left;
		r = append(m, arbiter, *next);
	}
	return r;
}

static int open_reply(sd_bus_message *call, sd_bus_message **ret)
{
	int r = sd_bus_message_new_method_return(call, ret);

	return r < 0 ? r : sd_bus_message_open_container(*ret, 'a', "{oa{sa{sv}}}");
}

static int send_reply(struct bus_peer *peer, const struct arbiter *arbiter, sd_bus_message *call,
		      sd_bus_message *reply)
{
	int r = sd_bus_message_close_container(reply);

	if (r < 0)
		return r;
	bus_unread_answer(peer, arbiter, call, 0);
	return sd_bus_send(NULL, reply, NULL);
}

/* ---- in parts ----------------------------------------------------------------------------- */

static void done(struct bus *bus)
{
	bus_signals_hold(bus, false);
	bus->managed->call = sd_bus_message_unref(bus->managed->call);
	bus->managed->reply = sd_bus_message_unref(bus->managed->reply);
	snapshot_free(TAKE_PTR(bus->managed->snapshot));
	bus_peer_unqueue(TAKE_PTR(bus->managed->peer));
}

/* Once the ledger is copied, which takes a turn of its own. Returns whether the answer is complete. */
static int answer_part(struct bus *bus)
{
	struct arbiter *snapshot = bus->managed->snapshot;
	int r;

	if (!snapshot)
		return snapshot_new(bus->arbiter, &bus->managed->snapshot);
	snapshot->settings = bus->arbiter->settings; /* a reload replaces them */
	r = append_part(bus->managed->reply, snapshot, &bus->managed->next);
	if (r < 0 || bus->managed->next < n_objects(snapshot))
		return r;
	r = send_reply(bus->managed->peer, snapshot, bus->managed->call, bus->managed->reply);
	return r < 0 ? r : 1;
}

static void take_turn(struct bus *bus)
{
	uint64_t started_usec = bus_cpu_usec();
	int r = answer_part(bus);

	bus_user_charge(bus->managed->peer->user, 0, bus_cpu_usec() - started_usec);
	if (r < 0)
		sd_bus_reply_method_errno(bus->managed->call, r, NULL);
	if (r != 0)
		done(bus);
}

/* A timer, not a source that is always pending: messages that have arrived take turns with it. */
static int next_turn(struct bus *bus)
{
	int r = sd_event_source_set_time(bus->managed->turn, 0);

	return r < 0 ? r : sd_event_source_set_enabled(bus->managed->turn, SD_EVENT_ONESHOT);
}

static int on_turn(sd_event_source *, uint64_t, void *userdata)
{
	struct bus *bus = userdata;

	if (bus->managed->call && bus->managed->peer->closed)
		done(bus);
	else if (bus->managed->call)
		take_turn(bus);
	else
		bus_signals_release(bus);
	bus->changed = true; /* another call may be served now */
	return bus_managed_is_busy(bus) ? next_turn(bus) : 0;
}

static int begin(struct bus *bus, struct bus_peer *peer, sd_bus_message *call,
		 sd_bus_message *reply)
{
	bus->managed->call = sd_bus_message_ref(call);
	bus->managed->reply = sd_bus_message_ref(reply);
	bus->managed->peer = peer;
	bus->managed->next = 0;
	bus_signals_hold(bus, true);
	peer->n_queued++;
	return next_turn(bus);
}

static bool is_small(const struct arbiter *arbiter)
{
	size_t sum = 0;

	for (size_t i = 0; i < n_objects(arbiter) && sum <= WEIGHT_OF_PART; i++)
		sum += weight(arbiter, i);
	return sum <= WEIGHT_OF_PART;
}

static int answer(struct bus *bus, struct bus_peer *peer, sd_bus_message *call)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	size_t next = 0;
	int r = open_reply(call, &reply);

	if (r < 0)
		return r;
	if (!is_small(bus->arbiter))
		return begin(bus, peer, call, reply);
	r = append_part(reply, bus->arbiter, &next);
	return r < 0 ? r : send_reply(peer, bus->arbiter, call, reply);
}

int bus_managed_arrived(struct bus *bus, sd_bus_message *m)
{
	struct bus_peer *peer;
	int r;

	if (!bus_is_managed_call(m))
		return 0;
	if (sd_bus_message_get_expect_reply(m) <= 0)
		return 1;
	peer = bus_peer_of(bus, m);
	r = peer ? answer(bus, peer, m) : 1;
	return r < 0 ? r : 1;
}

int bus_managed_start(struct bus *bus)
{
	int r;

	bus->managed = calloc(1, sizeof(*bus->managed));
	if (!bus->managed)
		return -ENOMEM;
	r = sd_event_add_time(bus->event, &bus->managed->turn, CLOCK_MONOTONIC, 0, 1, on_turn, bus);
	return r < 0 ? r : sd_event_source_set_enabled(bus->managed->turn, SD_EVENT_OFF);
}

void bus_managed_stop(struct bus *bus)
{
	if (!bus->managed)
		return;
	if (bus->managed->call) {
		bus_refuse_as(bus->managed->call, RESULT_SHUTDOWN, BUS_STOPPING);
		done(bus);
	}
	bus_signals_drop(bus);
	sd_event_source_disable_unref(bus->managed->turn);
	free(bus->managed);
}
