/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state-json.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys are literals, each of which is given once to an object. */
#define ADD_KEY (JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT)

#define MASK_TEXT (CODEC_WORDS * sizeof("0x00000000,"))

static const char *const causes[RESULT_KINDS] = {
	[RESULT_OK] = "ok",
	[RESULT_INVALID_REQUEST] = "invalid-request",
	[RESULT_INVALID_STATE] = "invalid-state",
	[RESULT_TOKEN_CONFLICT] = "token-conflict",
	[RESULT_NOT_PERMITTED] = "not-permitted",
	[RESULT_QUOTA_EXCEEDED] = "quota-exceeded",
	[RESULT_NO_CAPACITY] = "no-capacity",
	[RESULT_NEVER_FITS] = "never-fits",
	[RESULT_NO_SUCH_GPU] = "no-such-gpu",
	[RESULT_NO_SUCH_LEASE] = "no-such-lease",
	[RESULT_NO_SUCH_TENANT] = "no-such-tenant",
	[RESULT_NOT_SUPPORTED] = "not-supported",
	[RESULT_NOT_SAVED] = "not-saved",
	[RESULT_TOO_MANY_LEASES] = "too-many-leases",
	[RESULT_TIMED_OUT] = "timed-out",
	[RESULT_SHUTDOWN] = "shutdown",
	[RESULT_NO_MEMORY] = "no-memory",
};

const char *state_json_cause(enum result_kind cause)
{
	return causes[cause];
}

/* json-c answers a failed allocation with NULL, and takes NULL for the value null: so each
 * step is looked at, and *failed says at the end whether all were made. */
static void add(bool *failed, struct json_object *object, const char *key,
		struct json_object *value)
{
	if (object && value && json_object_object_add_ex(object, key, value, ADD_KEY) == 0)
		return;
	json_object_put(value);
	*failed = true;
}

static void append(bool *failed, struct json_object *array, struct json_object *value)
{
	if (array && value && json_object_array_add(array, value) == 0)
		return;
	json_object_put(value);
	*failed = true;
}

static void add_number(bool *failed, struct json_object *object, const char *key, uint64_t value)
{
	add(failed, object, key, json_object_new_uint64(value));
}

static void add_bool(bool *failed, struct json_object *object, const char *key, bool value)
{
	add(failed, object, key, json_object_new_boolean(value));
}

static void add_string(bool *failed, struct json_object *object, const char *key, const char *value)
{
	add(failed, object, key, json_object_new_string(value));
}

/* Words in the order of the bus, in one text: an object for each would cost as much as all
 * the rest. */
static void add_mask(bool *failed, struct json_object *object, const char *key,
		     const struct codec *codec, const struct cuset *set)
{
	uint32_t words[CODEC_WORDS] = { 0 };
	char text[MASK_TEXT] = "", *end = text;

	codec_encode(codec, set, words);
	for (size_t i = 0; i < codec_words(codec); i++)
		end += sprintf(end, "%s0x%08x", i > 0 ? "," : "", words[i]);
	add_string(failed, object, key, text);
}

static struct json_object *budget_json(bool *failed, const struct budget *budget)
{
	struct json_object *object = json_object_new_object();

	add_number(failed, object, "queues", budget->queues);
	add_number(failed, object, "processes", budget->processes);
	add_number(failed, object, "sdma_queues", budget->sdma_queues);
	add_number(failed, object, "cooperative", budget->cooperative);
	add_number(failed, object, "vram", budget->vram);
	return object;
}

/* The GPU, and by what it is known to be another when a daemon comes back. One that is gone
 * has no kfd_gpu_id, for it may be back by then, and granted anew. */
static void add_gpu(bool *failed, struct json_object *object, const struct gpu *gpu)
{
	const struct geometry *geometry = &gpu->info.geometry;

	add_string(failed, object, "gpu", gpu->info.name);
	add_number(failed, object, "kfd_gpu_id", gpu->absent ? 0 : gpu->info.kfd_gpu_id);
	add_number(failed, object, "xccs", geometry->xccs);
	add_number(failed, object, "shader_engines", geometry->engines);
	add_number(failed, object, "shader_arrays", geometry->arrays);
	add_number(failed, object, "gpu_cus", gpu->codec.n_bits);
}

static struct json_object *partition_json(bool *failed, const struct gpu *gpu,
					  const struct partition *partition)
{
	struct json_object *object = json_object_new_object();

	add_gpu(failed, object, gpu);
	add_mask(failed, object, "cu_mask", &gpu->codec, &partition->cus);
	add_mask(failed, object, "occupied", &gpu->codec, &partition->occupied);
	add_number(failed, object, "asked", partition->asked);
	add(failed, object, "granted", budget_json(failed, &partition->granted));
	add(failed, object, "charged", budget_json(failed, &partition->charged));
	add_number(failed, object, "streams", partition->streams);
	add_number(failed, object, "priority", partition->priority);
	add_string(failed, object, "isolation", isolation_name(partition->isolation));
	add_bool(failed, object, "alone", partition->alone);
	add_bool(failed, object, "any_shape", partition->any_shape);
	if (partition->adaptable)
		add_mask(failed, object, "base", &gpu->codec, &partition->base);
	if (!cuset_empty(&partition->before))
		add_mask(failed, object, "before", &gpu->codec, &partition->before);
	return object;
}

/* isolation is left out where it is the class's. */
static struct json_object *want_json(bool *failed, const struct want *want)
{
	struct json_object *object = json_object_new_object();

	add_string(failed, object, "gpu", want->gpu);
	add_number(failed, object, "cus", want->cus);
	add_number(failed, object, "shader_engines", want->shader_engines);
	add_number(failed, object, "cus_min", want->cus_min);
	add_number(failed, object, "cus_max", want->cus_max);
	add_bool(failed, object, "exact", want->exact);
	add_bool(failed, object, "any_shape", want->any_shape);
	add_number(failed, object, "queues", want->queues);
	add_number(failed, object, "streams", want->streams);
	add_number(failed, object, "processes", want->processes);
	add_number(failed, object, "sdma_queues", want->sdma_queues);
	add_number(failed, object, "vram", want->vram);
	add_bool(failed, object, "cooperative", want->cooperative);
	add_number(failed, object, "priority", want->priority);
	if (want->isolation != ISOLATION_DEFAULT)
		add_string(failed, object, "isolation", isolation_name(want->isolation));
	return object;
}

/* As it was asked, which a repeated token must equal. class is left out where it is the
 * tenant's. */
static struct json_object *request_json(bool *failed, const struct request *request)
{
	struct json_object *object = json_object_new_object();
	struct json_object *wants = json_object_new_array();

	for (size_t i = 0; i < request->n_wants; i++)
		append(failed, wants, want_json(failed, &request->wants[i]));
	add(failed, object, "wants", wants);
	if (request->class >= 0)
		add_string(failed, object, "class", class_name((enum lease_class)request->class));
	add_string(failed, object, "name", request->name);
	add_string(failed, object, "tenant", request->tenant);
	add_string(failed, object, "token", request->token);
	add_number(failed, object, "wait_usec", request->wait_usec);
	add_bool(failed, object, "start_inactive", request->start_inactive);
	add_bool(failed, object, "adaptable", request->adaptable);
	return object;
}

static void add_identity(bool *failed, struct json_object *object, const struct lease *lease)
{
	add_number(failed, object, "version", STATE_JSON_VERSION);
	add_number(failed, object, "id", lease->id);
	add_string(failed, object, "name", lease->name);
	add_string(failed, object, "tenant", lease->tenant);
	add_string(failed, object, "class", class_name(lease->class));
	add_string(failed, object, "token", lease->token);
	add_number(failed, object, "owner", lease->owner);
	add_number(failed, object, "pid", (uint64_t)lease->pid);
	add_string(failed, object, "unit", lease->unit);
	add_bool(failed, object, "adaptable", lease->adaptable);
}

static void add_condition(bool *failed, struct json_object *object, const struct lease *lease)
{
	add_string(failed, object, "state", state_name(lease->state));
	add_string(failed, object, "reason", lease->reason);
	add_string(failed, object, "cause", state_json_cause(lease->cause));
	add_number(failed, object, "generation", lease->generation);
	add_number(failed, object, "acknowledged", lease->acknowledged);
	add_number(failed, object, "deadline_usec", lease->deadline_usec);
	add_number(failed, object, "disturbances", lease->lend.disturbances);
	add_number(failed, object, "passed", lease->wait.passed);
}

/* What a lease has to do, or what is done to it, by when; left out where there is nothing. */
static void add_duties(bool *failed, struct json_object *parent, const struct lease *lease)
{
	struct json_object *object;

	if (!lease->lend.never_granted && !lease->lend.idle && !lease->verify.pending &&
	    !lease->revoked && !lease->enforce.frozen && lease->enforce.step == ENFORCE_STEP_NONE &&
	    lease->enforce.due_usec == UINT64_MAX && lease->lend.give_up_usec == UINT64_MAX)
		return;
	object = json_object_new_object();
	add_bool(failed, object, "fresh", lease->lend.never_granted);
	add_bool(failed, object, "idle", lease->lend.idle);
	add_bool(failed, object, "unseen", lease->verify.pending);
	add_bool(failed, object, "revoked", lease->revoked);
	add_bool(failed, object, "frozen", lease->enforce.frozen);
	add_string(failed, object, "rung", enforce_step_name(lease->enforce.step));
	add_number(failed, object, "rung_usec", lease->enforce.due_usec);
	add_number(failed, object, "give_up_usec", lease->lend.give_up_usec);
	add(failed, parent, "duties", object);
}

/* Each as [pid, start time]. What is beyond the most that is kept is found again, or not, as
 * any process is. */
static struct json_object *processes_json(bool *failed, const struct arbiter *arbiter, uint64_t id)
{
	struct json_object *array = json_object_new_array();
	struct lease_process processes[LEASE_PROCESSES_MAX];
	size_t n = known_processes(arbiter, id, processes, LEASE_PROCESSES_MAX);

	for (size_t i = 0; i < n && i < LEASE_PROCESSES_MAX; i++) {
		struct json_object *pair = json_object_new_array_ext(2);

		append(failed, pair, json_object_new_int64(processes[i].pid));
		append(failed, pair, json_object_new_uint64(processes[i].start_time));
		append(failed, array, pair);
	}
	return array;
}

static struct json_object *partitions_json(bool *failed, const struct arbiter *arbiter,
					   const struct lease *lease)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *partition = &lease->partitions[i];

		append(failed, array,
		       partition_json(failed, &arbiter->gpus[partition->gpu], partition));
	}
	return array;
}

/* Where json-c cannot make the text larger it leaves a part out and says nothing; but malloc()
 * has said it. */
static int text_of(struct json_object *object, char **ret)
{
	size_t length;
	const char *text;
	char *copy;

	errno = 0;
	text = json_object_to_json_string_length(object, JSON_C_TO_STRING_PLAIN, &length);
	copy = text && errno != ENOMEM ? malloc(length + 2) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, length);
	memcpy(copy + length, "\n", 2);
	*ret = copy;
	return 0;
}

/* request is left out where there is none. */
int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret)
{
	struct json_object *object = json_object_new_object();
	bool failed = false;
	int r;

	add_identity(&failed, object, lease);
	add_condition(&failed, object, lease);
	add_duties(&failed, object, lease);
	add(&failed, object, "partitions", partitions_json(&failed, arbiter, lease));
	if (lease->request)
		add(&failed, object, "request", request_json(&failed, lease->request));
	add(&failed, object, "processes", processes_json(&failed, arbiter, lease->id));

	r = failed ? -ENOMEM : text_of(object, ret);
	json_object_put(object);
	return r;
}
