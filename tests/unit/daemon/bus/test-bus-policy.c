/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The installed bus policy, on a bus that denies by default, as system buses do. */

#include <errno.h>

#include "check.h"
#include "adapter.h"

NEEDS(bus_missing);

#define SERVICE "daemon" /* stands for the service's user, uid 1 */
#define OTHER 2          /* "bin" */

static const char forbidding[] = "<busconfig>\n"
				 "  <policy context=\"default\">\n"
				 "    <deny own=\"*\"/>\n"
				 "    <deny send_type=\"method_call\"/>\n"
				 "    <allow send_destination=\"org.freedesktop.DBus\"/>\n"
				 "  </policy>\n"
				 "  <include>%s/policy.conf</include>\n"
				 "</busconfig>\n";

/* The shipped file with another user instead of the user of the service. */
static void write_policy(const struct rig *rig)
{
	static const char shipped[] = "user=\"gpuarb\"", here[] = "user=\"" SERVICE "\"";
	char path[512], text[8192], *at;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/dbus/org.gpuarb.Arbiter1.conf",
		 getenv("GPUARB_SOURCE_ROOT"));
	file = fopen(path, "re");
	CHECK(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	CHECK(n > 0 && feof(file));
	fclose(file);
	text[n] = '\0';
	at = strstr(text, shipped);
	CHECK(at);
	_Static_assert(sizeof(here) == sizeof(shipped), "it is replaced in its place");
	memcpy(at, here, sizeof(here) - 1);
	rig_write(rig, "policy.conf", text);
}

static void arrive(struct rig *rig)
{
	char text[sizeof(forbidding) + 64];

	rig_new(rig);
	write_policy(rig);
	snprintf(text, sizeof(text), forbidding, rig->dir);
	rig_write(rig, "extra.conf", text);
	rig_kill_bus(rig);
	rig_start_bus(rig);
}

/* The user that requested the name, and the outcome. */
static int take_name(const struct rig *rig, uid_t uid, sd_bus **ret)
{
	*ret = rig_connect(rig, uid);
	return sd_bus_request_name(*ret, GPUARB_BUS_NAME, 0);
}

static int count(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	unsigned *calls = userdata;

	*calls += sd_bus_message_is_method_call(m, NULL, NULL) > 0;
	return 0;
}

static void process_all(sd_bus *bus)
{
	while (sd_bus_process(bus, NULL) > 0)
		continue;
}

/* A call of the client, which the service answers. */
static sd_bus_message *converse(sd_bus *client, sd_bus *service, const char *interface,
				const char *member)
{
	struct answer answer;

	call_send(call_new(client, GPUARB_PATH, interface, member), &answer);
	while (!answer.came) {
		process_all(service);
		process_all(client);
	}
	return answer.m;
}

FIXTURE(struct rig, rig, arrive(rig), rig_done(rig));

TEST_WITH(only_the_user_of_the_service_may_own_the_name, struct rig *rig)
{
	sd_bus *service, *root, *other;

	CHECK(take_name(rig, 0, &root) == -EACCES && take_name(rig, OTHER, &other) == -EACCES);
	CHECK(take_name(rig, 1, &service) >= 0);
	CHECK(sd_bus_request_name(service, GPUARB_BUS_NAME "x", 0) == -EACCES);
	CHECK(sd_bus_request_name(other, GPUARB_BUS_NAME, SD_BUS_NAME_REPLACE_EXISTING) == -EACCES);
	leave(service);
	leave(root);
	leave(other);
}

TEST_WITH(every_user_may_call_every_method, struct rig *rig)
{
	sd_bus *service, *other, *third;
	sd_bus_message *denied;
	const char *name;

	CHECK(take_name(rig, 1, &service) >= 0);
	other = rig_connect(rig, OTHER);
	CHECK(is_fine(converse(other, service, "org.freedesktop.DBus.Peer", "Ping")));
	CHECK(is_error(converse(other, service, GPUARB_INTERFACE, "Drain"),
		       SD_BUS_ERROR_UNKNOWN_OBJECT, "")); /* it came there */

	/* This bus does deny by default. */
	third = rig_connect(rig, 0);
	CHECK(sd_bus_get_unique_name(third, &name) >= 0);
	CHECK(sd_bus_call_method(other, name, "/", "org.freedesktop.DBus.Peer", "Ping", NULL,
				 &denied, "") == -EACCES);
	leave(service);
}

static int count_signals(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	unsigned *signals = userdata;

	*signals += sd_bus_message_is_signal(m, GPUARB_INTERFACE, "Flood") > 0;
	return 0;
}

TEST_WITH(no_user_can_send_signals_to_the_service, struct rig *rig)
{
	sd_bus *service, *other;
	unsigned signals = 0;

	CHECK(take_name(rig, 1, &service) >= 0);
	CHECK(sd_bus_add_filter(service, NULL, count_signals, &signals) >= 0);
	other = rig_connect(rig, OTHER);
	for (unsigned i = 0; i < 2; i++) { /* to the service, and to all who listen */
		sd_bus_message *m;

		CHECK(sd_bus_message_new_signal(other, &m, GPUARB_PATH, GPUARB_INTERFACE,
						"Flood") >= 0);
		CHECK(i > 0 || sd_bus_message_set_destination(m, GPUARB_BUS_NAME) >= 0);
		CHECK(sd_bus_match_signal(service, NULL, NULL, NULL, GPUARB_INTERFACE, "Flood",
					  NULL, NULL) >= 0);
		CHECK(sd_bus_send(other, m, NULL) >= 0);
		sd_bus_message_unref(m);
	}
	CHECK(is_fine(converse(other, service, "org.freedesktop.DBus.Peer", "Ping")));
	CHECK(signals == 0);
	leave(service);
}

TEST_WITH(no_user_can_listen_to_calls_of_others, struct rig *rig)
{
	sd_bus *service, *other, *root;
	unsigned calls = 0;

	CHECK(take_name(rig, 1, &service) >= 0);
	other = rig_connect(rig, OTHER);
	CHECK(sd_bus_add_filter(other, NULL, count, &calls) >= 0);
	/* A bus may refuse the match, or accept it and apply its policy to every message. */
	sd_bus_call_method(other, "org.freedesktop.DBus", "/org/freedesktop/DBus",
			   "org.freedesktop.DBus", "AddMatch", NULL, NULL, "s",
			   "eavesdrop='true',type='method_call'");
	CHECK(sd_bus_call_method(other, "org.freedesktop.DBus", "/org/freedesktop/DBus",
				 "org.freedesktop.DBus.Monitoring", "BecomeMonitor", NULL, NULL,
				 "asu", 0, 0) == -EACCES);
	root = rig_connect(rig, 0);
	CHECK(is_fine(converse(root, service, "org.freedesktop.DBus.Peer", "Ping")));
	settle(other);
	process_all(other);
	CHECK(calls == 0);
	leave(service);
}
