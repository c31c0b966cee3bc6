/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Nothing is believed of a file that has our name: every member has to be there, of its type
 * and in its range, and no other. What contradicts itself or other leases is found by who
 * puts it into force. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sys/state/state-json-take.h"
#include "sys/state/state-json.h"

#define ID_MAX ((UINT64_C(1) << 53) - 1) /* JSON readers hold integers up to here */

struct reading {
	const struct arbiter *arbiter;
	struct state_lease *saved;
	struct trouble *trouble;
};

/* ---- words -------------------------------------------------------------------------- */

static const char *class_word(unsigned index)
{
	return class_name((enum lease_class)index);
}

static const char *state_word(unsigned index)
{
	return state_name((enum lease_state)index);
}

static const char *isolation_word(unsigned index)
{
	return isolation_name((enum isolation)(index + 1)); /* the default has none */
}

static const char *cause_word(unsigned index)
{
	return state_json_cause((enum result_kind)index);
}

static enum lease_class take_class(struct object *object)
{
	return (enum lease_class)take_word(object, "class", class_word, CLASS_REALTIME + 1);
}

static enum isolation take_isolation(struct object *object)
{
	return (enum isolation)(take_word(object, "isolation", isolation_word, ISOLATION_SHARED) +
				1);
}

/* ---- partitions --------------------------------------------------------------------- */

static struct budget take_budget(struct object *parent, const char *key)
{
	struct object object = take_object(parent, key);
	struct budget budget = {
		.queues = take_unsigned(&object, "queues"),
		.processes = take_unsigned(&object, "processes"),
		.sdma_queues = take_unsigned(&object, "sdma_queues"),
		.cooperative = take_unsigned(&object, "cooperative"),
		.vram = take_number(&object, "vram", 0, UINT64_MAX),
	};

	object_end(&object, key);
	return budget;
}

/* What is saved of a GPU, beside its name. */
struct likeness {
	unsigned kfd_gpu_id, xccs, engines, arrays, cus;
};

static bool is_like(const struct gpu *gpu, const struct likeness *likeness)
{
	const struct geometry *geometry = &gpu->info.geometry;

	return gpu->info.kfd_gpu_id == likeness->kfd_gpu_id && geometry->xccs == likeness->xccs &&
	       geometry->engines == likeness->engines && geometry->arrays == likeness->arrays &&
	       gpu->codec.n_bits == likeness->cus;
}

/* GPU_ABSENT where it is gone, or is another by now. */
static unsigned take_gpu(struct object *object, const struct arbiter *arbiter,
			 char lost[static GPU_NAME_MAX])
{
	char name[GPU_NAME_MAX];
	struct likeness likeness;

	take_text(object, "gpu", name, sizeof(name));
	likeness.kfd_gpu_id = take_unsigned(object, "kfd_gpu_id");
	likeness.xccs = take_unsigned(object, "xccs");
	likeness.engines = take_unsigned(object, "shader_engines");
	likeness.arrays = take_unsigned(object, "shader_arrays");
	likeness.cus = take_unsigned(object, "gpu_cus");
	if (name[0] == '\0')
		trouble_at(object->trouble, "gpu", "has no name");

	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (!arbiter->gpus[i].absent && strcmp(arbiter->gpus[i].info.name, name) == 0 &&
		    is_like(&arbiter->gpus[i], &likeness))
			return i;
	if (lost[0] == '\0')
		memcpy(lost, name, sizeof(name));
	return GPU_ABSENT;
}

static void read_partition(const struct reading *reading, struct object *object,
			   struct partition *p)
{
	const struct codec *codec;

	p->gpu = take_gpu(object, reading->arbiter, reading->saved->lost);
	codec = p->gpu == GPU_ABSENT ? NULL : &reading->arbiter->gpus[p->gpu].codec;
	p->count = take_mask(object, "cu_mask", codec, &p->cus);
	take_mask(object, "occupied", codec, &p->occupied);
	p->asked = take_unsigned(object, "asked");
	p->granted = take_budget(object, "granted");
	p->charged = take_budget(object, "charged");
	p->streams = take_unsigned(object, "streams");
	p->priority = (unsigned)take_number(object, "priority", 0, PRIORITY_MAX);
	p->isolation = take_isolation(object);
	p->alone = take_bool(object, "alone");
	p->any_shape = take_bool(object, "any_shape");
	p->adaptable = object_has(object, "base");
	if (p->adaptable)
		take_mask(object, "base", codec, &p->base);
	if (object_has(object, "before"))
		take_mask(object, "before", codec, &p->before);
	object_end(object, "partition");
}

static void read_partitions(const struct reading *reading, struct json_object *array,
			    struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct object object = object_at(reading->trouble, array, i, "partitions");

		read_partition(reading, &object, &lease->partitions[i]);
	}
}

/* ---- the request -------------------------------------------------------------------- */

static void read_want(struct object *object, struct want *want)
{
	take_text(object, "gpu", want->gpu, sizeof(want->gpu));
	want->cus = take_unsigned(object, "cus");
	want->shader_engines = take_unsigned(object, "shader_engines");
	want->cus_min = take_unsigned(object, "cus_min");
	want->cus_max = take_unsigned(object, "cus_max");
	want->exact = take_bool(object, "exact");
	want->any_shape = take_bool(object, "any_shape");
	want->queues = take_unsigned(object, "queues");
	want->streams = take_unsigned(object, "streams");
	want->processes = take_unsigned(object, "processes");
	want->sdma_queues = take_unsigned(object, "sdma_queues");
	want->vram = take_number(object, "vram", 0, UINT64_MAX);
	want->cooperative = take_bool(object, "cooperative");
	want->priority = take_unsigned(object, "priority");
	if (object_has(object, "isolation"))
		want->isolation = take_isolation(object);
	object_end(object, "want");
}

static void read_wants(struct object *object, struct request *request)
{
	struct json_object *wants = take_array(object, "wants", REQUEST_WANTS, &request->n_wants);

	if (wants && request->n_wants == 0)
		trouble_at(object->trouble, "wants", "is empty");
	for (size_t i = 0; i < request->n_wants; i++) {
		struct object want = object_at(object->trouble, wants, i, "wants");

		read_want(&want, &request->wants[i]);
	}
}

static struct request *take_request(struct object *parent)
{
	struct object object = take_object(parent, "request");
	struct request request = { .class = -1 }, *kept;

	read_wants(&object, &request);
	if (object_has(&object, "class"))
		request.class = (int)take_class(&object);
	take_text(&object, "name", request.name, sizeof(request.name));
	take_text(&object, "tenant", request.tenant, sizeof(request.tenant));
	take_text(&object, "token", request.token, sizeof(request.token));
	request.wait_usec = take_number(&object, "wait_usec", 0, UINT64_MAX);
	request.start_inactive = take_bool(&object, "start_inactive");
	request.adaptable = take_bool(&object, "adaptable");
	object_end(&object, "request");
	if (parent->trouble->r < 0)
		return NULL;

	kept = request_keep(&request);
	if (!kept)
		parent->trouble->r = -ENOMEM;
	return kept;
}

/* ---- the lease ---------------------------------------------------------------------- */

static void read_identity(struct object *object, struct lease *lease)
{
	lease->id = take_number(object, "id", 1, ID_MAX);
	take_text(object, "name", lease->name, sizeof(lease->name));
	take_text(object, "tenant", lease->tenant, sizeof(lease->tenant));
	lease->class = take_class(object);
	take_text(object, "token", lease->token, sizeof(lease->token));
	lease->owner = (uid_t)take_number(object, "owner", 0, UINT32_MAX);
	lease->pid = (pid_t)take_number(object, "pid", 0, INT32_MAX);
	take_text(object, "unit", lease->unit, sizeof(lease->unit));
	lease->adaptable = take_bool(object, "adaptable");
}

static void read_condition(struct object *object, struct lease *lease)
{
	lease->state = (enum lease_state)take_word(object, "state", state_word, STATE_ENDING + 1);
	take_text(object, "reason", lease->reason, sizeof(lease->reason));
	lease->cause = (enum result_kind)take_word(object, "cause", cause_word, RESULT_KINDS);
	lease->generation = take_number(object, "generation", 1, UINT64_MAX);
	lease->acknowledged = take_number(object, "acknowledged", 1, lease->generation);
	lease->deadline_usec = take_number(object, "deadline_usec", 0, UINT64_MAX);
	lease->lend.disturbances = take_number(object, "disturbances", 0, UINT64_MAX);
	lease->wait.passed = take_unsigned(object, "passed");
}

static const char *enforce_step_word(unsigned value)
{
	return enforce_step_name((enum enforce_step)value);
}

static void read_duties(struct object *parent, struct lease *lease)
{
	struct object object = take_object(parent, "duties");

	lease->lend.never_granted = take_bool(&object, "fresh");
	lease->lend.idle = take_bool(&object, "idle");
	lease->verify.pending = take_bool(&object, "unseen");
	lease->revoked = take_bool(&object, "revoked");
	lease->enforce.frozen = take_bool(&object, "frozen");
	lease->enforce.step = (enum enforce_step)take_word(&object, "rung", enforce_step_word,
							   ENFORCE_STEP_KILL + 1);
	lease->enforce.due_usec = take_number(&object, "rung_usec", 0, UINT64_MAX);
	lease->lend.give_up_usec = take_number(&object, "give_up_usec", 0, UINT64_MAX);
	object_end(&object, "duties");
}

static void read_process(struct trouble *trouble, struct json_object *pair,
			 struct lease_process *ret)
{
	if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2) {
		trouble_at(trouble, "processes", "is of another type");
		return;
	}
	ret->pid = (pid_t)number_at(trouble, pair, 0, "processes", 1, INT32_MAX);
	ret->start_time = number_at(trouble, pair, 1, "processes", 0, UINT64_MAX);
}

static void take_processes(struct object *object, struct state_lease *saved)
{
	struct json_object *array = take_array(object, "processes", LEASE_PROCESSES_MAX,
					       &saved->n_processes);

	for (size_t i = 0; i < saved->n_processes; i++)
		read_process(object->trouble, json_object_array_get_idx(array, i),
			     &saved->processes[i]);
}

static void check_version(struct object *object)
{
	struct trouble *trouble = object->trouble;
	uint64_t version = take_number(object, "version", 0, UINT64_MAX);

	if (trouble->r < 0 || version == STATE_JSON_VERSION)
		return;
	trouble->r = -EINVAL;
	snprintf(trouble->why, trouble->size,
		 version > STATE_JSON_VERSION
			 ? "version %llu is newer than this gpuarbd, which knows %d"
			 : "older version %llu, whose leases ended with their daemon; this is %d",
		 (unsigned long long)version, STATE_JSON_VERSION);
}

/* The partitions' number says how large the lease is. */
static void read_lease(struct reading *reading, struct object *object)
{
	struct trouble *trouble = object->trouble;
	struct json_object *partitions;
	struct lease *lease;
	size_t n;

	check_version(object);
	partitions = take_array(object, "partitions", REQUEST_WANTS, &n);
	if (trouble->r < 0)
		return;
	if (lease_new(n, &lease) < 0) {
		trouble->r = -ENOMEM;
		return;
	}
	reading->saved->lease = lease;
	read_identity(object, lease);
	read_condition(object, lease);
	read_partitions(reading, partitions, lease);
	take_processes(object, reading->saved);
	if (object_has(object, "duties"))
		read_duties(object, lease);
	if (object_has(object, "request"))
		lease->request = take_request(object);
	object_end(object, "lease");
}

int state_json_read(const struct arbiter *arbiter, const char *text, size_t length,
		    struct state_lease *ret, char *why, size_t size)
{
	struct trouble trouble = { .why = why, .size = size };
	struct reading reading = { .arbiter = arbiter, .saved = ret, .trouble = &trouble };
	struct object object = { .trouble = &trouble };

	ret->lease = NULL;
	ret->lost[0] = '\0';
	ret->n_processes = 0;
	object.json = object_parse(text, length, &trouble);
	if (object.json)
		read_lease(&reading, &object);
	json_object_put(object.json);
	if (trouble.r < 0)
		ret->lease = lease_free(ret->lease);
	return trouble.r;
}
