/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What runtimes pass to hooks in JSON: the configuration or the state of a container (OCI runtime specification). */

#include <json-c/json.h>
#include <stdbool.h>

#include "client/options/options.h"
#include "util/base.h"

#define ANNOTATION "org.gpuarb."
#define OCI_LEASE_PROBLEM 1024 /* bytes of the sentence that says why there is no lease */

static inline void config_free(struct json_object *config)
{
	json_object_put(config);
}
DEFINE_CLEANUP(struct json_object *, config_free)

/* Reads all of a descriptor. NULL: it is no object of JSON. */
struct json_object *config_read(int fd);

/* A member of a member; NULL: there is none. */
struct json_object *config_member(struct json_object *config, const char *first,
				  const char *second);

/* Of an array; 0: it is none. */
size_t config_length(struct json_object *array);

/* The value of ANNOTATION NAME; NULL: there is none. */
const char *config_annotation(struct json_object *config, const char *name);
int config_annotate(struct json_object *config, const char *name, const char *value);

/* Takes what the annotations ask for as gpuarbctl takes its options. -EINVAL: the error is in command->problem. The
 * strings live as long as the configuration. */
int config_command(struct json_object *config, struct command *command);

/* The value of a variable of the container's program; NULL: there is none. */
const char *config_variable(struct json_object *config, const char *name);

/* "NAME=VALUE" sets a variable of the container's program, "NAME" removes it. */
int config_set_variable(struct json_object *config, const char *variable);
