/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GetManagedObjects that is answered in parts, and the signals that are held meanwhile. */

#include <inttypes.h>

#include "bus/bus-managed.h"
#include "bus/bus-sender.h"
#include "bus/bus-signals.h"
#include "check.h"
#include "adapter.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "lack.h"
#include "seed.h"

NEEDS(bus_missing);

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define LEASES 150U /* their answer takes three parts */

/* ---- the daemon --------------------------------------------------------------------------- */

/* Some are adaptable; one waits. */
static void add_lease(struct adapter *a)
{
	const struct caller caller = { .uid = STRANGER };
	_cleanup_(result_done) struct result result = { 0 };
	struct request request = {
		.n_wants = 1,
		.class = -1,
		.wants[0] = { .gpu = "0",
			      .cus = 1,
			      .queues = 1,
			      .processes = 1,
			      .priority = PRIORITY_NORMAL,
			      .isolation = ISOLATION_SHARED },
	};
	struct lease *lease;

	if (a->arbiter->n_leases < 10) {
		request.adaptable = true;
		request.wants[0].isolation = ISOLATION_CU;
	} else if (a->arbiter->n_leases == 10) {
		request.wait_usec = UINT64_MAX;
		request.wants[0].cus = 60;
		request.wants[0].isolation = ISOLATION_CU;
	}
	CHECK(arbiter_plan(a->arbiter, &caller, &request, &lease, &result) >= 0);
	lease = arbiter_commit(a->arbiter, lease);
	arbiter_add_holder(a->arbiter, lease->id);
	adapter_carry_out(a);
	bus_tell_gpu(a->bus, 0, CHANGE_PROPERTIES);
}

static void end_lease(struct adapter *a, struct lease *lease)
{
	arbiter_end(a->arbiter, lease, RESULT_OK, "released");
	adapter_carry_out(a);
	arbiter_observe(a->arbiter, NULL, 0);
	adapter_carry_out(a);
	bus_tell_gpu(a->bus, 0, CHANGE_PROPERTIES);
}

/* GPU 0 takes any number of leases. */
static void arrive(struct adapter *a, unsigned leases)
{
	adapter_new(a);
	a->arbiter->gpus[0].info.queue_slots = a->arbiter->gpus[0].info.process_slots = 100000;
	a->arbiter->settings->max_leases = a->arbiter->settings->max_leases_per_user = 100000;
	for (unsigned i = 0; i < leases; i++)
		add_lease(a);
	CHECK(a->arbiter->n_waiting == (leases > 10));
}

static sd_bus_message *ask_all(sd_bus *bus)
{
	return call_new(bus, GPUARB_PATH, OBJECT_MANAGER, "GetManagedObjects");
}

static sd_bus_message *get_version(sd_bus *bus)
{
	return get(bus, GPUARB_PATH, GPUARB_INTERFACE, "Version");
}

/* Calls, and runs the loop until the answer is being built. */
static void begin(struct adapter *a, sd_bus *bus, struct answer *answer)
{
	call_send(ask_all(bus), answer);
	AWAIT_LOOP(a->event, a->bus->managed->call);
	CHECK(!answer->came);
}

/* ---- a client that applies answers and signals -------------------------------------------------- */

#define OBJECTS_MAX 1000U
#define OBJECT_PROPERTIES 48U

struct property {
	char *name, *value;
};

struct object {
	char path[64]; /* "": a free place */
	struct property properties[OBJECT_PROPERTIES];
	size_t n;
};

struct mirror {
	struct object objects[OBJECTS_MAX];
	unsigned answers, signals;
};

static void object_clear(struct object *object)
{
	for (size_t i = 0; i < object->n; i++) {
		free(object->properties[i].name);
		free(object->properties[i].value);
	}
	*object = (struct object){ 0 };
}

static struct object *find_object(struct mirror *mirror, const char *path)
{
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		if (strcmp(mirror->objects[i].path, path) == 0)
			return &mirror->objects[i];
	return NULL;
}

static struct object *make_object(struct mirror *mirror, const char *path)
{
	struct object *object = find_object(mirror, path);

	if (object)
		return object;
	object = find_object(mirror, "");
	CHECK(object);
	snprintf(object->path, sizeof(object->path), "%s", path);
	return object;
}

static struct property *find_property(struct object *object, const char *name)
{
	for (size_t i = 0; i < object->n; i++)
		if (strcmp(object->properties[i].name, name) == 0)
			return &object->properties[i];
	return NULL;
}

/* The variant that is next, as text. */
static char *read_value(sd_bus_message *m)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(file && sd_bus_message_dump(m, file, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY) >= 0);
	fclose(file);
	return text;
}

/* a{sv} */
static void read_properties(sd_bus_message *m, struct object *object)
{
	const char *name;

	CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
		struct property *property;

		CHECK(sd_bus_message_read(m, "s", &name) > 0);
		property = find_property(object, name);
		if (!property) {
			CHECK(object->n < OBJECT_PROPERTIES);
			property = &object->properties[object->n++];
			property->name = strdup(name);
		}
		free(property->value);
		property->value = read_value(m);
		CHECK(sd_bus_message_exit_container(m) > 0);
	}
	CHECK(sd_bus_message_exit_container(m) > 0);
}

/* oa{sa{sv}}: an object that is there, with all it has. */
static void read_object(sd_bus_message *m, struct mirror *mirror)
{
	const char *path, *interface;
	struct object *object;

	CHECK(sd_bus_message_read(m, "o", &path) > 0);
	object = make_object(mirror, path);
	CHECK(sd_bus_message_enter_container(m, 'a', "{sa{sv}}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
		CHECK(sd_bus_message_read(m, "s", &interface) > 0);
		read_properties(m, object);
		CHECK(sd_bus_message_exit_container(m) > 0);
	}
	CHECK(sd_bus_message_exit_container(m) > 0);
}

static void mirror_clear(struct mirror *mirror)
{
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		object_clear(&mirror->objects[i]);
}

static int on_objects(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct mirror *mirror = userdata;

	CHECK(!sd_bus_message_is_method_error(m, NULL));
	mirror_clear(mirror);
	mirror->answers++;
	mirror->signals = 0;
	CHECK(sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}") >= 0);
	while (sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}") > 0) {
		read_object(m, mirror);
		CHECK(sd_bus_message_exit_container(m) > 0);
	}
	return 0;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct mirror *mirror = userdata;
	struct object *object;
	const char *text;

	mirror->signals++;
	if (sd_bus_message_is_signal(m, OBJECT_MANAGER, "InterfacesAdded")) {
		read_object(m, mirror);
	} else if (sd_bus_message_is_signal(m, OBJECT_MANAGER, "InterfacesRemoved")) {
		CHECK(sd_bus_message_read(m, "o", &text) > 0);
		object = find_object(mirror, text);
		if (object)
			object_clear(object);
	} else {
		object = find_object(mirror, sd_bus_message_get_path(m));
		CHECK(sd_bus_message_read(m, "s", &text) > 0);
		if (object)
			read_properties(m, object);
	}
	return 0;
}

static struct mirror *mirror_new(sd_bus *bus)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	CHECK(mirror);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, NULL, OBJECT_MANAGER, NULL, on_signal,
				  mirror) >= 0);
	CHECK(sd_bus_match_signal(bus, NULL, GPUARB_BUS_NAME, NULL, PROPERTIES, NULL, on_signal,
				  mirror) >= 0);
	return mirror;
}

static void mirror_free(struct mirror *mirror)
{
	mirror_clear(mirror);
	free(mirror);
}

static void mirror_ask(struct mirror *mirror, sd_bus *bus)
{
	sd_bus_message *m = ask_all(bus);

	CHECK(sd_bus_call_async(NULL, NULL, m, on_objects, mirror, 0) >= 0);
	sd_bus_message_unref(m);
}

static void compare_object(struct adapter *a, sd_bus *bus, struct mirror *mirror, const char *path,
			   const char *interface)
{
	struct object *object = find_object(mirror, path), now = { 0 };
	sd_bus_message *m =
		call_run(a, with(call_new(bus, path, PROPERTIES, "GetAll"), "s", interface));

	CHECK(object && !sd_bus_message_is_method_error(m, NULL));
	read_properties(m, &now);
	CHECK(now.n > 20 && object->n == now.n);
	for (size_t i = 0; i < now.n; i++) {
		const struct property *property = find_property(object, now.properties[i].name);

		if (!property || strcmp(property->value, now.properties[i].value) != 0)
			fprintf(stderr, "%s %s: %s instead of %s\n", path, now.properties[i].name,
				property ? property->value : "none", now.properties[i].value);
		CHECK(property && strcmp(property->value, now.properties[i].value) == 0);
	}
	object_clear(&now);
	sd_bus_message_unref(m);
}

/* After the last signal: the mirror has the objects that are there, and what GetAll answers about each. */
static void compare(struct adapter *a, sd_bus *bus, struct mirror *mirror)
{
	size_t n = 0, there = a->arbiter->n_leases;

	AWAIT_LOOP(a->event, !bus_managed_is_busy(a->bus));
	CHECK(is_fine(call_run(a, get_version(bus))));
	for (size_t i = 0; i < a->arbiter->n_gpus; i++) {
		if (a->arbiter->gpus[i].absent)
			continue;
		compare_object(a, bus, mirror, bus_path(GPUARB_PATH_GPU, i).text,
			       GPUARB_INTERFACE_GPU);
		there++;
	}
	for (size_t i = 0; i < a->arbiter->n_leases; i++)
		compare_object(a, bus, mirror,
			       bus_path(GPUARB_PATH_LEASE, a->arbiter->leases[i]->id).text,
			       GPUARB_INTERFACE_LEASE);
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		n += mirror->objects[i].path[0] != '\0';
	CHECK(n == there);
}

/* ---- answers ------------------------------------------------------------------------------ */

TEST(an_answer_has_what_get_all_answers_about_each_object)
{
	static const unsigned leases[] = { 0, 3, LEASES };

	for (size_t i = 0; i < ARRAY_SIZE(leases); i++) {
		struct mirror *mirror;
		struct adapter a;
		sd_bus *bus;

		arrive(&a, leases[i]);
		bus = adapter_connect(&a, STRANGER);
		mirror = mirror_new(bus);
		mirror_ask(mirror, bus);
		AWAIT_LOOP(a.event, mirror->answers > 0);
		compare(&a, bus, mirror);
		mirror_free(mirror);
		leave(bus);
		adapter_done(&a);
	}
}

FIXTURE(struct adapter, a, arrive(a, LEASES), adapter_done(a));

TEST_WITH(an_answer_in_parts_has_the_state_of_one_moment, struct adapter *a)
{
	char former[64], later[64];
	struct mirror *mirror;
	sd_bus *bus;

	bus = adapter_connect(a, STRANGER);
	mirror = mirror_new(bus);
	mirror_ask(mirror, bus);
	AWAIT_LOOP(a->event, a->bus->managed->snapshot);
	snprintf(former, sizeof(former), GPUARB_PATH_LEASE "/%" PRIu64,
		 a->arbiter->leases[LEASES - 1]->id);
	snprintf(later, sizeof(later), GPUARB_PATH_LEASE "/%" PRIu64, a->arbiter->next_id);
	end_lease(a, a->arbiter->leases[LEASES - 1]);
	add_lease(a);
	AWAIT_LOOP(a->event, mirror->answers > 0);
	CHECK(find_object(mirror, former) && !find_object(mirror, later));
	compare(a, bus, mirror);
	CHECK(!find_object(mirror, former) && find_object(mirror, later));
	mirror_free(mirror);
}

static unsigned seed;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static void change(struct adapter *a)
{
	struct gpu *gpu = &a->arbiter->gpus[1]; /* it has no lease */

	switch (below(6)) {
	case 0:
	case 1:
		if (a->arbiter->n_leases < LEASES + 50)
			add_lease(a);
		break;
	case 2:
		if (a->arbiter->n_leases > LEASES - 50)
			end_lease(a, a->arbiter->leases[11 + below(50)]);
		break;
	case 3:
		CHECK(arbiter_drain(a->arbiter, "0", !a->arbiter->gpus[0].draining) >= 0);
		CHECK(arbiter_drain(a->arbiter, "0", false) >= 0);
		a->arbiter->gpus[0].driver_events[0]++;
		bus_tell_gpu(a->bus, 0, CHANGE_PROPERTIES);
		break;
	case 4:
		a->arbiter->gpus[0].info.law.constant++;
		bus_tell_gpu(a->bus, 0, CHANGE_PROPERTIES);
		break;
	default:
		gpu->absent = !gpu->absent;
		if (gpu->absent)
			bus_tell_gpu(a->bus, 1, CHANGE_REMOVED);
		else
			bus_tell_gpu(a->bus, 1, CHANGE_ADDED);
	}
}

TEST(an_answer_and_later_signals_give_the_state_of_the_daemon)
{
	unsigned held = 0;
	struct adapter a;
	sd_bus *bus;

	seed = seed_nth(SEED_OF_RUN("SEED"), 0);
	arrive(&a, LEASES);
	bus = adapter_connect(&a, 0);
	for (unsigned i = 0; i < check_rounds(4, 200); i++) {
		const struct await await = AWAIT_BEGIN("answers");
		struct mirror *mirror = mirror_new(bus);
		unsigned answers = 1 + below(3),
			 changes = 100; /* calls that wait come after signals */

		CHECK(is_fine(call_run(&a, get_version(bus)))); /* after the matches */
		for (unsigned k = 0; k < answers; k++)
			mirror_ask(mirror, bus);
		while (mirror->answers < answers) {
			for (unsigned n = below(4); n > 0 && changes > 0; n--, changes--)
				change(&a);
			held += bus_signals_are_held(a.bus);
			await_loop(&await, a.event);
		}
		compare(&a, bus, mirror);
		mirror_free(mirror);
		leave(bus);
		bus = adapter_connect(&a, 0);
	}
	CHECK_REACHED(held > 0); /* or it tests nothing */
	adapter_done(&a);
}

TEST_WITH(many_signals_that_were_held_are_sent_in_parts, struct adapter *a)
{
	struct mirror *mirror;
	struct answer answer;
	sd_bus *bus;

	bus = adapter_connect(a, 0);
	mirror = mirror_new(bus);
	CHECK(is_fine(call_run(a, get_version(bus))));
	begin(a, bus, &answer);
	for (size_t i = 0; i < LEASES; i++)
		for (unsigned k = 0; k < 3; k++)
			bus_tell_lease(a->bus, a->arbiter->leases[i], TOUCH_REASON);
	adapter_run(a, &answer.came);
	CHECK(is_fine(answer.m) && mirror->signals < LEASES);
	CHECK(is_fine(call_run(a, ask_all(bus)))); /* it waits for them */
	CHECK(mirror->signals == LEASES);
	mirror_free(mirror);
}

/* ---- other calls -------------------------------------------------------------------------- */

TEST_WITH(other_calls_are_served_while_an_answer_is_built, struct adapter *a)
{
	struct answer objects, version, more;
	sd_bus *bus, *other;

	bus = adapter_connect(a, STRANGER);
	other = adapter_connect(a, 2);
	CHECK(is_fine(call_run(a, get_version(bus))));
	CHECK(is_fine(call_run(a, get_version(other))));
	call_send(ask_all(bus), &objects);
	settle(bus);
	call_send(get_version(other), &version);
	call_send(ask_all(other), &more);
	settle(other);
	adapter_run(a, &more.came);
	adapter_run(a, &objects.came);
	CHECK(version.number < objects.number && objects.number < more.number);
	CHECK(is_fine(version.m) && is_fine(objects.m) && is_fine(more.m));
}

TEST_WITH(the_time_of_an_answer_is_charged_to_its_user, struct adapter *a)
{
	struct answer answer;
	struct await await;
	uint64_t used;
	sd_bus *bus;

	bus = adapter_connect(a, STRANGER);
	begin(a, bus, &answer);
	used = a->bus->managed->peer->user->used_usec;
	await = AWAIT_BEGIN("the end of the answer");
	while (a->bus->managed->call) {
		const struct bus_user *user = a->bus->managed->peer->user;

		await_loop(&await, a->event);
		CHECK(user->served == 1); /* one call, whatever number of parts */
		CHECK(a->bus->managed->call || user->used_usec > used);
	}
	adapter_run(a, &answer.came);
	CHECK(is_fine(answer.m));
}

TEST_WITH(a_call_that_is_not_for_all_objects_is_answered_by_sd_bus, struct adapter *a)
{
	uint64_t cookie;
	sd_bus_message *m;
	sd_bus *bus;

	bus = adapter_connect(a, STRANGER);
	CHECK(is_error(call_run(a, with(ask_all(bus), "s", "text")), SD_BUS_ERROR_INVALID_ARGS,
		       ""));
	CHECK(is_error(
		call_run(a, call_new(bus, GPUARB_PATH_GPU, OBJECT_MANAGER, "GetManagedObjects")),
		SD_BUS_ERROR_UNKNOWN_METHOD, ""));
	m = ask_all(bus);
	CHECK(sd_bus_message_set_expect_reply(m, false) >= 0);
	CHECK(sd_bus_send(NULL, m, &cookie) >= 0);
	sd_bus_message_unref(m);
	CHECK(is_fine(call_run(a, get_version(bus))) && !a->bus->managed->call);
}

/* ---- ends --------------------------------------------------------------------------------- */

TEST_WITH(a_connection_that_closes_gets_no_answer_and_others_do, struct adapter *a)
{
	struct mirror *mirror;
	struct answer answer;
	sd_bus *bus, *other;

	bus = adapter_connect(a, STRANGER);
	other = adapter_connect(a, 0);
	mirror = mirror_new(other);
	CHECK(is_fine(call_run(a, get_version(other))));
	call_send(ask_all(bus), &answer);
	settle(bus);
	AWAIT_LOOP(a->event, a->bus->managed->call);
	add_lease(a);
	leave(bus);
	settle(other); /* the bus has told the adapter before */
	mirror_ask(mirror, other);
	AWAIT_LOOP(a->event, mirror->answers > 0);
	CHECK(!answer.came);
	compare(a, other, mirror);
	mirror_free(mirror);
}

TEST_WITH(a_daemon_that_stops_answers_what_it_was_building, struct adapter *a)
{
	struct answer first, second;
	sd_bus *bus;

	bus = adapter_connect(a, STRANGER);
	begin(a, bus, &first);
	call_send(ask_all(bus), &second);
	settle(bus);
	AWAIT_TURN(a->event, "the second call");
	add_lease(a);
	CHECK(bus_signals_are_held(a->bus));
	a->bus = bus_free(a->bus);
	adapter_run(a, &first.came);
	adapter_run(a, &second.came);
	CHECK(is_error(first.m, GPUARB_ERROR_SHUTDOWN, ""));
	CHECK(sd_bus_message_is_method_error(second.m, NULL));
	sd_bus_message_unref(second.m);
}

TEST_WITH(without_memory_the_answer_is_an_error_and_signals_are_not_held, struct adapter *a)
{
	struct mirror *mirror;
	struct answer answer;
	sd_bus *bus;

	bus = adapter_connect(a, STRANGER);
	mirror = mirror_new(bus);
	CHECK(is_fine(call_run(a, get_version(bus))));
	begin(a, bus, &answer);
	lack_left = 0;
	AWAIT_LOOP(a->event, lack_left != 0);
	CHECK(!a->bus->managed->call);
	adapter_run(a, &answer.came);
	CHECK(is_error(answer.m, SD_BUS_ERROR_NO_MEMORY, ""));

	begin(a, bus, &answer);
	lack_left = 0;
	bus_tell_gpu(a->bus, 0, CHANGE_PROPERTIES);
	CHECK(lack_left == -1 && !bus_signals_are_held(a->bus));
	adapter_run(a, &answer.came);
	CHECK(is_fine(answer.m) && mirror->signals == 1);
	mirror_free(mirror);
}
