/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/oci/runtime-config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

#define VALUE_MAX 120

struct json_object *config_read(int fd)
{
	struct json_object *config = json_object_from_fd(fd);

	if (config && json_object_is_type(config, json_type_object))
		return config;
	json_object_put(config);
	return NULL;
}

struct json_object *config_member(struct json_object *config, const char *first, const char *second)
{
	struct json_object *object, *ret;

	return json_object_object_get_ex(config, first, &object) &&
			       json_object_object_get_ex(object, second, &ret)
		       ? ret
		       : NULL;
}

size_t config_length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* ---- annotations --------------------------------------------------------------------------- */

const char *config_annotation(struct json_object *config, const char *name)
{
	struct json_object *annotations, *value;
	char key[64];

	snprintf(key, sizeof(key), ANNOTATION "%s", name);
	return json_object_object_get_ex(config, "annotations", &annotations) &&
			       json_object_object_get_ex(annotations, key, &value)
		       ? json_object_get_string(value)
		       : NULL;
}

int config_annotate(struct json_object *config, const char *name, const char *value)
{
	struct json_object *annotations, *string = json_object_new_string(value);
	char key[64];

	snprintf(key, sizeof(key), ANNOTATION "%s", name);
	if (!string || !json_object_object_get_ex(config, "annotations", &annotations) ||
	    json_object_object_add(annotations, key, string) < 0) {
		json_object_put(string);
		return -ENOMEM;
	}
	return 0;
}

/* A flag of the command line. */
static int take_adaptable(struct command *command, const char *value)
{
	char shown[81];

	command->options.adaptable = strcmp(value, "yes") == 0;
	if (command->options.adaptable || strcmp(value, "no") == 0)
		return 0;
	text_clean(shown, sizeof(shown), value);
	snprintf(command->problem, sizeof(command->problem),
		 ANNOTATION "adaptable=%s: must be yes or no", shown);
	return -EINVAL;
}

/* The word of the command line that the annotation stands for. */
static int take_annotation(struct command *command, const char *name, const char *value)
{
	static const char *const known[] = { "adaptable", "class",  "cus",  "cus-max",
					     "cus-min",   "gpu",    "name", "processes",
					     "queues",    "tenant", "vram", NULL };
	char word[VALUE_MAX + 32], shown[81];
	char *argv[] = { word, NULL };
	size_t i = 0;
	int r;

	while (known[i] && strcmp(known[i], name) != 0)
		i++;
	text_clean(shown, sizeof(shown), name);
	if (!known[i]) {
		snprintf(command->problem, sizeof(command->problem),
			 ANNOTATION
			 "%s: unknown annotation; adaptable, class, cus, cus-max, "
			 "cus-min, gpu, name, processes, queues, tenant and vram are known",
			 shown);
		return -EINVAL;
	}
	if (strlen(value) > VALUE_MAX) {
		snprintf(command->problem, sizeof(command->problem),
			 ANNOTATION "%s: the value has more than %d bytes", shown, VALUE_MAX);
		return -EINVAL;
	}
	if (strcmp(name, "adaptable") == 0)
		return take_adaptable(command, value);
	snprintf(word, sizeof(word), "--%s=%s", name, value);
	r = options_parse(command, OPTIONS_WANT | OPTIONS_LEASE, true, 1, argv);
	if (r < 0) {
		char problem[sizeof(command->problem)];

		snprintf(problem, sizeof(problem), "%s", command->problem + strlen("--"));
		snprintf(command->problem, sizeof(command->problem), ANNOTATION "%.300s", problem);
	}
	return r;
}

/* options_parse() keeps pointers into the words, which end with take_annotation(). */
static void keep_strings(struct json_object *config, struct command *command)
{
	struct gpuarb_want *want = &command->wants[0].want;

	want->gpu = config_annotation(config, "gpu");
	command->options.lease_class = config_annotation(config, "class");
	command->options.tenant = config_annotation(config, "tenant");
	command->options.name = config_annotation(config, "name");
}

int config_command(struct json_object *config, struct command *command)
{
	struct json_object *annotations;
	int r = 0;

	command_init(command);
	if (!json_object_object_get_ex(config, "annotations", &annotations))
		return 0;
	json_object_object_foreach(annotations, key, value)
	{
		if (r >= 0 && strncmp(key, ANNOTATION, strlen(ANNOTATION)) == 0)
			r = take_annotation(command, key + strlen(ANNOTATION),
					    json_object_get_string(value) ?: "");
	}
	keep_strings(config, command);
	return r;
}

/* ---- variables ----------------------------------------------------------------------------- */

static bool is_variable(struct json_object *entry, const char *name, size_t n)
{
	const char *text = json_object_get_string(entry);

	return text && strncmp(text, name, n) == 0 && (text[n] == '=' || !text[n]);
}

const char *config_variable(struct json_object *config, const char *name)
{
	struct json_object *process, *environment;
	size_t n = strlen(name), i = 0;

	if (!json_object_object_get_ex(config, "process", &process) ||
	    !json_object_object_get_ex(process, "env", &environment) ||
	    !json_object_is_type(environment, json_type_array))
		return NULL;
	for (i = json_object_array_length(environment); i-- > 0;) {
		struct json_object *entry = json_object_array_get_idx(environment, i);

		if (is_variable(entry, name, n) && json_object_get_string(entry)[n])
			return json_object_get_string(entry) + n + 1;
	}
	return NULL;
}

int config_set_variable(struct json_object *config, const char *variable)
{
	struct json_object *process, *environment, *string;
	size_t n = strcspn(variable, "=");

	if (!json_object_object_get_ex(config, "process", &process) ||
	    !json_object_object_get_ex(process, "env", &environment) ||
	    !json_object_is_type(environment, json_type_array))
		return -EINVAL;
	for (size_t i = json_object_array_length(environment); i-- > 0;)
		if (is_variable(json_object_array_get_idx(environment, i), variable, n))
			json_object_array_del_idx(environment, i, 1);
	if (!variable[n])
		return 0;
	string = json_object_new_string(variable);
	if (!string || json_object_array_add(environment, string) < 0) {
		json_object_put(string);
		return -ENOMEM;
	}
	return 0;
}
