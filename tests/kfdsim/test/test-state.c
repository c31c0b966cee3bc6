/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <json-c/json.h>

#include "kfdsim/text/state.h"
#include "kfdsim/test/text-rig.h"

static struct sim *state_start(void)
{
	struct gpu_info infos[] = { rig_radeon_vii(), rig_rx6900() };

	return rig_sim(infos, 2);
}

static void state_end(struct sim *sim)
{
	sim_record_free(sim);
	rig_done(sim);
}

static struct json_object *read_state(const struct sim *sim)
{
	struct json_object *object;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(out && state_print(sim, out) == 0 && fclose(out) == 0);
	CHECK(size > 0 && text[size - 1] == '\n');
	object = json_tokener_parse(text);
	CHECK(object);
	free(text);
	return object;
}

/* The value at a path: names and numbers between slashes. */
static struct json_object *at(struct json_object *object, const char *path)
{
	struct json_object *value = NULL;

	CHECK(json_pointer_get(object, path, &value) == 0);
	return value;
}

static int64_t number(struct json_object *object, const char *path)
{
	CHECK(json_object_is_type(at(object, path), json_type_int));
	return json_object_get_int64(at(object, path));
}

static const char *text(struct json_object *object, const char *path)
{
	CHECK(json_object_is_type(at(object, path), json_type_string));
	return json_object_get_string(at(object, path));
}

static bool truth(struct json_object *object, const char *path)
{
	CHECK(json_object_is_type(at(object, path), json_type_boolean));
	return json_object_get_boolean(at(object, path));
}

static size_t length(struct json_object *object, const char *path)
{
	CHECK(json_object_is_type(at(object, path), json_type_array));
	return json_object_array_length(at(object, path));
}

static struct sim_queue *recorded(struct sim_process *process, unsigned gpu)
{
	struct sim_queue *queue = rig_queue(process, gpu);

	sim_record_queue(queue);
	return queue;
}

static void gone(struct sim_queue *queue)
{
	sim_record_queue_gone(queue);
	rig_queue_gone(queue);
}

FIXTURE(struct sim, sim, sim = state_start(), state_end(sim));

TEST_WITH(state_has_the_owner_of_each_slot, struct sim *sim)
{
	struct sim_process *process = rig_process(sim, 4711);
	struct json_object *state;

	recorded(process, 0);
	rig_slot(recorded(process, 0), 13);
	state = read_state(sim);
	CHECK(length(state, "/gpus/0/slots") == 1 && number(state, "/gpus/0/slots/0/slot") == 13);
	CHECK(number(state, "/gpus/0/slots/0/pipe") == 1 &&
	      number(state, "/gpus/0/slots/0/queue") == 3);
	CHECK(number(state, "/gpus/0/slots/0/pid") == 4711 &&
	      number(state, "/gpus/0/slots/0/id") == 1);
	json_object_put(state);
}

TEST_WITH(state_keeps_destroyed_queues, struct sim *sim)
{
	struct sim_process *process = rig_process(sim, 1);
	struct sim_queue *queue = recorded(process, 1);
	struct json_object *state;

	rig_mask(queue, 1, 0x3U);
	sim_record_change(queue);
	queue->packets = 7;
	queue->dispatches = 5;
	queue->copied = 4096;
	queue->model_ns =
		(struct sim_model_ns){ .last = 3, .most = 5, .all = UINT64_C(5000000000) };
	queue->dispatched = true;
	queue->last = (struct sim_dispatch_info){ .grid = { 1024, 2, 1 }, .group = { 64, 1, 1 } };
	queue->stopped = true;
	strcpy(queue->note, "type 9");
	gone(queue);
	rig_process_gone(process);
	state = read_state(sim);
	CHECK(!truth(state, "/processes/0/alive") && !truth(state, "/processes/0/queues/0/alive"));
	CHECK(!truth(state, "/processes/0/queues/0/active"));
	CHECK(strcmp(text(state, "/processes/0/queues/0/gpu"), "0000:04:00.0") == 0);
	CHECK(number(state, "/processes/0/queues/0/gpu_id") == 0x1101);
	CHECK(number(state, "/processes/0/queues/0/packets") == 7);
	CHECK(number(state, "/processes/0/queues/0/dispatches") == 5);
	CHECK(number(state, "/processes/0/queues/0/copied") == 4096);
	CHECK(number(state, "/processes/0/queues/0/last/grid/0") == 1024);
	CHECK(number(state, "/processes/0/queues/0/last/group/0") == 64);
	CHECK(!truth(state, "/processes/0/queues/0/running"));
	CHECK(number(state, "/processes/0/queues/0/model_ns/last") == 3);
	CHECK(number(state, "/processes/0/queues/0/model_ns/most") == 5);
	CHECK(number(state, "/processes/0/queues/0/model_ns/all") == INT64_C(5000000000));
	CHECK(truth(state, "/processes/0/queues/0/stopped"));
	CHECK(strcmp(text(state, "/processes/0/queues/0/note"), "type 9") == 0);
	CHECK(strcmp(text(state, "/processes/0/queues/0/masks/0"), "0x3") == 0);
	json_object_put(state);
}

TEST_WITH(oldest_ended_process_is_forgotten_first, struct sim *sim)
{
	struct sim_process *lives = rig_process(sim, 1);
	struct json_object *state;

	sim_record_process(lives);
	for (int i = 0; i < 300; i++) {
		struct sim_process *process = rig_process(sim, 1000 + i);

		gone(recorded(process, 0));
		rig_process_gone(process);
	}
	state = read_state(sim);
	CHECK(length(state, "/processes") == STATE_PROCESSES);
	CHECK(number(state, "/processes/0/pid") == 1); /* it lives */
	CHECK(number(state, "/processes/1/pid") == 1000 + 300 - (int)STATE_PROCESSES + 1);
	CHECK(number(state, "/processes/255/pid") == 1299);
	CHECK(number(state, "/forgotten") == 2 * (301 - STATE_PROCESSES));
	json_object_put(state);
}

TEST_WITH(latest_queues_are_kept, struct sim *sim)
{
	struct sim_process *process = rig_process(sim, 1);
	struct json_object *state;

	recorded(process, 0); /* lives */
	for (unsigned i = 0; i < STATE_QUEUES + 10; i++)
		gone(recorded(process, 0));
	state = read_state(sim);
	CHECK(length(state, "/processes/0/queues") == STATE_QUEUES);
	CHECK(number(state, "/processes/0/queues/0/id") == 0);
	CHECK(number(state, "/processes/0/queues/1/id") == 12);
	CHECK(number(state, "/forgotten") == 11);
	CHECK(number(state, "/processes/0/made") == STATE_QUEUES + 11);
	json_object_put(state);
}

TEST_WITH(latest_masks_are_kept, struct sim *sim)
{
	struct sim_queue *queue = recorded(rig_process(sim, 1), 0);
	struct json_object *state;

	for (uint32_t i = 1; i <= STATE_MASKS + 3; i++) {
		rig_mask(queue, 1, i);
		sim_record_change(queue);
	}
	state = read_state(sim);
	CHECK(length(state, "/processes/0/queues/0/masks") == STATE_MASKS);
	CHECK(strcmp(text(state, "/processes/0/queues/0/masks/0"), "0x4") == 0);
	CHECK(strcmp(text(state, "/processes/0/queues/0/masks/255"), "0x103") == 0);
	json_object_put(state);
}

TEST_WITH(latest_dispatches_are_kept, struct sim *sim)
{
	const struct timing_kernel kernel = { .blocks = 7, .threads = 64 };
	struct sim_process *process = rig_process(sim, 21);
	struct sim_queue *queue = recorded(process, 1);
	unsigned lines = 0;
	char *told = NULL;
	size_t size;
	FILE *out = open_memstream(&told, &size);

	for (uint64_t i = 0; i < STATE_DISPATCHES + 3; i++) {
		queue->began = 10 * i;
		sim_record_dispatch(queue, &kernel, 10 * i + i % 10);
	}
	gone(queue);
	rig_process_gone(process);
	CHECK(out);
	dispatches_print(sim, out);
	CHECK(fclose(out) == 0);
	for (const char *c = told; *c; c++)
		lines += *c == '\n';
	CHECK(lines == STATE_DISPATCHES + 1);
	CHECK(strstr(told, "took_ns\n3\t0000:04:00.0\t21\t0\t7\t64\t30\t3\n"));
	CHECK(strstr(told, "\n16386\t0000:04:00.0\t21\t0\t7\t64\t163860\t6\n"));
	free(told);
}

TEST_WITH(dispatches_of_unknown_processes_are_ignored, struct sim *sim)
{
	const struct timing_kernel kernel = { .blocks = 1, .threads = 64 };
	struct sim_queue *queue = rig_queue(rig_process(sim, 1), 0);
	char *told = NULL;
	size_t size;
	FILE *out = open_memstream(&told, &size);

	sim_record_dispatch(queue, &kernel, 1);
	CHECK(out);
	dispatches_print(sim, out);
	CHECK(fclose(out) == 0 && strstr(told, "took_ns\n") && !strstr(told, "took_ns\n0"));
	free(told);
}

TEST_WITH(unknown_queues_are_ignored, struct sim *sim)
{
	struct sim_queue *queue = rig_queue(rig_process(sim, 1), 0);
	struct json_object *state;

	sim_record_change(queue);
	sim_record_queue_gone(queue);
	state = read_state(sim);
	CHECK(length(state, "/processes") == 0);
	json_object_put(state);
}
