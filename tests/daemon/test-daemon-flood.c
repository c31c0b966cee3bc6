/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One user floods the shipped daemon with calls, or does not read its answers; others are served. */

#include "check.h"
#include "live.h"

NEEDS(daemon_missing);

#define OTHER 2

/* A bus that stops to read from gpuarbd when this much of it is unread. */
#define BUS(bytes)                                                        \
	"<busconfig><limit name=\"max_incoming_bytes\">" bytes "</limit>" \
	"</busconfig>\n"
#define SMALL_BUS BUS("1000000")
#define TINY_BUS BUS("20000")

struct flood {
	struct rig rig;
	sd_bus *root, *attacker, *other;
};

static void arrive_on(struct flood *flood, const char *bus, const char *config)
{
	rig_new(&flood->rig);
	rig_write(&flood->rig, "extra.conf", bus);
	rig_write(&flood->rig, "gpuarbd.conf", config);
	rig_kill_bus(&flood->rig);
	rig_start_bus(&flood->rig);
	rig_start(&flood->rig, "--simulate=radeon-vii");
	flood->root = rig_connect(&flood->rig, 0);
	flood->attacker = rig_connect(&flood->rig, STRANGER);
	flood->other = rig_connect(&flood->rig, OTHER);
}

static void arrive(struct flood *flood, const char *config)
{
	arrive_on(flood, SMALL_BUS, config);
}

static void depart(struct flood *flood)
{
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

/* dbus-daemon keeps what a client does not read, and tells how much it is; dbus-broker disconnects the
 * client. */
static bool keeps_unread(const struct flood *flood)
{
	const char *name;

	CHECK(sd_bus_get_unique_name(flood->root, &name) >= 0);
	return sd_bus_call_method(flood->root, "org.freedesktop.DBus", "/org/freedesktop/DBus",
				  "org.freedesktop.DBus.Debug.Stats", "GetConnectionStats", NULL,
				  NULL, "s", name) >= 0;
}

static void give_back(sd_bus *bus, const struct live_lease *lease)
{
	CHECK(is_fine(call(release(bus, lease->path))));
	close(lease->holder);
}

/* Root and another user reserve and read. */
static void others_are_served(const struct flood *flood)
{
	struct live_lease lease = reserve(flood->other, 1);

	CHECK(lease_says(flood->root, lease.path, "State", "granted"));
	give_back(flood->other, &lease);
	lease = reserve(flood->root, 1);
	give_back(flood->root, &lease);
}

TEST(connection_that_reads_no_large_answer_stops_no_other_user)
{
	_cleanup_(depart) struct flood flood;

	arrive(&flood, "[daemon]\nmax-unread-per-user = 128K\n");
	for (unsigned i = 0; i < 3000; i++)
		send_unread(ask_all(flood.attacker));
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	others_are_served(&flood);
}

/* The answer has 300 KB, of which the bus takes three. */
TEST(connection_that_reads_no_answer_in_parts_stops_no_other_user)
{
	_cleanup_(depart) struct flood flood;
	struct live_lease last;

	arrive(&flood, "[daemon]\noversubscribe = besteffort\nmax-unread-per-user = 128K\n");
	last = reserve(flood.root, 1); /* the others share all other CUs */
	for (unsigned i = 0; i < 100; i++)
		granted(call(ask_shared(flood.root)));
	give_back(flood.root, &last);
	for (unsigned i = 0; i < 100; i++)
		send_unread(ask_all(flood.attacker));
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	for (unsigned i = 0; i < 30; i++) /* parts of answers are built between these calls */
		others_are_served(&flood);
}

/* sd-bus repeats names of the call in its errors. */
#define PATH_LENGTH 65530 /* sd-bus takes none above 65536 */

static const char *long_path(size_t length)
{
	static char path[PATH_LENGTH + 1];

	memset(path, 'x', length);
	path[0] = '/';
	path[length] = '\0';
	return path;
}

static void send_large(const struct flood *flood, size_t size)
{
	_cleanup_(freep) char *text = malloc(size + 1);
	const char *property = "org.freedesktop.DBus.Properties";

	CHECK(text);
	memset(text, 'x', size);
	text[size] = '\0';
	for (unsigned i = 0; i < 3000000 / size; i++) {
		send_unread(with(call_new(flood->attacker, GPUARB_PATH, property, "Get"), "ss",
				 text, "y"));
		send_unread(with(call_new(flood->attacker, GPUARB_PATH, property, "GetAll"), "s",
				 text));
		send_unread(call_new(flood->attacker, long_path(60000), GPUARB_INTERFACE, "Foo"));
	}
	CHECK(sd_bus_flush(flood->attacker) >= 0);
}

TEST(connection_that_does_not_read_large_errors_stops_no_other_user)
{
	static const size_t sizes[] = { 300000, 60000 };
	struct flood flood;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		arrive(&flood, "[daemon]\nmax-unread-per-user = 128K\n");
		send_large(&flood, sizes[i]);
		others_are_served(&flood);
		depart(&flood);
	}
}

TEST(call_of_more_than_64_kib_is_refused_by_its_size)
{
	static char text[65536];
	_cleanup_(depart) struct flood flood;

	arrive(&flood, "");
	memset(text, 'x', sizeof(text) - 1);
	CHECK(is_error(call(with(call_arbiter(flood.root, "Drain"), "sb", text, true)),
		       SD_BUS_ERROR_LIMITS_EXCEEDED, ""));
	CHECK(is_error(call(call_new(flood.other, long_path(PATH_LENGTH), GPUARB_INTERFACE, "Foo")),
		       SD_BUS_ERROR_LIMITS_EXCEEDED, ""));
	CHECK(is_error(call(call_new(flood.other, long_path(60000), GPUARB_INTERFACE, "Foo")),
		       SD_BUS_ERROR_UNKNOWN_OBJECT, ""));
}

/* dbus-daemon lets 64 fds of a connection be on their way. The first answers fill the socket. */
TEST(connection_that_takes_no_holder_stops_no_other_user)
{
	_cleanup_(depart) struct flood flood;
	char token[8];

	arrive(&flood, "");
	for (unsigned i = 0; i < 500; i++)
		send_unread(ask_all(flood.attacker));
	for (unsigned i = 0; i < 100; i++) {
		snprintf(token, sizeof(token), "%u", i % 5);
		send_unread(ask_token(flood.attacker, 1, token));
	}
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	others_are_served(&flood);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const char *name, *before, *after;
	bool *owned = userdata;

	CHECK(sd_bus_message_read(m, "sss", &name, &before, &after) >= 0);
	*owned = after[0] != '\0';
	return 0;
}

static bool sleeps(pid_t pid)
{
	char path[64], state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	fclose(file);
	return state == 'S';
}

/* gpuarbd sends a signal, and then the answer; the bus reads both at once. */
static sd_bus_message *reload_beside_slow_bus(const struct flood *flood)
{
	struct answer answer;

	rig_write(&flood->rig, "log", "");
	rig_pause(flood->rig.daemon);
	call_send(call_arbiter(flood->root, "Reload"), &answer);
	settle(flood->root);
	rig_pause(flood->rig.bus);
	rig_go_on(flood->rig.daemon);
	AWAIT_STATE(log_says(&flood->rig, "configuration reloaded") && sleeps(flood->rig.daemon));
	rig_go_on(flood->rig.bus);
	AWAIT(flood->root, answer.came);
	return answer.m;
}

/* Of some size, so that few signals fill a socket. */
static void write_tenants(const struct flood *flood)
{
	char text[4096];
	size_t n = 0;

	for (unsigned i = 0; i < 40; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "[tenant %030u]\nmatch-user = %u\n", i, 1000 + i);
	rig_write(&flood->rig, "tenants.d/many.conf", text);
}

/* The bus counts signals as answers, and no longer reads what gpuarbd writes into its socket. What it has read
 * by then it keeps: here the answer to the last call. */
TEST(daemon_whose_signals_nobody_reads_connects_again)
{
	_cleanup_(depart) struct flood flood;
	sd_bus_message *m;
	bool owned = false;

	arrive_on(&flood, TINY_BUS, "");
	if (!keeps_unread(&flood))
		SKIP("this bus disconnects a client that does not read");
	rig_stop(&flood.rig);
	log_begin(&flood.rig);
	write_tenants(&flood);
	rig_start(&flood.rig, "--simulate=radeon-vii");
	CHECK(sd_bus_match_signal(flood.attacker, NULL, GPUARB_BUS_NAME, NULL, NULL, NULL, NULL,
				  NULL) >= 0);
	CHECK(sd_bus_add_match(flood.root, NULL,
			       "type='signal',sender='org.freedesktop.DBus',"
			       "member='NameOwnerChanged',arg0='" GPUARB_BUS_NAME "'",
			       on_owner, &owned) >= 0);
	/* Calls of a new connection wait until its user is known. */
	CHECK(is_fine(call(call_arbiter(flood.root, "Reload"))));
	while (!sd_bus_message_is_method_error(m = reload_beside_slow_bus(&flood), NULL))
		sd_bus_message_unref(m);
	CHECK(is_error(m, SD_BUS_ERROR_NO_REPLY, "disconnected"));
	AWAIT(flood.root, owned);
	others_are_served(&flood);
	log_end(&flood.rig);
}

/* ---- what each user has --------------------------------------------------------------------- */

TEST(limits_show_what_a_user_leaves_unread_and_pending)
{
	_cleanup_(depart) struct flood flood;
	struct row limits;

	arrive(&flood, "[daemon]\nmax-unread-per-user = 128K\n");
	if (!keeps_unread(&flood))
		SKIP("this bus disconnects a client that does not read");
	reserve(flood.other, 1);
	for (unsigned i = 0; i < 1000; i++)
		send_unread(ask_all(flood.attacker));
	settle(flood.attacker);
	do /* the first answers fill the socket */
		limits = user_limits(flood.root, STRANGER);
	while (row_number(&limits, "unread-bytes") < 128 * 1024 || row_has(&limits, " pending=0 "));
	CHECK(row_has(&limits, " leases=0 "));
	limits = user_limits(flood.root, OTHER);
	CHECK(row_has(&limits, " leases=1 ") && row_has(&limits, " pending=0 "));
	CHECK(*user_limits(flood.other, OTHER).text && !*user_limits(flood.other, STRANGER).text);
}

/* Of 1000 calls of one user 10 are answered in a second. */
TEST(calls_of_a_user_are_answered_while_those_of_another_wait)
{
	_cleanup_(depart) struct flood flood;

	arrive(&flood, "[daemon]\nmax-calls-per-user = 10\n");
	settle(flood.other);
	for (unsigned i = 0; i < 1000; i++)
		send_unread(call_arbiter(flood.attacker, "ReadLimits"));
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	while (user_limit(flood.root, STRANGER, "pending") < 500)
		;
	CHECK(is_fine(call(call_arbiter(flood.other, "ReadLimits"))));
	CHECK(user_limit(flood.root, OTHER, "pending") == 0);
	CHECK(user_limit(flood.root, STRANGER, "pending") > 0);
}

/* Of 1000 calls 16 may wait. Whoever is refused at once would call again at once. */
TEST(refusals_of_a_user_wait_for_their_turn_while_another_is_served)
{
	_cleanup_(depart) struct flood flood;

	arrive(&flood, "[daemon]\nmax-calls-per-user = 10\nmax-pending-per-user = 16\n");
	settle(flood.other);
	/* Calls of a new connection wait until its user is known. */
	CHECK(is_fine(call(call_arbiter(flood.attacker, "ReadLimits"))));
	for (unsigned i = 0; i < 1000; i++)
		send_unread(call_arbiter(flood.attacker, "ReadLimits"));
	CHECK(sd_bus_flush(flood.attacker) >= 0);
	while (user_limit(flood.root, STRANGER, "calls-refused") < 500)
		;
	CHECK(user_limit(flood.root, STRANGER, "pending") >= 400);
	CHECK(is_fine(call(call_arbiter(flood.other, "ReadLimits"))));
}

#define THOUSAND 1000U

static struct answer answers[THOUSAND];

static void send_thousand(sd_bus *bus)
{
	/* Calls of a new connection wait until its user is known. */
	CHECK(is_fine(call(call_arbiter(bus, "ReadLimits"))));
	for (unsigned i = 0; i < THOUSAND; i++)
		call_send(call_arbiter(bus, "ReadLimits"), &answers[i]);
	CHECK(sd_bus_flush(bus) >= 0);
}

static void await_thousand(sd_bus *bus)
{
	for (unsigned i = 0; i < THOUSAND; i++)
		AWAIT(bus, answers[i].came);
}

/* 16 calls and 512 refusals may wait. */
TEST(each_of_a_thousand_calls_is_answered_or_refused)
{
	_cleanup_(depart) struct flood flood;
	unsigned served, refused;

	arrive(&flood, "[daemon]\nmax-calls-per-user = 500\nmax-pending-per-user = 16\n");
	send_thousand(flood.attacker);
	await_thousand(flood.attacker);
	served = count_answers(answers, THOUSAND, NULL);
	refused = count_answers(answers, THOUSAND, SD_BUS_ERROR_LIMITS_EXCEEDED);
	CHECK(served > 0 && refused > 0 && served + refused == THOUSAND);
	drop_answers(answers, THOUSAND);
}

/* The bus answers those that gpuarbd has not read when it stops. */
TEST(calls_and_refusals_that_wait_are_answered_when_the_daemon_stops)
{
	_cleanup_(depart) struct flood flood;

	arrive(&flood, "[daemon]\nmax-calls-per-user = 10\nmax-pending-per-user = 16\n");
	send_thousand(flood.attacker);
	while (user_limit(flood.root, STRANGER, "calls-refused") < 900)
		;
	rig_stop(&flood.rig);
	await_thousand(flood.attacker);
	CHECK(count_answers(answers, THOUSAND, GPUARB_ERROR_SHUTDOWN) > 0);
	CHECK(count_answers(answers, THOUSAND, SD_BUS_ERROR_LIMITS_EXCEEDED) >= 900);
	drop_answers(answers, THOUSAND);
}
