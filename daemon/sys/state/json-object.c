/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/json-object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

#define DEPTH 8 /* of nested objects; a lease has five levels */

/* ---- ASCII: json-c 0.18 refuses other bytes in strict mode (its issue 875) ------------- */

/* The code point of a well-formed UTF-8 sequence of n bytes. */
static uint32_t code_point(const char *text, size_t n)
{
	uint32_t code = (uint8_t)text[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((uint8_t)text[i] & 0x3f);
	return code;
}

char *json_ascii(const char *text, size_t length)
{
	char *ascii = malloc(length * 3 + 1), *end = ascii; /* "é", two bytes: "\\u00e9" */
	const char *text_end = text + length;

	while (ascii && text < text_end) {
		size_t n = (uint8_t)*text < 0x80 ? 1 : text_character_length(text);
		uint32_t code = n > 1 ? code_point(text, n) : 0;

		if (n < 2)
			*end++ = n == 1 ? *text : '?';
		else if (code < 0x10000)
			end += sprintf(end, "\\u%04x", code);
		else /* a pair of surrogates */
			end += sprintf(end, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				       0xdc00 + (code & 0x3ff));
		text += n > 0 ? n : 1;
	}
	if (ascii)
		*end = '\0';
	return ascii;
}

/* ---- writing ------------------------------------------------------------------------- */

void object_add(bool *failed, struct json_object *object, const char *key,
		struct json_object *value)
{
	const unsigned flags = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (object && value && json_object_object_add_ex(object, key, value, flags) == 0)
		return;
	json_object_put(value);
	*failed = true;
}

void array_append(bool *failed, struct json_object *array, struct json_object *value)
{
	if (array && value && json_object_array_add(array, value) == 0)
		return;
	json_object_put(value);
	*failed = true;
}

static struct json_object *member_json(bool *failed, const struct member *member, const char *field)
{
	struct json_object *object;

	switch (member->kind) {
	case NUMBER: return json_object_new_uint64(field_get(field, member->size));
	case BOOL: return json_object_new_boolean(field_get(field, member->size) != 0);
	case TEXT: return json_object_new_string(field);
	case WORD: return json_object_new_string(member->words[field_get(field, member->size)]);
	case OBJECT: break;
	}
	object = json_object_new_object();
	object_add_members(failed, object, member->members, member->n_members, field);
	return object;
}

void object_add_members(bool *failed, struct json_object *object, const struct member *members,
			size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++) {
		const struct member *member = &members[i];
		const char *field = (const char *)base + member->offset;
		uint64_t number = member->optional ? field_get(field, member->size) : 0;

		if (!member->optional || (number >= member->min && number <= member->max))
			object_add(failed, object, member->key, member_json(failed, member, field));
	}
}

/* ---- reading ------------------------------------------------------------------------- */

void read_invalid(struct read_error *error, const char *key, const char *what)
{
	if (error->r == 0)
		error->r = refuse(error->why, error->size, -EINVAL, "%s: %s", key, what);
}

bool object_has(const struct object *object, const char *key)
{
	return json_object_object_get_ex(object->json, key, NULL);
}

static struct json_object *take(struct object *object, const char *key, json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object->json, key, &value)) {
		read_invalid(object->error, key, "is missing");
		return NULL;
	}
	object->taken++;
	if (!json_object_is_type(value, type)) {
		read_invalid(object->error, key, "has another type");
		return NULL;
	}
	return value;
}

/* value NULL: an error was reported already. */
static uint64_t number_in(struct read_error *error, const char *key, struct json_object *value,
			  uint64_t min, uint64_t max)
{
	uint64_t number;

	if (!value)
		return min;
	number = json_object_get_uint64(value);
	if (json_object_get_int64(value) >= 0 && number >= min && number <= max)
		return number;
	read_invalid(error, key, "is out of range");
	return min;
}

void object_take_text(struct object *object, const char *key, char *ret, size_t size)
{
	struct json_object *value = take(object, key, json_type_string);
	size_t length;

	ret[0] = '\0';
	if (!value)
		return;
	length = (size_t)json_object_get_string_len(value);
	if (length >= size || memchr(json_object_get_string(value), '\0', length))
		read_invalid(object->error, key, "is too long or has a NUL");
	else
		memcpy(ret, json_object_get_string(value), length + 1);
}

static uint64_t take_word(struct object *object, const struct member *member)
{
	char text[32];

	object_take_text(object, member->key, text, sizeof(text));
	for (uint64_t value = member->min; value <= member->max; value++)
		if (strcmp(text, member->words[value]) == 0)
			return value;
	read_invalid(object->error, member->key, "is a word that this version does not know");
	return member->min;
}

uint64_t object_take_number(struct object *object, const char *key, uint64_t min, uint64_t max)
{
	return number_in(object->error, key, take(object, key, json_type_int), min, max);
}

double object_take_real(struct object *object, const char *key, double min, double max)
{
	struct json_object *value = NULL;
	bool whole = json_object_object_get_ex(object->json, key, &value) &&
		     json_object_is_type(value, json_type_int);
	double number;

	value = take(object, key, whole ? json_type_int : json_type_double);
	number = value ? json_object_get_double(value) : min;
	if (number >= min && number <= max)
		return number;
	read_invalid(object->error, key, "is out of range");
	return min;
}

void object_end(const struct object *object, const char *key)
{
	if (object->json && json_object_object_length(object->json) != object->taken)
		read_invalid(object->error, key, "has a member that this version does not know");
}

struct object object_take_object(struct object *object, const char *key)
{
	return (struct object){ object->error, take(object, key, json_type_object), 0 };
}

struct json_object *object_take_array(struct object *object, const char *key, size_t max,
				      size_t *ret_n)
{
	struct json_object *array = take(object, key, json_type_array);

	*ret_n = array ? json_object_array_length(array) : 0;
	if (*ret_n <= max)
		return array;
	read_invalid(object->error, key, "has too many elements");
	*ret_n = 0;
	return NULL;
}

static struct json_object *element(struct read_error *error, struct json_object *array, size_t i,
				   const char *key, json_type type)
{
	struct json_object *value = json_object_array_get_idx(array, i);

	if (json_object_is_type(value, type))
		return value;
	read_invalid(error, key, "has another type");
	return NULL;
}

struct object array_object(struct read_error *error, struct json_object *array, size_t i,
			   const char *key)
{
	return (struct object){ error, element(error, array, i, key, json_type_object), 0 };
}

struct json_object *array_array(struct read_error *error, struct json_object *array, size_t i,
				const char *key, size_t least, size_t most)
{
	struct json_object *value = element(error, array, i, key, json_type_array);

	if (!value ||
	    (json_object_array_length(value) >= least && json_object_array_length(value) <= most))
		return value;
	read_invalid(error, key, "has another number of elements");
	return NULL;
}

uint64_t array_number(struct read_error *error, struct json_object *array, size_t i,
		      const char *key, uint64_t min, uint64_t max)
{
	return number_in(error, key, element(error, array, i, key, json_type_int), min, max);
}

static void take_member(struct object *object, const struct member *member, char *field)
{
	struct object nested;

	switch (member->kind) {
	case NUMBER:
		field_set(field, member->size,
			  object_take_number(object, member->key, member->min, member->max));
		break;
	case BOOL:
		field_set(field, member->size,
			  (uint64_t)json_object_get_boolean(
				  take(object, member->key, json_type_boolean)));
		break;
	case TEXT: object_take_text(object, member->key, field, member->size); break;
	case WORD: field_set(field, member->size, take_word(object, member)); break;
	case OBJECT:
		nested = object_take_object(object, member->key);
		object_take_members(&nested, member->members, member->n_members, field);
		object_end(&nested, member->key);
		break;
	}
}

void object_take_members(struct object *object, const struct member *members, size_t n, void *base)
{
	for (size_t i = 0; i < n; i++)
		if (!members[i].optional || object_has(object, members[i].key))
			take_member(object, &members[i], (char *)base + members[i].offset);
}

/* Strict: text after the value is an error, and so is a NUL, which would hide the text after it.
 * json-c returns the largest number for one beyond 64 bits, or in newer versions an error. Only newer
 * versions say that there was no memory, others return NULL or a part of the text: errno tells, until
 * the next number clears it. */
static struct json_object *parse(const char *ascii, bool *lacked)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	struct json_object *json = NULL;

	errno = tokener ? 0 : ENOMEM;
	if (tokener) {
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
		json = json_tokener_parse_ex(tokener, ascii, (int)strlen(ascii));
	}
	*lacked |= errno == ENOMEM;
	if (tokener)
		json_tokener_free(tokener);
	return json;
}

/* Twice, because json-c 0.16 can drop a member for want of memory without a trace. */
struct json_object *object_parse(const char *text, size_t length, struct read_error *error)
{
	_cleanup_(freep) char *ascii = json_ascii(text, length);
	struct json_object *json = NULL, *again = NULL;
	bool lacked = !ascii;

	if (ascii && !memchr(text, '\0', length)) {
		json = parse(ascii, &lacked);
		again = parse(ascii, &lacked);
	}
	if (lacked || !json_object_equal(json, again)) {
		json_object_put(json);
		json = NULL;
		error->r = refuse(error->why, error->size, -ENOMEM, "out of memory");
	} else if (!json) {
		read_invalid(error, "text", "is truncated or not JSON");
	}
	json_object_put(again);
	return json;
}
