/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bus adapter: reserve and plan, objects, the bus itself. */

#include <fcntl.h>
#include <signal.h>

#include "check.h"
#include "adapter.h"
#include "core/ledger/lease.h"
#include "core/ledger/ledger.h"

NEEDS(bus_missing);

FIXTURE(struct adapter, a, , adapter_done(a));

TEST_WITH(reserve_answers_with_lease_holder_state_and_partitions, struct adapter *a)
{
	const char *path, *state;
	sd_bus *bus = adapter_begin(a, STRANGER);
	sd_bus_message *m;
	int holder;

	m = call_run(a, ask(bus, "Reserve", 15));
	CHECK(sd_bus_message_has_signature(m, "ohsaa{sv}"));
	CHECK(sd_bus_message_read(m, "ohs", &path, &holder, &state) >= 0);
	CHECK(strcmp(path, GPUARB_PATH_LEASE "/1") == 0 && strcmp(state, "granted") == 0);
	CHECK(fcntl(holder, F_GETFD) == FD_CLOEXEC);
	sd_bus_message_unref(m);
}

static int count_key(sd_bus_message *, void *userdata, sd_bus_error *)
{
	++*(unsigned *)userdata;
	return 0;
}

TEST_WITH(signals_come_before_the_answer, struct adapter *a)
{
	unsigned added = 0, removed = 0, changed = 0;
	sd_bus *bus = adapter_begin(a, 0);

	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, GPUARB_PATH,
				  "org.freedesktop.DBus.ObjectManager", "InterfacesAdded",
				  count_key, &added) >= 0);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, GPUARB_PATH,
				  "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
				  count_key, &removed) >= 0);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, NULL,
				  "org.freedesktop.DBus.Properties", "PropertiesChanged", count_key,
				  &changed) >= 0);
	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))));
	CHECK(added == 1 && changed == 0);
	CHECK(is_fine(call_run(a, call_lease(bus, GPUARB_PATH_LEASE "/1", "Release"))));
	CHECK(removed == 1 && changed == 1);
	CHECK(is_fine(call_run(a, drain(bus, "0"))));
	CHECK(changed == 2);
	CHECK(is_fine(call_run(a, call_arbiter(bus, "Reload"))));
	CHECK(changed == 3);
}

/* Counts the properties of a signal that the snapshots of clients lack otherwise. */
static int count_late_keys(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const char *key;

	CHECK(sd_bus_message_skip(m, "s") >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		CHECK(sd_bus_message_read(m, "s", &key) >= 0);
		CHECK(sd_bus_message_skip(m, "v") >= 0 && sd_bus_message_exit_container(m) >= 0);
		*(unsigned *)userdata += strcmp(key, "CusMin") == 0 ||
					 strcmp(key, "FloorExcess") == 0 ||
					 strcmp(key, "Calibrated") == 0;
	}
	return 0;
}

TEST_WITH(a_signal_has_each_property_that_can_change, struct adapter *a)
{
	unsigned keys = 0;
	sd_bus *bus;

	adapter_new(a);
	bus = adapter_connect(a, 0);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, NULL,
				  "org.freedesktop.DBus.Properties", "PropertiesChanged",
				  count_late_keys, &keys) >= 0);
	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))));
	CHECK(is_fine(call_run(a, call_lease(bus, GPUARB_PATH_LEASE "/1", "Release"))));
	CHECK(keys == 1);
	CHECK(is_fine(call_run(a, drain(bus, "0"))));
	CHECK(keys == 3);
	sd_bus_flush_close_unref(bus);
}

TEST_WITH(a_lease_added_and_removed_in_one_update_sends_no_signal, struct adapter *a)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	unsigned told = 0;
	sd_bus *bus = adapter_begin(a, 0);

	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, GPUARB_PATH, NULL, NULL, count_key,
				  &told) >= 0);
	CHECK(lease_new(&lease) == 0);
	bus_tell_lease(a->bus, lease, TOUCH_ADDED | TOUCH_REMOVED);
	CHECK(is_fine(call_run(a, drain(bus, "1"))) && told == 0);
}

TEST_WITH(a_refusal_names_the_gpu, struct adapter *a)
{
	sd_bus *bus = adapter_begin(a, 0);
	sd_bus_message *m;

	m = call_run(a, ask(bus, "Reserve", 5000));
	CHECK(sd_bus_message_is_method_error(m, GPUARB_ERROR_NEVER_FITS));
	CHECK(sd_bus_message_has_signature(m, "saa{sv}"));
	sd_bus_message_unref(m);

	CHECK(is_error(call_run(a, ask(bus, "Reserve", 0)), GPUARB_ERROR_INVALID_REQUEST,
		       "want 1: cus is 0"));
	a->fail = -EMFILE;
	m = call_run(a, ask(bus, "Reserve", 15));
	CHECK(sd_bus_message_is_method_error(m, NULL) && sd_bus_message_get_errno(m) == EMFILE);
	sd_bus_message_unref(m);
}

/* The result and the numbers of partitions and refusals; frees the answer. */
static bool planned(sd_bus_message *m, const char *result, bool partitions, bool refusals)
{
	const char *said;
	bool ok;

	CHECK(sd_bus_message_has_signature(m, "saa{sv}aa{sv}"));
	CHECK(sd_bus_message_read(m, "s", &said) >= 0);
	ok = strcmp(said, result) == 0;
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") >= 0);
	ok = ok && (sd_bus_message_at_end(m, 0) == 0) == partitions;
	while (sd_bus_message_at_end(m, 0) == 0)
		CHECK(sd_bus_message_skip(m, "a{sv}") >= 0);
	CHECK(sd_bus_message_exit_container(m) >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") >= 0);
	ok = ok && (sd_bus_message_at_end(m, 0) == 0) == refusals;
	sd_bus_message_unref(m);
	return ok;
}

/* For a user in these groups, by a connection of another one. */
static sd_bus_message *plan_as(sd_bus *bus, uint32_t uid, size_t n_groups)
{
	static const uint32_t groups[CALLER_GROUPS + 1];
	sd_bus_message *m = ask(bus, "PlanAs", 15);

	CHECK(sd_bus_message_append(m, "u", uid) >= 0);
	CHECK(sd_bus_message_append_array(m, 'u', groups, n_groups * sizeof(groups[0])) >= 0);
	return m;
}

TEST_WITH(plan_for_another_user_is_checked_and_for_administrators, struct adapter *a)
{
	sd_bus *bus = adapter_begin(a, 0);
	sd_bus *stranger;

	stranger = adapter_connect(a, STRANGER);
	CHECK(planned(call_run(a, plan_as(bus, 4711, 0)), "granted", true, false));
	CHECK(planned(call_run(a, plan_as(bus, 4711, CALLER_GROUPS)), "granted", true, false));
	CHECK(is_error(call_run(a, plan_as(bus, 4711, CALLER_GROUPS + 1)),
		       GPUARB_ERROR_INVALID_REQUEST, "1024"));
	CHECK(is_error(call_run(a, plan_as(bus, UINT32_MAX, 0)), GPUARB_ERROR_INVALID_REQUEST,
		       "user"));
	CHECK(is_error(call_run(a, plan_as(stranger, STRANGER, 0)), GPUARB_ERROR_NOT_PERMITTED,
		       "administrator"));
}

TEST_WITH(plan_answers_refused_without_an_error_and_changes_nothing, struct adapter *a)
{
	sd_bus *bus = adapter_begin(a, 0);
	sd_bus_message *m;

	CHECK(planned(call_run(a, ask(bus, "Plan", 15)), "granted", true, false));
	CHECK(planned(call_run(a, ask(bus, "Plan", 5000)), "refused", false, true));
	CHECK(a->arbiter->n_leases == 0);

	m = call_arbiter(bus, "Plan");
	CHECK(sd_bus_message_append(m, "aa{sv}a{sv}", 1, 1, "cus", "u", 15, 1, "class", "s",
				    "realtime") >= 0);
	CHECK(planned(call_run(a, m), "refused", false, true)); /* NotPermitted */

	CHECK(is_error(call_run(a, ask(bus, "Plan", 0)), GPUARB_ERROR_INVALID_REQUEST, "cus"));
	m = call_arbiter(bus, "Plan");
	CHECK(sd_bus_message_append(m, "aa{sv}a{sv}", 1, 2, "gpu", "s", "9", "cus", "u", 15, 0) >=
	      0);
	CHECK(is_error(call_run(a, m), GPUARB_ERROR_NO_SUCH_GPU, "9"));
}

TEST_WITH(a_plan_above_max_leases_has_one_refusal_without_a_gpu, struct adapter *a)
{
	const char *key, *gpu, *reason, *hint;
	uint64_t asked, room;
	sd_bus_message *m;
	sd_bus *bus;
	int retry;

	adapter_new(a);
	a->arbiter->settings->tenants[0].max_leases = (struct limit){ LIMIT_COUNT, 1 };
	bus = adapter_connect(a, STRANGER);
	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))));
	m = call_run(a, ask(bus, "Plan", 15));
	CHECK(sd_bus_message_skip(m, "saa{sv}") >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") > 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
	CHECK(sd_bus_message_read(m, "{sv}{sv}{sv}{sv}{sv}{sv}", &key, "s", &gpu, &key, "s",
				  &reason, &key, "t", &asked, &key, "t", &room, &key, "s", &hint,
				  &key, "b", &retry) >= 0);
	CHECK(strcmp(gpu, "") == 0 && strcmp(reason, "quota") == 0 && strstr(hint, "max-leases"));
	sd_bus_message_unref(m);
}

/* Stands before the value of a key that the dictionary must have. */
static void enter_key(sd_bus_message *m, const char *wanted)
{
	const char *key;

	for (;;) {
		CHECK(sd_bus_message_enter_container(m, 'e', "sv") > 0);
		CHECK(sd_bus_message_read(m, "s", &key) >= 0);
		if (strcmp(key, wanted) == 0)
			return;
		CHECK(sd_bus_message_skip(m, "v") >= 0 && sd_bus_message_exit_container(m) >= 0);
	}
}

TEST_WITH(a_refused_plan_lists_the_leases_whose_end_would_help, struct adapter *a)
{
	const char *key, *result;
	const uint64_t *ids;
	sd_bus *bus = adapter_begin(a, 0);
	sd_bus_message *m;
	size_t size;
	int exact;

	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))));
	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 30))));
	m = call_run(a, ask(bus, "Plan", 45)); /* 15 are free, and 30 with the end of lease 1 */
	CHECK(sd_bus_message_read(m, "s", &result) >= 0 && strcmp(result, "refused") == 0);
	CHECK(sd_bus_message_skip(m, "aa{sv}") >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") > 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
	enter_key(m, "end");
	CHECK(sd_bus_message_enter_container(m, 'v', "at") > 0);
	CHECK(sd_bus_message_read_array(m, 't', (const void **)&ids, &size) >= 0);
	CHECK(size == sizeof(*ids) && ids[0] == 2);
	CHECK(sd_bus_message_exit_container(m) >= 0 && sd_bus_message_exit_container(m) >= 0);
	CHECK(sd_bus_message_read(m, "{sv}", &key, "b", &exact) >= 0 && exact);
	CHECK(strcmp(key, "end-exact") == 0);
	sd_bus_message_unref(m);
}

/* ---- objects ---- */

TEST_WITH(unknown_gpus_and_leases_have_errors_of_their_own, struct adapter *a)
{
	static const char *const no_lease[] = { "/7", "/007", "/x", "/99999999999999999999",
						"/1/2" };
	sd_bus *bus = adapter_begin(a, 0);

	for (size_t i = 0; i < ARRAY_SIZE(no_lease); i++) {
		char path[128];

		snprintf(path, sizeof(path), GPUARB_PATH_LEASE "%s", no_lease[i]);
		CHECK(is_error(call_run(a, call_lease(bus, path, "Release")),
			       GPUARB_ERROR_NO_SUCH_LEASE, path));
		CHECK(is_error(call_run(a, get(bus, path, GPUARB_INTERFACE_LEASE, "State")),
			       GPUARB_ERROR_NO_SUCH_LEASE, path));
		CHECK(is_error(call_run(a, call_new(bus, path, GPUARB_INTERFACE, "Foo")),
			       GPUARB_ERROR_NO_SUCH_LEASE, path));
		CHECK(is_error(call_run(a, call_lease(bus, path, "Foo")),
			       GPUARB_ERROR_NO_SUCH_LEASE, path));
		CHECK(is_error(
			call_run(a, call_new(bus, path, "org.freedesktop.DBus.Introspectable",
					     "Introspect")),
			GPUARB_ERROR_NO_SUCH_LEASE, path));
	}
	CHECK(is_error(call_run(a, get(bus, GPUARB_PATH_GPU "/2", GPUARB_INTERFACE_GPU, "Name")),
		       GPUARB_ERROR_NO_SUCH_GPU, ""));
	CHECK(is_error(call_run(a, call_lease(bus, GPUARB_PATH_GPU "/9999999999999", "Release")),
		       GPUARB_ERROR_NO_SUCH_GPU, ""));
	CHECK(is_error(call_run(a, call_lease(bus, GPUARB_PATH_GPU "/0", "Release")),
		       SD_BUS_ERROR_UNKNOWN_METHOD, ""));
	CHECK(is_error(call_run(a, call_lease(bus, GPUARB_PATH_LEASE, "Release")),
		       SD_BUS_ERROR_UNKNOWN_METHOD, ""));
	CHECK(is_error(call_run(a, get(bus, GPUARB_PATH_GPU, GPUARB_INTERFACE_GPU, "Name")),
		       SD_BUS_ERROR_UNKNOWN_PROPERTY, ""));
}

TEST_WITH(all_objects_are_managed_with_all_their_properties, struct adapter *a)
{
	char text[65536] = "";
	sd_bus *bus = adapter_begin(a, 0);
	sd_bus_message *m;
	FILE *file;

	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))));
	a->arbiter->gpus[1].observed.n_processes = 1;
	a->arbiter->gpus[1].observed.processes[0] = (struct unmanaged_process){
		.pid = 42, .uid = 7, .command = "caf\xc3", .queues = 3
	};
	m = call_run(a, call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
				 "GetManagedObjects"));
	CHECK(sd_bus_message_has_signature(m, "a{oa{sa{sv}}}"));
	file = fmemopen(text, sizeof(text), "w");
	CHECK(file && sd_bus_message_dump(m, file, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY) >= 0);
	fclose(file);
	sd_bus_message_unref(m);
	CHECK(strstr(text, GPUARB_PATH_GPU "/0") && strstr(text, GPUARB_PATH_GPU "/1"));
	CHECK(!strstr(text, GPUARB_PATH_GPU "/2") && strstr(text, GPUARB_PATH_LEASE "/1"));
	CHECK(strstr(text, "\"gfx906\"") && strstr(text, "\"Radeon VII\""));
	CHECK(strstr(text, "\"caf?\"")); /* or the bus would have hung up */
	CHECK(strstr(text, "\"cu-mask\"") && strstr(text, "\"memory-bandwidth\""));
	CHECK(is_fine(call_run(a, get(bus, GPUARB_PATH, GPUARB_INTERFACE, "Version"))));
	CHECK(is_fine(call_run(a, get(bus, GPUARB_PATH, GPUARB_INTERFACE, "Tenants"))));
}

TEST_WITH(each_call_refreshes_the_hardware_once, struct adapter *a)
{
	sd_bus *bus = adapter_begin(a, 0);

	CHECK(is_fine(call_run(a, ask(bus, "Reserve", 15))) && a->refreshed == 1);
	CHECK(is_fine(
		call_run(a, get(bus, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU, "CusFree"))));
	CHECK(a->refreshed == 2);
	sd_bus_message_unref(call_run(
		a, call_new(bus, "/", "org.freedesktop.DBus.Introspectable", "Introspect")));
	CHECK(a->refreshed == 2);
}

TEST_WITH(only_methods_of_the_interface_decide, struct adapter *a)
{
	sd_bus *bus = adapter_begin(a, 0);

	CHECK(is_fine(
		call_run(a, get(bus, GPUARB_PATH_GPU "/0", GPUARB_INTERFACE_GPU, "CusFree"))));
	CHECK(is_fine(call_run(a, call_new(bus, GPUARB_PATH, "org.freedesktop.DBus.ObjectManager",
					   "GetManagedObjects"))));
	CHECK(a->decided == 0);
	CHECK(is_fine(call_run(a, ask(bus, "Plan", 15))) && a->decided == 1);
}

TEST_WITH(users_whose_processes_are_read_late_are_shown, struct adapter *a)
{
	sd_bus_message *m;
	uint32_t uid[2], n[2];
	sd_bus *bus;

	adapter_new(a);
	a->late[0] = (struct late_user){ 1000, 7 };
	a->late[1] = (struct late_user){ (uid_t)-1, 4000 };
	a->n_late = 2;
	bus = adapter_connect(a, 0);
	m = call_run(a, get(bus, GPUARB_PATH, GPUARB_INTERFACE, "LateProcesses"));
	CHECK(sd_bus_message_read(m, "v", "a{uu}", 2, &uid[0], &n[0], &uid[1], &n[1]) >= 0);
	CHECK(uid[0] == 1000 && n[0] == 7 && uid[1] == UINT32_MAX && n[1] == 4000);
	sd_bus_message_unref(m);
}

/* ---- before the first read of hardware queue descriptors ---- */

#define CLIENTS 5U
#define CALLS 64U /* of each client but the last: 256 calls of a user wait at most */

static sd_bus_message *plan_of_class(sd_bus *bus, const char *class)
{
	return with_request(call_arbiter(bus, "Plan"), "cus=15; class=%s", class);
}

TEST_WITH(a_request_that_cannot_wait_for_the_descriptors_is_refused, struct adapter *a)
{
	static struct answer answers[CLIENTS - 1][CALLS];
	sd_bus *clients[CLIENTS], *last, *other = NULL;
	struct answer of_other;

	adapter_new(a);
	for (size_t i = 0; i < CLIENTS; i++)
		clients[i] = adapter_connect(a, 0);
	last = clients[CLIENTS - 1];
	a->awaits_masks = true;
	for (size_t i = 0; i < CLIENTS - 1; i++) {
		for (size_t k = 0; k < CALLS; k++)
			call_send(plan_of_class(clients[i], "guaranteed"), &answers[i][k]);
		CHECK(is_fine(call_run(a, plan_of_class(clients[i], "besteffort"))));
	}
	CHECK(is_error(call_run(a, plan_of_class(last, "guaranteed")), SD_BUS_ERROR_NO_MEMORY,
		       "descriptors"));
	CHECK(is_fine(call_run(a, plan_of_class(last, "besteffort"))));
	if (getuid() == 0) { /* the calls of one user take the room of no other user */
		other = adapter_connect(a, 2);
		call_send(plan_of_class(other, "guaranteed"), &of_other);
		CHECK(is_fine(call_run(a, plan_of_class(other, "besteffort"))));
		CHECK(!of_other.came);
	}
	for (size_t i = 0; i < (CLIENTS - 1) * CALLS; i++)
		CHECK(!answers[i / CALLS][i % CALLS].came);
	a->awaits_masks = false;
	bus_observed(a->bus);
	for (size_t i = 0; i < (CLIENTS - 1) * CALLS; i++) {
		adapter_run(a, &answers[i / CALLS][i % CALLS].came);
		CHECK(is_fine(answers[i / CALLS][i % CALLS].m));
	}
	if (other) {
		adapter_run(a, &of_other.came);
		CHECK(is_fine(of_other.m));
		leave(other);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		leave(clients[i]);
}

/* ---- the bus ---- */

TEST_WITH(the_name_has_one_owner, struct adapter *a)
{
	struct bus *second;

	adapter_new(a);
	CHECK(bus_new(a->event, a->rig.address, a->arbiter, &adapter_host, &adapter_events, a,
		      &second) == 0);
	CHECK(bus_own_name(second) == -EEXIST);
	bus_free(second);
}

TEST_WITH(no_address_means_the_system_bus, struct adapter *a)
{
	struct bus *second;

	adapter_new(a);
	CHECK(setenv("DBUS_SYSTEM_BUS_ADDRESS", a->rig.address, 1) == 0);
	CHECK(bus_new(a->event, NULL, a->arbiter, &adapter_host, &adapter_events, a, &second) == 0);
	CHECK(bus_own_name(second) == -EEXIST); /* so it is this one */
	bus_free(second);
}

TEST(a_bus_that_does_not_exist_is_an_error)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	struct bus *bus = NULL;

	CHECK(sd_event_new(&event) >= 0);
	CHECK(bus_new(event, "unix:path=/nonexistent/bus", NULL, &adapter_host, &adapter_events,
		      NULL, &bus) < 0);
	CHECK(bus_new(event, "nonsense", NULL, &adapter_host, &adapter_events, NULL, &bus) < 0);
	CHECK(!bus);
}

TEST_WITH(a_lost_connection_is_reported_to_the_daemon, struct adapter *a)
{
	adapter_new(a);
	rig_signal_bus(&a->rig, SIGKILL);
	adapter_run(a, &a->disconnected);
}
