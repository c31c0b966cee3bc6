/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state-json.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMAT_VERSION 1
#define FILE_MAX       (1024 * 1024)

/* json-c answers a failed allocation with NULL, and takes NULL for the value null: so each
 * step is looked at, and *failed says at the end whether all were made. */
static void add(bool *failed, struct json_object *object, const char *key,
		struct json_object *value)
{
	if (object && value && json_object_object_add(object, key, value) == 0)
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

static void add_string(bool *failed, struct json_object *object, const char *key,
		       const char *value)
{
	add(failed, object, key, json_object_new_string(value));
}

static struct json_object *mask_json(bool *failed, const struct deal *deal,
				     const struct cuset *set)
{
	struct json_object *array = json_object_new_array();
	uint32_t words[DEAL_WORDS] = {0};
	char hex[16];

	deal_encode(deal, set, words);
	for (size_t i = 0; i < deal_words(deal); i++) {
		snprintf(hex, sizeof(hex), "0x%08x", words[i]);
		append(failed, array, json_object_new_string(hex));
	}
	return array;
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

static struct json_object *partition_json(bool *failed, const struct gpu *gpu,
					  const struct partition *partition)
{
	struct json_object *object = json_object_new_object();

	add_string(failed, object, "gpu", gpu->info.name);
	add(failed, object, "cu_mask", mask_json(failed, &gpu->deal, &partition->cus));
	add(failed, object, "occupied", mask_json(failed, &gpu->deal, &partition->occupied));
	add_number(failed, object, "asked", partition->asked);
	add(failed, object, "granted", budget_json(failed, &partition->granted));
	add(failed, object, "charged", budget_json(failed, &partition->charged));
	add_number(failed, object, "streams", partition->streams);
	add_number(failed, object, "priority", partition->priority);
	add_string(failed, object, "isolation", isolation_name(partition->isolation));
	add_bool(failed, object, "alone", partition->alone);
	return object;
}

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

/* As it was asked, which a repeated token must equal. */
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
	add_number(failed, object, "version", FORMAT_VERSION);
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
	struct json_object *bound = json_object_new_array();

	add_string(failed, object, "state", state_name(lease->state));
	add_string(failed, object, "reason", lease->reason);
	add_number(failed, object, "generation", lease->generation);
	add_number(failed, object, "acknowledged", lease->acknowledged);
	add_number(failed, object, "deadline_usec", lease->deadline_usec);
	add_number(failed, object, "disturbances", lease->disturbances);
	for (size_t i = 0; i < lease->n_bound; i++)
		append(failed, bound, json_object_new_int(lease->bound[i]));
	add(failed, object, "bound", bound);
}

static int text_of(struct json_object *object, char **ret)
{
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY);
	char *copy;

	if (!text || asprintf(&copy, "%s\n", text) < 0)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int state_json_write(const struct arbiter *arbiter, const struct lease *lease, char **ret)
{
	struct json_object *object = json_object_new_object();
	struct json_object *partitions = json_object_new_array();
	bool failed = false;
	int r;

	add_identity(&failed, object, lease);
	add_condition(&failed, object, lease);
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *partition = &lease->partitions[i];

		append(&failed, partitions,
		       partition_json(&failed, &arbiter->gpus[partition->gpu], partition));
	}
	add(&failed, object, "partitions", partitions);
	if (lease->request)
		add(&failed, object, "request", request_json(&failed, lease->request));

	r = failed ? -ENOMEM : text_of(object, ret);
	json_object_put(object);
	return r;
}

static struct json_object *member(struct json_object *object, const char *key, json_type type)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, type) ? value : NULL;
}

static bool copy_text(struct json_object *object, const char *key, char ret[static REQUEST_TEXT])
{
	struct json_object *value = member(object, key, json_type_string);

	return value && snprintf(ret, REQUEST_TEXT, "%s", json_object_get_string(value)) <
				(int)REQUEST_TEXT;
}

int state_json_read(int fd, struct state_obituary *ret)
{
	struct state_obituary read = {0};
	struct json_object *object, *id, *owner;
	struct stat st;
	bool good;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return -EINVAL;
	object = json_object_from_fd(fd);
	id = member(object, "id", json_type_int);
	owner = member(object, "owner", json_type_int);

	good = id && owner && copy_text(object, "name", read.name) &&
	       copy_text(object, "tenant", read.tenant);
	if (good) {
		read.id = json_object_get_uint64(id);
		read.owner = (uid_t)json_object_get_uint64(owner);
		*ret = read;
	}
	json_object_put(object);
	return good ? 0 : -EINVAL;
}
