/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/json.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <unistd.h>

static void no_memory(void)
{
	fprintf(stderr, "gpuarbctl: out of memory\n");
	exit(EXIT_FAILURE);
}

/* value NULL: JSON's null. */
static void put(struct json_object *in, const char *key, struct json_object *value)
{
	int r = key ? json_object_object_add(in, key, value) : json_object_array_add(in, value);

	if (r < 0)
		no_memory();
}

static struct json_object *have(struct json_object *value)
{
	if (!value)
		no_memory();
	return value;
}

struct json_object *json_map(struct json_object *in, const char *key)
{
	struct json_object *map = have(json_object_new_object());

	if (in)
		put(in, key, map);
	return map;
}

struct json_object *json_list(struct json_object *in, const char *key)
{
	struct json_object *list = have(json_object_new_array());

	if (in)
		put(in, key, list);
	return list;
}

void json_text(struct json_object *in, const char *key, const char *value)
{
	put(in, key, value ? have(json_object_new_string(value)) : NULL);
}

void json_number(struct json_object *in, const char *key, uint64_t value)
{
	put(in, key, have(json_object_new_uint64(value)));
}

void json_signed(struct json_object *in, const char *key, int64_t value)
{
	put(in, key, have(json_object_new_int64(value)));
}

void json_real(struct json_object *in, const char *key, double value)
{
	put(in, key, have(json_object_new_double(value)));
}

void json_flag(struct json_object *in, const char *key, bool value)
{
	put(in, key, have(json_object_new_boolean(value)));
}

void json_null(struct json_object *in, const char *key)
{
	put(in, key, NULL);
}

void json_numbers(struct json_object *in, const char *key, const uint32_t *values, size_t n)
{
	struct json_object *list = json_list(in, key);

	for (size_t i = 0; i < n; i++)
		json_number(list, NULL, values[i]);
}

static void print(FILE *out, struct json_object *value, int flags)
{
	const char *text = json_object_to_json_string_ext(value,
							  JSON_C_TO_STRING_NOSLASHESCAPE | flags);

	if (!text)
		no_memory();
	fprintf(out, "%s\n", text);
	fflush(out);
}

void json_print(FILE *out, struct json_object *value)
{
	print(out, value, isatty(fileno(out)) ? JSON_C_TO_STRING_PRETTY : 0);
}

void json_print_line(FILE *out, struct json_object *value)
{
	print(out, value, 0);
}

struct json_object *json_free(struct json_object *value)
{
	json_object_put(value);
	return NULL;
}
