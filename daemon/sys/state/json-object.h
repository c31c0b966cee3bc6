/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON objects that are written and read by tables of their members. */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "util/field.h"

enum member_kind { NUMBER, BOOL, TEXT, WORD, OBJECT };

/* One member of an object and the field of a struct that holds its value. */
struct member {
	const char *key;
	enum member_kind kind;
	bool optional;            /* left out if the value of the field is not from min to max */
	size_t offset, size;      /* of the field: 1, 4 or 8 bytes but for a TEXT or OBJECT */
	uint64_t min, max;        /* of a NUMBER, a WORD, or an optional BOOL */
	const char *const *words; /* by value */
	const struct member *members; /* of an OBJECT */
	size_t n_members;
};

/* clang-format off */
#define MEMBER(name, what, type, field, ...)                                                    \
	{ .key = (name), .kind = (what), .offset = offsetof(type, field),                       \
	  .size = sizeof(((type *)0)->field), __VA_ARGS__ }
#define RANGE_OF(name, type, field, least, most)                                                \
	MEMBER(name, NUMBER, type, field, .min = (least), .max = (most))
#define NUMBER_OF(name, type, field)                                                            \
	RANGE_OF(name, type, field, 0, sizeof(((type *)0)->field) == 4 ? UINT32_MAX : UINT64_MAX)
#define BOOL_OF(name, type, field) MEMBER(name, BOOL, type, field, .max = 1)
#define TEXT_OF(name, type, field) MEMBER(name, TEXT, type, field, )
#define WORD_OF(name, type, field, names, least, most)                                          \
	MEMBER(name, WORD, type, field, .words = (names), .min = (least), .max = (most))
#define OBJECT_OF(name, type, field, table)                                                     \
	MEMBER(name, OBJECT, type, field, .members = (table), .n_members = ARRAY_SIZE(table))
/* Left out while they are false, 0, or without a word: members that older files do not have. */
#define OPTIONAL_BOOL_OF(name, type, field)                                                     \
	MEMBER(name, BOOL, type, field, .min = 1, .max = 1, .optional = true)
#define OPTIONAL_RANGE_OF(name, type, field, most)                                              \
	MEMBER(name, NUMBER, type, field, .min = 1, .max = (most), .optional = true)
#define OPTIONAL_NUMBER_OF(name, type, field)                                                   \
	OPTIONAL_RANGE_OF(name, type, field, sizeof(((type *)0)->field) == 4 ? UINT32_MAX : UINT64_MAX)
#define OPTIONAL_WORD_OF(name, type, field, names, least, most)                                 \
	MEMBER(name, WORD, type, field, .words = (names), .min = (least), .max = (most),        \
	       .optional = true)
/* clang-format on */

/* ---- writing ------------------------------------------------------------------------- */

/* json-c returns NULL if an allocation fails, and takes NULL for the value null. So each step is
 * checked, and *failed tells at the end whether one failed. Keys must be literals, each of which is
 * added once. */
void object_add(bool *failed, struct json_object *object, const char *key,
		struct json_object *value);
void array_append(bool *failed, struct json_object *array, struct json_object *value);
void object_add_members(bool *failed, struct json_object *object, const struct member *members,
			size_t n, const void *base);

/* Copies JSON text with escapes in place of all but ASCII, and with '?' in place of bytes that are
 * not a printable character of UTF-8. NULL: out of memory. */
char *json_ascii(const char *text, size_t length);

/* ---- reading ------------------------------------------------------------------------- */

/* The first error is kept. After an error functions return a value in range, which must not be
 * used; strings are always terminated. */
struct read_error {
	int r; /* 0: none so far; -EINVAL, -ENOMEM */
	char *why;
	size_t size;
};

/* An object that is being read. Every member has to be there, with its type and in its range, and
 * no other. */
struct object {
	struct read_error *error;
	struct json_object *json; /* NULL after an error */
	int taken;                /* members that have been read */
};

/* text: NUL-terminated, and read up to length, at most INT_MAX / 3. NULL with an error if it is not JSON from its first to its last
 * byte, or -ENOMEM. */
struct json_object *object_parse(const char *text, size_t length, struct read_error *error);

void read_invalid(struct read_error *error, const char *key, const char *what); /* -EINVAL */

bool object_has(const struct object *object, const char *key);
uint64_t object_take_number(struct object *object, const char *key, uint64_t min, uint64_t max);
double object_take_real(struct object *object, const char *key, double min, double max);
void object_take_text(struct object *object, const char *key, char *ret, size_t size);
struct object object_take_object(struct object *object, const char *key);
void object_take_members(struct object *object, const struct member *members, size_t n, void *base);

/* *ret_n is 0 if the result is NULL. */
struct json_object *object_take_array(struct object *object, const char *key, size_t max,
				      size_t *ret_n);

/* Call when all known members have been read: others are an error. key: for that error. */
void object_end(const struct object *object, const char *key);

/* Elements of an array; key is for the error. */
struct object array_object(struct read_error *error, struct json_object *array, size_t i,
			   const char *key);
struct json_object *array_array(struct read_error *error, struct json_object *array, size_t i,
				const char *key, size_t least, size_t most);
uint64_t array_number(struct read_error *error, struct json_object *array, size_t i,
		      const char *key, uint64_t min, uint64_t max);
