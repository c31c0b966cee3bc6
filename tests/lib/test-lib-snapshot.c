/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Snapshots, watches and plans, with the answers of a fake daemon. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"
#include "libgpuarb/connection/connection.h"
#include "rig.h"

NEEDS(rig_bus_missing);

static void open_object(sd_bus_message *m, const char *path, const char *interface)
{
	CHECK(sd_bus_message_open_container(m, 'e', "oa{sa{sv}}") >= 0);
	CHECK(sd_bus_message_append(m, "o", path) >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sa{sv}}") >= 0);
	CHECK(sd_bus_message_append(m, "{sa{sv}}", "org.freedesktop.DBus.Peer", 0) >= 0);
	CHECK(sd_bus_message_open_container(m, 'e', "sa{sv}") >= 0);
	CHECK(sd_bus_message_append(m, "s", interface) >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
}

static void close_object(sd_bus_message *m)
{
	for (int i = 0; i < 4; i++)
		CHECK(sd_bus_message_close_container(m) >= 0);
}

static void append_gpu(sd_bus_message *m, const char *path, const char *name)
{
	open_object(m, path, GPUARB_INTERFACE_GPU);
	fake_append(m, "Name", "s", name);
	fake_append(m, "Xccs", "u", 1);
	fake_append(m, "ShaderEngines", "u", 2);
	fake_append(m, "CusPerShaderEngine", "aau", 1, 2, 15, 14);
	fake_append(m, "CusPerShaderArray", "aaau", 1, 2, 2, 8, 7, 2, 7, 7);
	fake_append(m, "Cus", "u", 29);
	fake_append(m, "CusFree", "u", 9);
	fake_append(m, "Fairness", "d", 0.75);
	fake_append(m, "VramBytes", "t", UINT64_C(1) << 34);
	fake_append(m, "WgpMode", "b", 1);
	fake_append(m, "Draining", "b", 0);
	fake_append(m, "Scheduler", "s", "hws");
	fake_append(m, "Unmanaged", "aa{sv}", 1, 4, "pid", "u", 77, "uid", "u", 1000, "command",
		    "s", "ollama", "queues", "u", 5);
	fake_append(m, "Graphics", "s", "drawn");
	fake_append(m, "Clients", "aa{sv}", 1, 5, "pid", "u", 88, "command", "s", "Xorg", "draws",
		    "b", 1, "gfx-share", "d", 0.25, "vram", "t", UINT64_C(4096));
	fake_append(m, "Temperature", "d", 45.5); /* an unknown key of a newer daemon */
	close_object(m);
}

static void append_lease(sd_bus_message *m, const char *path)
{
	open_object(m, path, GPUARB_INTERFACE_LEASE);
	fake_append(m, "Id", "t", UINT64_C(999)); /* ignored: the path has the id */
	fake_append(m, "OwnerUid", "u", 1000);
	fake_append(m, "Adaptable", "b", 1);
	fake_append_lease(m, "granted", 1, 20, 4711);
	close_object(m);
}

static int answer_objects(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_open_container(reply, 'a', "{oa{sa{sv}}}") >= 0);
	append_gpu(reply, GPUARB_PATH_GPU "/10", "0000:0a:00.0");
	append_lease(reply, GPUARB_PATH_LEASE "/100");
	append_gpu(reply, GPUARB_PATH_GPU "/2", "0000:03:00.0");
	append_lease(reply, GPUARB_PATH_LEASE "/9");
	append_lease(reply, GPUARB_PATH_LEASE "/none");
	open_object(reply, GPUARB_PATH_GPU "/3", "org.example.Else");
	close_object(reply);
	CHECK(sd_bus_message_close_container(reply) >= 0);
	return fake_send(reply);
}

static int answer_root(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_append(reply, "a{sv}", 2, "Version", "s", "0.1.0", "Tenants", "as", 2,
				    "compositor", "*") >= 0);
	return fake_send(reply);
}

static int answer(sd_bus_message *call, void *)
{
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return answer_root(call);
	return answer_objects(call);
}

/* ---- snapshots ------------------------------------------------------------------------ */

LIB_TEST(a_snapshot_has_all_gpus_and_leases_in_order, answer, NULL)
{
	const struct gpuarb_lease_info *leases;
	const struct gpuarb_gpu *gpus;
	const char *const *tenants;
	_cleanup_(gpuarb_view_freep) struct gpuarb_view *view = NULL;

	CHECK(gpuarb_look(gpuarb, &view) == 0);
	CHECK(strcmp(gpuarb_view_version(view), "0.1.0") == 0);
	CHECK(gpuarb_view_tenants(view, &tenants) == 2 && strcmp(tenants[1], "*") == 0);

	CHECK(gpuarb_view_gpus(view, &gpus) == 2 && gpuarb_view_gpus(view, NULL) == 2);
	CHECK(strcmp(gpus[0].name, "0000:03:00.0") == 0);
	CHECK(strcmp(gpus[1].name, "0000:0a:00.0") == 0);
	CHECK(gpus[0].cus == 29 && gpus[0].cus_free == 9 && gpus[0].vram_bytes == 1ULL << 34);
	CHECK(gpus[0].cus_per_shader_engine[1] == 14 && gpus[0].shader_arrays == 2);
	CHECK(gpus[0].cus_per_shader_array[0] == 8 && gpus[0].cus_per_shader_array[3] == 7);
	CHECK(gpus[0].wgp_mode && !gpus[0].draining && strcmp(gpus[0].device, "") == 0);
	CHECK(gpus[0].n_unmanaged == 1 && gpus[0].unmanaged[0].pid == 77);
	CHECK(gpus[0].unmanaged[0].uid == 1000 && gpus[0].unmanaged[0].queues == 5);
	CHECK(strcmp(gpus[0].unmanaged[0].command, "ollama") == 0);

	CHECK(gpuarb_view_fairness(view, 1) == 0.75 && isnan(gpuarb_view_fairness(view, 2)));
	CHECK(strcmp(gpuarb_view_graphics(view, 1), "drawn") == 0 &&
	      !*gpuarb_view_graphics(view, 2));
	CHECK(gpuarb_view_client(view, 0, 0)->pid == 88 && gpuarb_view_client(view, 0, 0)->draws);
	CHECK(strcmp(gpuarb_view_client(view, 0, 0)->command, "Xorg") == 0);
	CHECK(gpuarb_view_client(view, 0, 0)->gfx_share == 0.25 &&
	      gpuarb_view_client(view, 0, 0)->vram == 4096);
	CHECK(!gpuarb_view_client(view, 0, 1) && !gpuarb_view_client(view, 2, 0));

	CHECK(gpuarb_view_leases(view, &leases) == 2);
	CHECK(leases[0].id == 9 && leases[1].id == 100 && leases[0].adaptable);
	CHECK(leases[0].owner_uid == 1000 && leases[0].n_partitions == 1);
	CHECK(leases[0].partitions[0].kfd_gpu_id == 4711);
	CHECK(leases[0].deadline == GPUARB_FOREVER && strcmp(leases[0].name, "") == 0);
}

static int answer_wrong(sd_bus_message *call, void *userdata)
{
	/* An interface, and the property to send as a string. */
	const char *const *wrong = userdata;
	sd_bus_message *reply = fake_reply(call);

	if (sd_bus_message_is_method_call(call, NULL, "GetAll")) {
		CHECK(sd_bus_message_append(reply, "a{sv}", 1, wrong[1], "s", "x") >= 0);
	} else {
		CHECK(sd_bus_message_open_container(reply, 'a', "{oa{sa{sv}}}") >= 0);
		open_object(reply, wrong[2], wrong[0]);
		fake_append(reply, wrong[1], "s", "x");
		close_object(reply);
		CHECK(sd_bus_message_close_container(reply) >= 0);
	}
	return fake_send(reply);
}

static const char *wrong_key;

static void read_wrong_snapshot(struct gpuarb *gpuarb, struct fake_arbiter *)
{
	struct gpuarb_view *view = NULL;

	CHECK(gpuarb_look(gpuarb, &view) == -EPROTO && !view);
	CHECK(strstr(gpuarb_last_error(gpuarb), wrong_key));
}

TEST(a_property_of_the_wrong_type_is_named)
{
	static const char *const wrongs[][3] = {
		{ GPUARB_INTERFACE_GPU, "Cus", GPUARB_PATH_GPU "/0" },
		{ GPUARB_INTERFACE_GPU, "Fairness", GPUARB_PATH_GPU "/0" },
		{ GPUARB_INTERFACE_GPU, "Unmanaged", GPUARB_PATH_GPU "/0" },
		{ GPUARB_INTERFACE_GPU, "CusPerShaderEngine", GPUARB_PATH_GPU "/0" },
		{ GPUARB_INTERFACE_GPU, "CusPerShaderArray", GPUARB_PATH_GPU "/0" },
		{ GPUARB_INTERFACE_LEASE, "Partitions", GPUARB_PATH_LEASE "/1" },
		{ GPUARB_INTERFACE, "Tenants", GPUARB_PATH },
	};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const char *copy[] = { wrongs[i][0], wrongs[i][1], wrongs[i][2] };

		wrong_key = wrongs[i][1];
		LIB_RIG_WITH(answer_wrong, copy, read_wrong_snapshot);
	}
}

/* ---- watching ------------------------------------------------------------------------- */

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define MANAGER "org.freedesktop.DBus.ObjectManager"

/* After the first snapshot it sends signals. */
static void change(sd_bus *bus)
{
	const char *lease = GPUARB_PATH_LEASE "/5";

	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesAdded", "oa{sa{sv}}", lease,
				 0) >= 0);
	CHECK(sd_bus_emit_signal(bus, lease, PROPERTIES, "PropertiesChanged", "sa{sv}as",
				 GPUARB_INTERFACE_LEASE, 0, 0) >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH_GPU "/10", PROPERTIES, "PropertiesChanged",
				 "sa{sv}as", GPUARB_INTERFACE_GPU, 0, 0) >= 0);

	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesRemoved", "oas",
				 GPUARB_PATH_GPU "/10", 0) >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesAdded", "oa{sa{sv}}",
				 GPUARB_PATH_GPU "/10", 0) >= 0);

	/* The library ignores these. */
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH_GPU "/11", PROPERTIES, "PropertiesChanged",
				 "sa{sv}as", GPUARB_INTERFACE_GPU, 0, 0) >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, PROPERTIES, "PropertiesChanged", "s", "x") >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesAdded", "u", 3) >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesRemoved", NULL) >= 0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesRemoved", "oas", "/x", 0) >=
	      0);
	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, GPUARB_INTERFACE, "News", "s", "x") >= 0);

	CHECK(sd_bus_emit_signal(bus, GPUARB_PATH, MANAGER, "InterfacesRemoved", "oas", lease, 0) >=
	      0);
}

static bool changed; /* in the process of the fake daemon */

static int answer_and_change(sd_bus_message *call, void *userdata)
{
	int r = answer(call, userdata);

	if (sd_bus_message_is_method_call(call, NULL, "GetManagedObjects") && !changed) {
		changed = true;
		change(sd_bus_message_get_bus(call));
	}
	return r;
}

struct watcher {
	struct gpuarb *gpuarb;
	struct rig bus;
	struct fake_arbiter fake;
	unsigned gone;
	char events[512];
};

/* Records the callbacks. Restarts the daemon, then the bus, then ends the watch by a signal. */
static void note(const char *kind, const char *what, void *userdata)
{
	struct watcher *watcher = userdata;
	size_t length = strlen(watcher->events);

	snprintf(watcher->events + length, sizeof(watcher->events) - length, "%s(%s) ", kind, what);
	if (strcmp(kind, "lease-removed") == 0) {
		struct gpuarb_view *view = NULL;

		CHECK(gpuarb_look(watcher->gpuarb, &view) == 0); /* the handle can be used */
		gpuarb_view_free(view);
		fake_arbiter_stop(&watcher->fake);
	}
	if (strcmp(kind, "daemon-gone") == 0 && watcher->gone++ == 1)
		rig_start_bus(&watcher->bus);
	if (strcmp(kind, "daemon-gone") == 0)
		fake_arbiter_start(watcher->bus.address, answer, NULL, &watcher->fake);
	if (strcmp(kind, "daemon-back") == 0 && watcher->gone == 1)
		rig_kill_bus(&watcher->bus);
	if (strcmp(kind, "daemon-back") == 0 && watcher->gone == 2)
		lib_rig_signals(5000);
}

TEST(a_watch_reports_changes_in_their_order)
{
	static const char expected[] = "watching() lease-added(5) lease-changed(5) "
				       "gpu-changed(0000:0a:00.0) gpu-removed(0000:0a:00.0) "
				       "gpu-added(0000:0a:00.0) lease-removed(5) daemon-gone() "
				       "daemon-back() daemon-gone() daemon-back() ";
	struct watcher watcher = { .gpuarb = NULL };

	rig_new(&watcher.bus);
	fake_arbiter_start(watcher.bus.address, answer_and_change, NULL, &watcher.fake);
	watcher.gpuarb = lib_rig_open();
	CHECK(gpuarb_watch(watcher.gpuarb, GPUARB_FOREVER, note, &watcher) == -EINTR);
	lib_rig_signals(0);
	if (strcmp(watcher.events, expected) != 0)
		fprintf(stderr, "%s\n", watcher.events);
	CHECK(strcmp(watcher.events, expected) == 0);
	gpuarb_close(watcher.gpuarb);
	fake_arbiter_stop(&watcher.fake);
	rig_done(&watcher.bus);
}

static void forge_to(sd_bus *bus, const char *name)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *removed = NULL, *gone = NULL;

	CHECK(sd_bus_message_new_signal(bus, &removed, GPUARB_PATH, MANAGER, "InterfacesRemoved") >=
	      0);
	CHECK(sd_bus_message_append(removed, "oas", GPUARB_PATH_LEASE "/6", 0) >= 0);
	CHECK(sd_bus_send_to(bus, removed, name, NULL) >= 0);
	CHECK(sd_bus_message_new_signal(bus, &gone, "/org/freedesktop/DBus", "org.freedesktop.DBus",
					"NameOwnerChanged") >= 0);
	CHECK(sd_bus_message_append(gone, "sss", GPUARB_BUS_NAME, ":1.0", "") >= 0);
	CHECK(sd_bus_send_to(bus, gone, name, NULL) >= 0);
}

/* Another client sends signals of gpuarbd and of the bus to every connection. Returns when the bus has sent them. */
static void forge(void)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	char **names = NULL;

	CHECK(sd_bus_new(&bus) >= 0 && sd_bus_set_bus_client(bus, true) >= 0);
	CHECK(sd_bus_set_address(bus, getenv("GPUARB_BUS_ADDRESS")) >= 0);
	CHECK(sd_bus_start(bus) >= 0 && sd_bus_list_names(bus, &names, NULL) >= 0);
	for (size_t i = 0; names[i]; i++) {
		if (names[i][0] == ':')
			forge_to(bus, names[i]);
		free(names[i]);
	}
	free(names);
	CHECK(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
				 "org.freedesktop.DBus", "GetId", NULL, NULL, NULL) >= 0);
}

static int answer_and_forge(sd_bus_message *call, void *userdata)
{
	int r = answer(call, userdata);

	if (sd_bus_message_is_method_call(call, NULL, "GetManagedObjects") && !changed) {
		changed = true;
		forge();
		CHECK(sd_bus_emit_signal(sd_bus_message_get_bus(call), GPUARB_PATH, MANAGER,
					 "InterfacesAdded", "oa{sa{sv}}", GPUARB_PATH_LEASE "/5",
					 0) >= 0);
	}
	return r;
}

static void note_until_added(const char *kind, const char *what, void *userdata)
{
	struct watcher *watcher = userdata;
	size_t length = strlen(watcher->events);

	snprintf(watcher->events + length, sizeof(watcher->events) - length, "%s(%s) ", kind, what);
	if (strcmp(kind, "lease-added") == 0)
		gpuarb_watch_stop(watcher->gpuarb);
}

LIB_TEST(a_watch_ignores_signals_of_other_clients, answer_and_forge, NULL)
{
	struct watcher watcher = { .gpuarb = gpuarb };

	CHECK(gpuarb_watch(gpuarb, GPUARB_FOREVER, note_until_added, &watcher) == 0);
	CHECK(strcmp(watcher.events, "watching() lease-added(5) ") == 0);
}

LIB_TEST(a_watch_ends_after_its_time, answer, NULL)
{
	struct watcher watcher = { .gpuarb = gpuarb };

	CHECK(gpuarb_watch(gpuarb, 20000, note, &watcher) == 0);
	CHECK(strcmp(watcher.events, "watching() ") == 0);
}

/* The daemon and the bus are gone when the pipe becomes readable, in the callback. */
static void stop_when_gone(const char *kind, const char *, void *userdata)
{
	struct watcher *watcher = userdata;

	if (strcmp(kind, "watching") == 0)
		rig_kill_bus(&watcher->bus);
	if (strcmp(kind, "daemon-gone") == 0)
		CHECK(write((int)watcher->gone, "", 1) == 1);
}

TEST(a_watch_ends_when_its_fd_is_readable)
{
	struct watcher watcher = { .gpuarb = NULL };
	int fds[2];

	rig_new(&watcher.bus);
	CHECK(pipe(fds) == 0);
	watcher.gone = (unsigned)fds[1];
	fake_arbiter_start(watcher.bus.address, answer, NULL, &watcher.fake);
	watcher.gpuarb = lib_rig_open();
	CHECK(gpuarb_watch_until(watcher.gpuarb, fds[0], GPUARB_FOREVER, stop_when_gone,
				 &watcher) == 0);

	/* Readable from the beginning, on a bus that is back. */
	rig_start_bus(&watcher.bus);
	fake_arbiter_stop(&watcher.fake);
	fake_arbiter_start(watcher.bus.address, answer, NULL, &watcher.fake);
	CHECK(gpuarb_watch_until(watcher.gpuarb, fds[0], GPUARB_FOREVER, note, &watcher) == 0);
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
	gpuarb_close(watcher.gpuarb);
	fake_arbiter_stop(&watcher.fake);
	rig_done(&watcher.bus);
}

/* ---- plans and refusals --------------------------------------------------------------- */

static void append_refusal(sd_bus_message *m)
{
	CHECK(sd_bus_message_append(m, "aa{sv}", 2, 6, "gpu", "s", "0000:03:00.0", "reason", "s",
				    "shape", "asked", "t", UINT64_C(31), "free", "t", UINT64_C(60),
				    "hint", "s", "30 or 32 CUs", "retry", "b", 1, 1, "reason", "s",
				    "policy") >= 0);
}

static int answer_plan(sd_bus_message *call, void *)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *reply;

	if (sd_bus_message_is_method_call(call, NULL, "Plan")) {
		reply = fake_reply(call);
		CHECK(sd_bus_message_append(reply, "s", "refused") >= 0);
		fake_append_partitions(reply, 20, 0);
	} else {
		sd_bus_error_set_const(&error, GPUARB_ERROR_NO_CAPACITY, "no GPU has room");
		CHECK(sd_bus_message_new_method_error(call, &reply, &error) >= 0);
	}
	append_refusal(reply);
	return fake_send(reply);
}

static void check_refusal(struct gpuarb *gpuarb)
{
	const struct gpuarb_refusal *refusals;
	size_t n;

	refusals = gpuarb_last_refusals(gpuarb, &n);
	CHECK(n == 2 && strcmp(refusals[0].gpu, "0000:03:00.0") == 0);
	CHECK(refusals[0].retry && !refusals[1].retry); /* older daemons do not send it */
	CHECK(strcmp(refusals[0].reason, "shape") == 0);
	CHECK(refusals[0].asked == 31 && refusals[0].free == 60);
	CHECK(strstr(refusals[0].hint, "30 or 32 CUs"));
}

LIB_TEST(a_plan_has_a_refusal_for_each_gpu, answer_plan, NULL)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	const struct gpuarb_partition *partitions;
	const char *result = NULL;
	size_t n;

	CHECK(gpuarb_plan(gpuarb, &want, 1, NULL, &result) == 0);
	CHECK(strcmp(result, "refused") == 0);
	partitions = gpuarb_last_plan(gpuarb, &n);
	CHECK(n == 1 && partitions[0].cus == 20);
	check_refusal(gpuarb);

	CHECK(lib_rig_reserve(gpuarb) == -EBUSY);
	CHECK(strstr(gpuarb_last_error(gpuarb), "GPU"));
	CHECK(strcmp(gpuarb_last_error_name(gpuarb), GPUARB_ERROR_NO_CAPACITY) == 0);
	CHECK(!gpuarb_last_plan(gpuarb, &n) && n == 0); /* forgotten with the next call */
	check_refusal(gpuarb);

	CHECK(gpuarb_resize(gpuarb, 1, &want, 1) == -EBUSY);
	check_refusal(gpuarb);
}
