/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Kills the bus of the shipped daemon: leases stay, and the daemon reconnects. */

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"

static void arrive(struct live *s)
{
	rig_new(&s->rig);
	rig_start_managed(&s->rig, SIMULATED, "--store-max=64");
	live_connect(s);
}

/* It wakes who waits. */
static int on_owner(sd_bus_message *, void *, sd_bus_error *)
{
	return 0;
}

static bool has_owner(sd_bus *bus)
{
	return sd_bus_call_method(bus, "org.freedesktop.DBus", "/", "org.freedesktop.DBus",
				  "GetNameOwner", NULL, NULL, "s", GPUARB_BUS_NAME) >= 0;
}

/* To the new bus, after the daemon has its name there. */
static void connect_again(struct live *s)
{
	s->bus = rig_connect(&s->rig, 0);
	CHECK(sd_bus_match_signal(s->bus, NULL, "org.freedesktop.DBus", NULL,
				  "org.freedesktop.DBus", "NameOwnerChanged", on_owner, NULL) >= 0);
	AWAIT(s->bus, has_owner(s->bus));
	listen_in(s->bus, &s->told);
}

static void change_bus(struct live *s)
{
	leave(s->bus);
	rig_kill_bus(&s->rig);
	rig_start_bus(&s->rig);
	connect_again(s);
}

FIXTURE(struct live, s, arrive(s), rig_done(&s->rig));

TEST_WITH(leases_stay_while_the_bus_is_gone_and_the_daemon_reconnects, struct live *s)
{
	static struct book before, after;
	struct live_lease lease;
	pid_t daemon;

	daemon = s->rig.daemon;
	lease = reserve(s->bus, 15);
	for (unsigned i = 0; i < 3; i++) {
		book_read(s->bus, &before);
		change_bus(s);
		book_read(s->bus, &after);
		CHECK(after.n_leases == 1 && after.leases[0].id == lease.id);
		CHECK(book_same_parts(&after.leases[0], before.leases[0].parts, 1));
		CHECK(is_fine(call(resize(s->bus, lease.path, i % 2 ? 15 : 30))));
		CHECK(await_record(lease.holder, GPUARB_RECORD_GRANTED).record.generation == i + 2);
	}
	CHECK(s->rig.daemon == daemon && kill(daemon, 0) == 0);
	close(lease.holder);
	AWAIT(s->bus, s->told.removed == 1);
}

/* Counts connections that come, and wakes who waits. */
static int on_connection(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const char *name, *before;
	unsigned *came = userdata;

	CHECK(sd_bus_message_read(m, "ss", &name, &before) >= 0);
	*came += name[0] == ':' && !before[0];
	return 0;
}

TEST_WITH(another_owner_of_the_name_only_delays_the_daemon, struct live *s)
{
	struct live_lease lease;
	unsigned came = 0;
	pid_t daemon;

	daemon = s->rig.daemon;
	lease = reserve(s->bus, 15);
	leave(s->bus);
	CHECK(kill(daemon, SIGSTOP) == 0);
	rig_kill_bus(&s->rig);
	rig_start_bus(&s->rig);
	s->bus = rig_connect(&s->rig, 0);
	CHECK(sd_bus_request_name(s->bus, GPUARB_BUS_NAME, 0) > 0);
	CHECK(sd_bus_match_signal(s->bus, NULL, "org.freedesktop.DBus", NULL,
				  "org.freedesktop.DBus", "NameOwnerChanged", on_connection,
				  &came) >= 0);
	CHECK(kill(daemon, SIGCONT) == 0);
	AWAIT(s->bus, came > 1); /* it has tried, and once more */
	leave(s->bus);

	connect_again(s);
	CHECK(s->rig.daemon == daemon && lease_says(s->bus, lease.path, "State", "granted"));
	close(lease.holder);
	AWAIT(s->bus, s->told.removed == 1);
}

TEST_WITH(holders_and_records_need_no_bus, struct live *s)
{
	struct live_lease first, second, third;
	struct live_record record;

	first = reserve(s->bus, 60);
	second = waiting(call(ask_for(s->bus, "cus=60; wait-usec=forever")));
	third = waiting(call(ask_for(s->bus, "cus=60; wait-usec=300000")));
	leave(s->bus);
	rig_kill_bus(&s->rig);
	record = await_record(third.holder, GPUARB_RECORD_ENDING);
	CHECK(record.record.cause == GPUARB_RECORD_TIMED_OUT);
	close(first.holder);
	record = await_record(second.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.n_partitions == 1 && record.partitions[0].cus == 60);

	rig_start_bus(&s->rig);
	connect_again(s);
	CHECK(lease_says(s->bus, second.path, "State", "granted"));
	CHECK(!lease_exists(s->bus, first.path) && !lease_exists(s->bus, third.path));
}

TEST_WITH(a_daemon_killed_without_a_bus_is_replaced_when_the_bus_is_back, struct live *s)
{
	struct live_lease lease;

	lease = reserve(s->bus, 15);
	leave(s->bus);
	rig_kill_bus(&s->rig);
	rig_down(&s->rig);
	rig_start_bus(&s->rig);
	rig_up(&s->rig);
	connect_again(s);
	CHECK(lease_exists(s->bus, lease.path) && gpu_number(s->bus, "CusFree") == 45);
}
