/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadLimits: the limits, and what the caller, or for an administrator each user, has of them. */

#include "bus/bus-methods.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-unread.h"
#include "bus/bus-write.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

/* What a user holds of the ledger. */
struct held {
	uint32_t leases, waiting, holders;
};

static struct held held_by(const struct arbiter *arbiter, uid_t uid)
{
	struct held held = { 0 };

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (lease->owner != uid)
			continue;
		held.leases++;
		held.waiting += lease->state == STATE_WAITING;
		held.holders += lease->n_holders + (uint32_t)lease->n_bound;
	}
	return held;
}

static void append_limits(sd_bus_message *m, const struct bus *bus)
{
	const struct settings *s = bus->arbiter->settings;

	bus_open(m, "{sv}");
	BUS_MEMBERS(m, s, max_calls_per_user, max_time_per_user, max_pending_per_user,
		    max_unread_per_user, max_leases, max_leases_per_user, max_holders);
	BUS_VALUE(m, "unread-known", bus_unread_is_known(bus));
	bus_close(m);
}

static void append_user(sd_bus_message *m, const struct bus *bus, const struct bus_user *user)
{
	const struct held held = held_by(bus->arbiter, user->uid);
	const struct bus_peer *peer;
	uint32_t connections = 0;

	TAILQ_FOREACH(peer, &user->peers, link)
	connections += !peer->closed;
	bus_open(m, "{sv}");
	BUS_MEMBERS(m, user, uid);
	sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "administrator", "b",
			      user->exempt, "connections", "u", connections, "calls", "t",
			      user->served, "calls-delayed", "t", user->delayed, "calls-refused",
			      "t", user->refused, "time-usec", "t", user->used_usec, "pending", "u",
			      (uint32_t)user->n_queued, "pending-bytes", "t",
			      (uint64_t)user->queued_bytes, "unread-bytes", "t", user->unread.bytes,
			      "unread-fds", "u", user->unread.fds);
	BUS_MEMBERS(m, &held, leases, waiting, holders);
	bus_close(m);
}

int bus_method_read_limits(sd_bus_message *call, void *userdata, sd_bus_error *)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct bus *bus = userdata;
	const struct caller *caller = bus_sender(bus, call);
	const struct bus_user *user;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r < 0)
		return r;
	append_limits(reply, bus);
	bus_open(reply, "a{sv}");
	TAILQ_FOREACH(user, &bus->users, link)
	if (caller && (caller->administrator || user->uid == caller->uid))
		append_user(reply, bus, user);
	return bus_send(reply, bus_close(reply));
}
