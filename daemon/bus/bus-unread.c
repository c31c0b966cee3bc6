/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Answers that a client does not read. dbus-daemon keeps them, counts them against the sender, and
 * reads nothing more from gpuarbd when there are too many (max_incoming_bytes,
 * max_incoming_unix_fds). So gpuarbd adds up what it has sent to each connection, and asks the bus
 * now and then how much of it the connection has not read (org.freedesktop.DBus.Debug.Stats). The
 * calls of a user wait while too much is unread. A bus that does not answer the question has to
 * protect itself: dbus-broker disconnects a client that does not read.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus-unread.h"

#include "bus/bus-read.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

/* dbus-daemon stops at 64 fds of one sender, of which all users together may have so many. */
#define FDS_OF_USER 16U
#define FDS_OF_USERS 56U
#define TOTAL_OF_USERS 8U /* what may be unread in all, in maxima of one user */

/* The bus is asked when this much was sent since the last question. */
#define ASK_FDS 8U
#define ASK_PART 16U /* of what the user may leave unread */

/* Between two questions about a user whose calls wait. */
#define DELAY_USEC UINT64_C(1000)
#define DELAY_MAX_USEC UINT64_C(1000000)

/* Upper bounds of what sd-bus sends, with names, types and alignment, but for texts of the call that an error
 * repeats. */
#define ANSWER_BYTES 600U
#define GPU_BYTES 6000U
#define LEASE_BYTES 3500U
#define PARTITION_BYTES 1500U
#define NODE_BYTES 100U

#define LARGE_BYTES (UINT64_C(1) << 20) /* the heap is given back after such an answer */

struct bus_unread {
	struct bus_amount total;
	bool tells_nothing; /* the bus does not know what is unread */
	sd_event_source *poll;
	bool polling;
	uint64_t poll_usec;
};

static uint64_t bytes_of_leases(const struct arbiter *arbiter)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		bytes += LEASE_BYTES + arbiter->leases[i]->n_partitions * PARTITION_BYTES;
	return bytes;
}

/* How much the answer to a call can have. */
static uint64_t bytes_of_answer(const struct arbiter *arbiter, sd_bus_message *m)
{
	const char *member = sd_bus_message_get_member(m);
	uint64_t gpus = arbiter->n_gpus;

	if (strcmp(member, "GetManagedObjects") == 0)
		return ANSWER_BYTES + gpus * GPU_BYTES + bytes_of_leases(arbiter);
	if (strcmp(member, "Introspect") == 0)
		return GPU_BYTES + (gpus + arbiter->n_leases) * NODE_BYTES;
	if (strcmp(member, "GetAll") == 0 || strcmp(member, "ReadSlots") == 0)
		return GPU_BYTES + gpus * PARTITION_BYTES;
	if (strcmp(member, "Reserve") == 0 || strncmp(member, "Plan", 4) == 0)
		return ANSWER_BYTES + gpus * PARTITION_BYTES;
	return ANSWER_BYTES;
}

/* Modulo 2^n, so that it also subtracts. */
static void add(struct bus_peer *peer, uint64_t bytes, unsigned fds)
{
	peer->unread.bytes += bytes;
	peer->unread.fds += fds;
	peer->user->unread.bytes += bytes;
	peer->user->unread.fds += fds;
	peer->bus->unread->total.bytes += bytes;
	peer->bus->unread->total.fds += fds;
}

static bool exceeds(const struct bus *bus, const struct bus_user *user)
{
	uint64_t most = bus->arbiter->settings->max_unread_per_user;

	return !bus_user_has_share(user->unread.bytes, bus->unread->total.bytes, most,
				   TOTAL_OF_USERS * most) ||
	       !bus_user_has_share(user->unread.fds, bus->unread->total.fds, FDS_OF_USER,
				   FDS_OF_USERS);
}

/* ---- the question ------------------------------------------------------------------------- */

static int read_stat(sd_bus_message *m, const char *key, void *userdata)
{
	struct bus_amount *amount = userdata;
	uint32_t bytes;
	int r;

	if (strcmp(key, "OutgoingFDs") == 0)
		return sd_bus_message_read(m, "v", "u", &amount->fds);
	if (strcmp(key, "OutgoingBytes") != 0)
		return sd_bus_message_skip(m, "v");
	r = sd_bus_message_read(m, "v", "u", &bytes);
	amount->bytes = r < 0 ? 0 : bytes;
	return r;
}

/* A connection that has closed has nothing unread, and neither has one of a bus that does not tell. */
static struct bus_amount answer_of(struct bus_peer *peer, sd_bus_message *m)
{
	struct bus_amount unread = { 0 };

	if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
		return (struct bus_amount){ peer->unread.bytes - peer->sent.bytes,
					    peer->unread.fds - peer->sent.fds };
	if (!sd_bus_message_is_method_error(m, NULL))
		peer->bus->unread->tells_nothing = bus_read_entries(m, read_stat, &unread) < 0;
	else if (!sd_bus_message_is_method_error(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
		peer->bus->unread->tells_nothing = true;
	return unread;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct bus_peer *peer = userdata;
	struct bus_amount unread = answer_of(peer, m), later = peer->sent;
	struct bus_user *user = peer->user;
	struct bus *bus = peer->bus;

	peer->question = sd_bus_slot_unref(peer->question);
	add(peer, unread.bytes + later.bytes - peer->unread.bytes,
	    unread.fds + later.fds - peer->unread.fds);
	user->n_questions--;
	bus->changed = true;
	if (user->n_questions > 0)
		return 1;
	if (!exceeds(bus, user))
		user->delay_usec = 0;
	else
		user->delay_usec = user->delay_usec == 0 ? DELAY_USEC : 2 * user->delay_usec;
	if (user->delay_usec > DELAY_MAX_USEC)
		user->delay_usec = DELAY_MAX_USEC;
	user->ask_usec = bus_now_usec() + user->delay_usec;
	return 1;
}

/* The bus answers in order: what was sent before the question is either read or counted. */
static void ask(struct bus_peer *peer)
{
	struct bus *bus = peer->bus;

	if (peer->question || bus->unread->tells_nothing ||
	    sd_bus_call_method_async(bus->sd, &peer->question, "org.freedesktop.DBus",
				     "/org/freedesktop/DBus", "org.freedesktop.DBus.Debug.Stats",
				     "GetConnectionStats", on_answer, peer, "s", peer->name) < 0)
		return;
	peer->sent = (struct bus_amount){ 0 };
	peer->user->n_questions++;
}

static int on_poll(sd_event_source *, uint64_t, void *userdata)
{
	struct bus *bus = userdata;

	bus->unread->polling = false;
	bus->changed = true;
	return 0;
}

/* Asks about all connections of the user that may have something unread; or later, when
 * bus_calls_serve() comes to this user again. */
static void poll_user(struct bus *bus, struct bus_user *user)
{
	uint64_t now = bus_now_usec();
	struct bus_peer *peer;

	if (user->n_questions > 0)
		return;
	if (now >= user->ask_usec) {
		TAILQ_FOREACH(peer, &user->peers, link)
		if (peer->unread.bytes > 0)
			ask(peer);
		if (user->n_questions > 0)
			return;
		user->ask_usec = now + DELAY_MAX_USEC / 10; /* others have too much unread */
	}
	if (bus->unread->polling && bus->unread->poll_usec <= user->ask_usec)
		return;
	bus->unread->polling = true;
	bus->unread->poll_usec = user->ask_usec;
	sd_event_source_set_time(bus->unread->poll, bus->unread->poll_usec);
	sd_event_source_set_enabled(bus->unread->poll, SD_EVENT_ONESHOT);
}

/* ---- answers ------------------------------------------------------------------------------ */

static void sent(struct bus_peer *peer, uint64_t bytes, unsigned fds)
{
	uint64_t part = peer->bus->arbiter->settings->max_unread_per_user / ASK_PART;

	if (peer->bus->unread->tells_nothing)
		return;
	add(peer, bytes, fds);
	peer->sent.bytes += bytes;
	peer->sent.fds += fds;
	if (peer->sent.bytes >= part || peer->sent.fds >= ASK_FDS)
		ask(peer);
}

void bus_unread_answer(struct bus_peer *peer, const struct arbiter *arbiter, sd_bus_message *m,
		       size_t size)
{
	uint64_t bytes = bytes_of_answer(arbiter, m) + size;

	peer->bus->bloated |= bytes >= LARGE_BYTES;
	if (sd_bus_message_get_expect_reply(m) > 0)
		sent(peer, bytes, strcmp(sd_bus_message_get_member(m), "Reserve") == 0);
}

bool bus_unread_has_room(struct bus *bus, struct bus_peer *peer)
{
	if (peer->user->unread.bytes >= 2 * bus->arbiter->settings->max_unread_per_user)
		return false;
	sent(peer, ANSWER_BYTES, 0);
	return true;
}

bool bus_unread_holds(struct bus *bus, struct bus_user *user)
{
	if (user->exempt || bus->unread->tells_nothing || !exceeds(bus, user))
		return false;
	poll_user(bus, user);
	return true;
}

void bus_unread_forget(struct bus_peer *peer)
{
	if (peer->question)
		peer->user->n_questions--;
	peer->question = sd_bus_slot_unref(peer->question);
	if (peer->user)
		add(peer, -peer->unread.bytes, -peer->unread.fds);
}

bool bus_unread_is_known(const struct bus *bus)
{
	return !bus->unread->tells_nothing;
}

int bus_unread_start(struct bus *bus)
{
	int r;

	bus->unread = calloc(1, sizeof(*bus->unread));
	if (!bus->unread)
		return -ENOMEM;
	r = sd_event_add_time(bus->event, &bus->unread->poll, CLOCK_MONOTONIC, UINT64_MAX, 1,
			      on_poll, bus);
	return r < 0 ? r : sd_event_source_set_enabled(bus->unread->poll, SD_EVENT_OFF);
}

void bus_unread_stop(struct bus *bus)
{
	if (bus->unread)
		sd_event_source_disable_unref(bus->unread->poll);
	free(bus->unread);
}
