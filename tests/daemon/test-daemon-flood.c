/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One user floods the shipped daemon with calls, or does not read its answers; others are served. */

#include "check.h"
#include "live.h"

#define OTHER 2

/* A bus that stops to read from gpuarbd when this much of it is unread. */
#define SMALL_BUS                                                       \
	"<busconfig><limit name=\"max_incoming_bytes\">1000000</limit>" \
	"</busconfig>\n"

struct flood {
	struct rig rig;
	sd_bus *root, *attacker, *other;
};

static void arrive(struct flood *flood, const char *config)
{
	rig_new(&flood->rig);
	rig_write(&flood->rig, "extra.conf", SMALL_BUS);
	rig_write(&flood->rig, "gpuarbd.conf", config);
	rig_kill_bus(&flood->rig);
	rig_start_bus(&flood->rig);
	rig_start(&flood->rig, "--simulate=radeon-vii");
	flood->root = rig_connect(&flood->rig, 0);
	flood->attacker = rig_connect(&flood->rig, STRANGER);
	flood->other = rig_connect(&flood->rig, OTHER);
}

static void depart(struct flood *flood)
{
	leave(flood->root);
	leave(flood->other);
	if (flood->attacker)
		leave(flood->attacker);
	rig_done(&flood->rig);
}

static sd_bus_message *ask_all(sd_bus *bus)
{
	return call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
			"GetManagedObjects");
}

/* Sends and frees the call; its answer stays in the socket. */
static void send_unread(sd_bus_message *m)
{
	uint64_t cookie; /* without it sd-bus asks for no answer */

	CHECK(sd_bus_send(NULL, m, &cookie) >= 0);
	sd_bus_message_unref(m);
}

/* Root and another user reserve and read. */
static void others_are_served(const struct flood *flood)
{
	struct live_lease lease = reserve(flood->other, 1);

	CHECK(lease_says(flood->root, lease.path, "State", "granted"));
	CHECK(is_fine(call(release(flood->other, lease.path))));
	close(lease.holder);
	close(reserve(flood->root, 1).holder);
}

TEST(connection_that_reads_no_large_answer_stops_no_other_user)
{
	struct flood flood;

	NEEDS_DAEMON();
	arrive(&flood, "[daemon]\nmax-unread-per-user = 128K\n");
	for (unsigned i = 0; i < 3000; i++)
		send_unread(ask_all(flood.attacker));
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	others_are_served(&flood);
	depart(&flood);
}

/* dbus-daemon lets 64 fds of a connection be on their way. The first answers fill the socket. */
TEST(connection_that_takes_no_holder_stops_no_other_user)
{
	struct flood flood;
	char token[8];

	NEEDS_DAEMON();
	arrive(&flood, "");
	for (unsigned i = 0; i < 500; i++)
		send_unread(ask_all(flood.attacker));
	for (unsigned i = 0; i < 100; i++) {
		snprintf(token, sizeof(token), "%u", i % 5);
		send_unread(ask_token(flood.attacker, 1, token));
	}
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	others_are_served(&flood);
	depart(&flood);
}
