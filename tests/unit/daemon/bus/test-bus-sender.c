/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The caller of a method, as the bus adapter identifies it. */

#include <grp.h>

#include "check.h"
#include "adapter.h"
#include "core/ledger/ledger.h"

NEEDS(bus_missing);

FIXTURE(struct adapter, a, , adapter_done(a));

TEST_WITH(a_caller_is_looked_up_once_with_the_credentials_of_the_bus, struct adapter *a)
{
	sd_bus *root = adapter_begin(a, 0);
	sd_bus *user;
	char unit[64];

	user = adapter_connect(a, STRANGER);

	CHECK(is_fine(call_run(a, ask(user, "Reserve", 15))));
	CHECK(a->caller.uid == STRANGER && !a->caller.administrator);
	CHECK(a->caller.n_groups > 0 && a->caller.groups[0] == 1);
	/* A process of that user has connected, and the unit is that of the process. */
	CHECK(a->caller.pid > 0 && a->caller.pid != getpid());
	snprintf(unit, sizeof(unit), "pid-%d.service", a->caller.pid);
	CHECK(strcmp(a->caller.unit, unit) == 0);
	CHECK(is_fine(call_run(a, ask(user, "Plan", 15))));
	CHECK(a->described == 1);

	CHECK(is_fine(call_run(a, drain(root, "1"))));
	CHECK(a->caller.uid == 0 && a->caller.administrator && a->described == 2);
	CHECK(a->caller.pid == getpid());
}

TEST_WITH(a_user_in_more_groups_than_are_read_is_refused, struct adapter *a)
{
	static gid_t groups[CALLER_GROUPS];
	sd_bus *bus, *beyond;

	adapter_new(a);
	for (gid_t i = 0; i < CALLER_GROUPS; i++)
		groups[i] = 1000 + i;
	CHECK(setgroups(CALLER_GROUPS - 1, groups) == 0); /* and the primary group */
	bus = adapter_connect(a, 0);
	CHECK(setgroups(CALLER_GROUPS, groups) == 0);
	beyond = adapter_connect(a, 0);
	CHECK(setgroups(0, NULL) == 0);
	CHECK(is_fine(call_run(a, drain(bus, "1"))));
	CHECK(a->caller.n_groups == CALLER_GROUPS && a->caller.groups[CALLER_GROUPS - 1] > 1000);
	CHECK(!is_fine(call_run(a, drain(beyond, "1")))); /* one of them may be a bound */
}

TEST_WITH(pipelined_calls_are_answered_in_order, struct adapter *a)
{
	struct answer answers[20];
	sd_bus *bus = adapter_begin(a, 0);

	for (unsigned i = 0; i < 20; i++)
		call_send(i % 2 ? ask(bus, "Plan", 15) : drain(bus, "1"), &answers[i]);
	adapter_run(a, &answers[19].came);
	for (unsigned i = 0; i < 20; i++)
		CHECK((i == 0 || answers[i - 1].number < answers[i].number) &&
		      is_fine(answers[i].m));
	CHECK(a->described == 1);
}

/* Those that waited for the look-up are served one in a turn, and the last one arrives in between. */
TEST_WITH(call_of_an_administrator_overtakes_none_of_the_same_connection, struct adapter *a)
{
	struct answer answers[4];
	sd_bus *bus = adapter_begin(a, 0);

	for (unsigned i = 0; i < 3; i++)
		call_send(ask(bus, "Plan", 15), &answers[i]);
	settle(bus);
	adapter_take_calls(a);
	call_send(ask(bus, "Plan", 15), &answers[3]);
	settle(bus);
	for (unsigned i = 0; i < 4; i++)
		adapter_run(a, &answers[i].came);
	for (unsigned i = 0; i < 4; i++)
		CHECK((i == 0 || answers[i - 1].number < answers[i].number) &&
		      is_fine(answers[i].m));
}

TEST_WITH(calls_beyond_1024_that_wait_for_a_look_up_are_refused, struct adapter *a)
{
	static struct answer answers[1100];
	sd_bus *bus = adapter_begin(a, 0);

	for (unsigned i = 0; i < 1100; i++)
		call_send(drain(bus, "1"), &answers[i]);
	settle(bus);
	for (unsigned i = 0; i < 1100; i++) {
		adapter_run(a, &answers[i].came);
		CHECK(sd_bus_message_is_method_error(answers[i].m, SD_BUS_ERROR_LIMITS_EXCEEDED) ==
		      (i >= 1024));
		sd_bus_message_unref(answers[i].m);
	}
	CHECK(is_fine(call_run(a, drain(bus, "1"))));
}

TEST_WITH(calls_of_a_closed_connection_are_dropped, struct adapter *a)
{
	struct answer answer;
	sd_bus *gone, *bus;

	adapter_new(a);
	gone = rig_connect(&a->rig, 0);
	call_send(ask(gone, "Reserve", 15), &answer);
	call_send(ask(gone, "Reserve", 15), &answer);
	settle(gone);
	leave(gone);
	bus = adapter_connect(a, 0);
	settle(bus);

	CHECK(is_fine(call_run(a, drain(bus, "1"))));
	CHECK(a->arbiter->n_leases == 0 && a->described == 1);
}

TEST_WITH(a_caller_without_credentials_is_refused, struct adapter *a)
{
	sd_bus *bus;

	adapter_new(a);
	rig_write(&a->rig, "extra.conf",
		  "<busconfig><policy context=\"mandatory\"><deny send_destination="
		  "\"org.freedesktop.DBus\" send_interface=\"org.freedesktop.DBus\" send_member="
		  "\"GetConnectionCredentials\"/></policy></busconfig>");
	bus = adapter_connect(a, 0);
	CHECK(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
				 "org.freedesktop.DBus", "ReloadConfig", NULL, NULL, "") >= 0);
	CHECK(is_error(call_run(a, ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_error(call_run(a, ask(bus, "Reserve", 15)), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(a->arbiter->n_leases == 0);
}

TEST_WITH(waiting_calls_are_answered_with_shutdown, struct adapter *a)
{
	struct answer answer;
	sd_bus *bus;

	adapter_new(a);
	bus = rig_connect(&a->rig, 0);
	call_send(ask(bus, "Reserve", 15), &answer);
	settle(bus);
	adapter_take_calls(a);
	a->bus = bus_free(a->bus);
	AWAIT(bus, answer.came);
	CHECK(is_error(answer.m, GPUARB_ERROR_SHUTDOWN, ""));
}

TEST_WITH(only_administrators_drain_and_reload, struct adapter *a)
{
	sd_bus *root = adapter_begin(a, 0);
	sd_bus *user;
	sd_bus_message *m;

	user = adapter_connect(a, STRANGER);
	CHECK(is_error(call_run(a, drain(user, "0")), GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_error(call_run(a, call_arbiter(user, "Reload")), GPUARB_ERROR_NOT_PERMITTED,
		       "org.gpuarb.Arbiter1.manage"));
	CHECK(!a->arbiter->gpus[0].draining);

	CHECK(is_fine(call_run(a, call_arbiter(root, "Reload"))));
	CHECK(is_fine(call_run(a, drain(root, "0000:03:00.0"))) && a->arbiter->gpus[0].draining);
	CHECK(is_error(call_run(a, drain(root, "7")), GPUARB_ERROR_NO_SUCH_GPU, "\"7\""));
	m = call_arbiter(root, "Undrain");
	CHECK(sd_bus_message_append(m, "s", "0") >= 0);
	CHECK(is_fine(call_run(a, m)) && !a->arbiter->gpus[0].draining);
}
