/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gpuarb-enforce as it is shipped, on a private bus with something that stands for systemd. */

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "enforce-rig.h"
#include "fake-systemd.h"
#include "rig.h"
#include "scratch.h"

struct stage {
	struct rig bus;
	struct fake_systemd systemd;
	struct helper helper;
	int client;
};

static void stage_start(struct stage *stage, const char *timeout, const char *frozen)
{
	rig_new(&stage->bus);
	CHECK(fake_systemd_start(&stage->systemd));
	helper_listen(&stage->helper);
	helper_froze(&stage->helper, frozen);
	helper_start(&stage->helper, NULL, timeout, -1);
	stage->client = client_connect(&stage->helper);
}

static void stage_end(struct stage *stage)
{
	close(stage->client);
	fake_systemd_stop(&stage->systemd); /* or the helper waits for its answers as it ends */
	helper_stop(&stage->helper);
	rig_done(&stage->bus);
}

static bool asks(struct stage *stage, const char *request, const char *answer)
{
	return client_asks(stage->client, request, -1, answer);
}

static void say(struct stage *stage, const char *request)
{
	CHECK(client_send(stage->client, request, strlen(request), NULL, 0));
}

FIXTURE(struct stage, stage, , stage_end(stage));

/* A freeze needs a process in the unit: tests/daemon/test-daemon-freeze.c has one. To thaw a unit and
 * to freeze it are the same call to systemd but for the name of the method. */
TEST_WITH(units_are_thawed_by_name, struct stage *stage)
{
	stage_start(stage, NULL, "ok.service ok-3.scope");
	CHECK(asks(stage, "thaw ok.service", "ok"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit ok.service"));
	CHECK(asks(stage, "thaw ok-3.scope", "ok"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit ok-3.scope"));
}

TEST_WITH(unit_that_the_helper_did_not_freeze_is_not_thawed, struct stage *stage)
{
	stage_start(stage, NULL, "ok-1.service");
	CHECK(asks(stage, "thaw ok-2.service", "error 1 ok-2.service "));
	CHECK(asks(stage, "thaw ok-1.service", "ok"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit ok-1.service"));
	CHECK(asks(stage, "thaw ok-1.service", "error 1 ")); /* it is thawed already */
}

TEST_WITH(systemd_is_not_asked_about_units_that_are_never_frozen, struct stage *stage)
{
	stage_start(stage, NULL, "ok.service");
	CHECK(asks(stage, "freeze 1 init.scope", "error 1 "));
	CHECK(asks(stage, "freeze 1 user.slice", "error 22 "));
	CHECK(asks(stage, "freeze 1 ok.service", "error 74 ")); /* which process? */
	CHECK(asks(stage, "thaw gpuarbd.service", "error 1 "));
	CHECK(asks(stage, "thaw ok.service", "ok"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit ok.service"));
}

TEST_WITH(answer_of_systemd_is_passed_on, struct stage *stage)
{
	stage_start(stage, "5",
		    "gone.service inactive.service busy.service unable.service denied.service "
		    "interactive.service old.service strange.service");
	CHECK(asks(stage, "thaw gone.service", "error 2 Unit gone.service"));
	CHECK(asks(stage, "thaw inactive.service", "error 3"));
	CHECK(asks(stage, "thaw busy.service", "error 16 Previously requested"));
	CHECK(asks(stage, "thaw unable.service", "error 95"));
	CHECK(asks(stage, "thaw denied.service", "error 13 Permission denied"));
	CHECK(asks(stage, "thaw interactive.service", "error 13 Ask somebody."));
	CHECK(asks(stage, "thaw old.service", "error 95 Unknown method"));
	CHECK(asks(stage, "thaw strange.service", "error 5 a?b?c (org.example.Strange)"));
}

TEST_WITH(a_kill_does_not_wait_for_a_unit_to_freeze, struct stage *stage)
{
	pid_t victim = victim_new();
	int pidfd;

	stage_start(stage, "1", "silent.service");
	pidfd = victim_pidfd(victim);
	helper_uses_kfd(&stage->helper, victim, true);
	say(stage, "thaw silent.service");
	client_sends_kill(stage->client, pidfd);
	CHECK(victim_was_killed(victim)); /* long before the answer to the first */
	close(pidfd);
}

TEST_WITH(silence_ends_with_the_timeout_and_answers_keep_their_order, struct stage *stage)
{
	stage_start(stage, "1", "silent.service ok.service gone.service");
	say(stage, "thaw silent.service");
	say(stage, "thaw ok.service");
	say(stage, "thaw gone.service");
	say(stage, "hello");
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit silent.service"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit ok.service"));
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit gone.service"));
	CHECK(client_hears(stage->client, "error 110"));
	CHECK(client_hears(stage->client, "ok"));
	CHECK(client_hears(stage->client, "error 2 "));
	CHECK(client_hears(stage->client, "error 74 "));
}

TEST_WITH(a_client_that_vanishes_while_a_unit_freezes_makes_room_for_the_next, struct stage *stage)
{
	stage_start(stage, "1", "silent.service");
	for (unsigned i = 0; i < 40; i++)
		say(stage, "thaw silent.service");
	for (unsigned i = 0; i < 40; i++)
		CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit silent.service"));
	close(stage->client);
	stage->client = client_connect(&stage->helper);
	CHECK(asks(stage, "hello", "error 74 "));
}

/* More than it keeps answers for: what is beyond waits in the socket. */
TEST_WITH(many_requests_that_take_their_time_are_all_answered, struct stage *stage)
{
	stage_start(stage, "1", "silent.service ok.service");
	for (unsigned i = 0; i < 80; i++)
		say(stage, i % 2 ? "hello" : "thaw silent.service");
	for (unsigned i = 0; i < 80; i++)
		CHECK(client_hears(stage->client, i % 2 ? "error 74 " : "error 110 "));
}

TEST_WITH(helper_does_not_exit_during_a_request, struct stage *stage)
{
	rig_new(&stage->bus);
	CHECK(fake_systemd_start(&stage->systemd));
	helper_listen(&stage->helper);
	helper_froze(&stage->helper, "silent.service");
	helper_start(&stage->helper, "1", "2", -1);
	stage->client = client_connect(&stage->helper);
	CHECK(asks(stage, "thaw silent.service", "error 110 "));
	close(stage->client); /* while the client is there, so is what thaws its unit */
	stage->client = -1;
	CHECK(helper_wait(&stage->helper) == 0);
}

TEST_WITH(missing_bus_and_missing_or_dying_systemd_are_reported, struct stage *stage)
{
	stage_start(stage, "5", "silent.service ok.service");
	say(stage, "thaw silent.service");
	CHECK(fake_systemd_was_asked(&stage->systemd, "ThawUnit silent.service"));
	fake_systemd_stop(&stage->systemd);
	CHECK(client_hears(stage->client, "error 5 "));
	CHECK(asks(stage, "thaw ok.service", "error 95 "));

	rig_kill_bus(&stage->bus);
	CHECK(asks(stage, "thaw ok.service", "error "));
	CHECK(asks(stage, "thaw ok.service", "error 111 "));
	rig_start_bus(&stage->bus);
	CHECK(fake_systemd_start(&stage->systemd));
	CHECK(asks(stage, "thaw ok.service", "ok"));
}

TEST_WITH(without_an_address_it_is_the_system_bus, struct stage *stage)
{
	rig_new(&stage->bus);
	CHECK(fake_systemd_start(&stage->systemd));
	CHECK(setenv("DBUS_SYSTEM_BUS_ADDRESS", stage->bus.address, 1) == 0);
	CHECK(unsetenv("GPUARB_BUS_ADDRESS") == 0);
	helper_listen(&stage->helper);
	helper_froze(&stage->helper, "ok.service");
	helper_start(&stage->helper, NULL, NULL, -1);
	stage->client = client_connect(&stage->helper);
	CHECK(asks(stage, "thaw ok.service", "ok"));
	CHECK(unsetenv("DBUS_SYSTEM_BUS_ADDRESS") == 0);
}

/* Accepts, and says nothing: not even the hello of a bus comes back. */
TEST(silent_bus_does_not_delay_other_requests)
{
	_cleanup_(helper_stop) struct helper helper;
	int bus, client;
	char address[160];

	helper_listen(&helper);
	snprintf(address, sizeof(address), "unix:path=%s/bus", helper.dir);
	bus = scratch_bind(address + strlen("unix:path="), SOCK_STREAM);
	CHECK(listen(bus, 4) == 0);
	CHECK(setenv("GPUARB_BUS_ADDRESS", address, 1) == 0);
	helper_froze(&helper, "ok.service");
	helper_start(&helper, NULL, "1", -1);
	client = client_connect(&helper);
	CHECK(client_asks(client, "thaw ok.service", -1, "error 110"));
	close(client);
	close(bus);
}
