/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Kills the bus of the shipped daemon: leases stay, and the daemon reconnects. */

#include "check.h"
#include "book.h"

NEEDS(daemon_missing);

#define SIMULATED "--simulate=radeon-vii"

static void arrive(struct rig *rig, sd_bus **ret, struct told *told)
{
	rig_new(rig);
	rig_start_managed(rig, SIMULATED, "--store-max=64");
	*ret = rig_connect(rig, 0);
	listen_in(*ret, told);
}

/* It wakes who waits. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)m, (void)userdata, (void)error;
	return 0;
}

static bool has_owner(sd_bus *bus)
{
	return sd_bus_call_method(bus, "org.freedesktop.DBus", "/", "org.freedesktop.DBus",
				  "GetNameOwner", NULL, NULL, "s", GPUARB_BUS_NAME) >= 0;
}

/* A connection to the new bus, after the daemon has its name there. */
static sd_bus *connect_again(const struct rig *rig, struct told *told)
{
	sd_bus *bus = rig_connect(rig, 0);

	CHECK(sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus", NULL, "org.freedesktop.DBus",
				  "NameOwnerChanged", on_owner, NULL) >= 0);
	AWAIT(bus, has_owner(bus));
	listen_in(bus, told);
	return bus;
}

static sd_bus *change_bus(struct rig *rig, sd_bus *bus, struct told *told)
{
	leave(bus);
	rig_kill_bus(rig);
	rig_start_bus(rig);
	return connect_again(rig, told);
}

TEST(leases_stay_while_the_bus_is_gone_and_the_daemon_reconnects)
{
	static struct book before, after;
	struct live_lease lease;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;
	pid_t daemon;

	arrive(&rig, &bus, &told);
	daemon = rig.daemon;
	lease = reserve(bus, 15);
	for (unsigned i = 0; i < 3; i++) {
		book_read(bus, &before);
		bus = change_bus(&rig, bus, &told);
		book_read(bus, &after);
		CHECK(after.n_leases == 1 && after.leases[0].id == lease.id);
		CHECK(book_same_parts(&after.leases[0], before.leases[0].parts, 1));
		CHECK(is_fine(call(resize(bus, lease.path, i % 2 ? 15 : 30))));
		CHECK(await_record(lease.holder, GPUARB_RECORD_GRANTED).record.generation == i + 2);
	}
	CHECK(rig.daemon == daemon && kill(daemon, 0) == 0);
	close(lease.holder);
	AWAIT(bus, told.removed == 1);
}

/* Counts connections that come, and wakes who waits. */
static int on_connection(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *name, *before;
	unsigned *came = userdata;

	(void)error;
	CHECK(sd_bus_message_read(m, "ss", &name, &before) >= 0);
	*came += name[0] == ':' && !before[0];
	return 0;
}

TEST(another_owner_of_the_name_only_delays_the_daemon)
{
	struct live_lease lease;
	unsigned came = 0;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;
	pid_t daemon;

	arrive(&rig, &bus, &told);
	daemon = rig.daemon;
	lease = reserve(bus, 15);
	leave(bus);
	CHECK(kill(daemon, SIGSTOP) == 0);
	rig_kill_bus(&rig);
	rig_start_bus(&rig);
	bus = rig_connect(&rig, 0);
	CHECK(sd_bus_request_name(bus, GPUARB_BUS_NAME, 0) > 0);
	CHECK(sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus", NULL, "org.freedesktop.DBus",
				  "NameOwnerChanged", on_connection, &came) >= 0);
	CHECK(kill(daemon, SIGCONT) == 0);
	AWAIT(bus, came > 1); /* it has tried, and once more */
	leave(bus);

	bus = connect_again(&rig, &told);
	CHECK(rig.daemon == daemon && lease_says(bus, lease.path, "State", "granted"));
	close(lease.holder);
	AWAIT(bus, told.removed == 1);
}

TEST(holders_and_records_need_no_bus)
{
	struct live_lease first, second, third;
	struct live_record record;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, &bus, &told);
	first = reserve(bus, 60);
	second = waiting(call(with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u",
				   60, 1, "wait-usec", "t", UINT64_MAX)));
	third = waiting(call(with(call_arbiter(bus, "Reserve"), "aa{sv}a{sv}", 1, 1, "cus", "u", 60,
				  1, "wait-usec", "t", UINT64_C(300000))));
	leave(bus);
	rig_kill_bus(&rig);
	record = await_record(third.holder, GPUARB_RECORD_ENDING);
	CHECK(record.record.cause == GPUARB_RECORD_TIMED_OUT);
	close(first.holder);
	record = await_record(second.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.n_partitions == 1 && record.partitions[0].cus == 60);

	rig_start_bus(&rig);
	bus = connect_again(&rig, &told);
	CHECK(lease_says(bus, second.path, "State", "granted"));
	CHECK(!lease_exists(bus, first.path) && !lease_exists(bus, third.path));
}

TEST(a_daemon_killed_without_a_bus_is_replaced_when_the_bus_is_back)
{
	struct live_lease lease;
	struct told told;
	_cleanup_(rig_done) struct rig rig;
	sd_bus *bus;

	arrive(&rig, &bus, &told);
	lease = reserve(bus, 15);
	leave(bus);
	rig_kill_bus(&rig);
	rig_down(&rig);
	rig_start_bus(&rig);
	rig_up(&rig);
	bus = connect_again(&rig, &told);
	CHECK(lease_exists(bus, lease.path) && gpu_number(bus, "CusFree") == 45);
}
