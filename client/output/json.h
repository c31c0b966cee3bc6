/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JSON output. A value goes into an object under the key, or onto an array if the key is NULL. Out
 * of memory ends the program with a failure: no incomplete object is printed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/each.h"
#include "libgpuarb/gpuarb.h"

struct json_object;

struct json_object *json_map(struct json_object *in, const char *key); /* in may be NULL */
struct json_object *json_list(struct json_object *in, const char *key);
void json_text(struct json_object *in, const char *key, const char *value); /* NULL: null */
void json_text_known(struct json_object *in, const char *key,
		     const char *value); /* "": null, too */
void json_text_or(struct json_object *in, const char *key, const char *value,
		  const char *unknown); /* the unknown one: null, too */
void json_number(struct json_object *in, const char *key, uint64_t value);
void json_known(struct json_object *in, const char *key, uint64_t value,
		uint64_t unknown); /* null */
void json_signed(struct json_object *in, const char *key, int64_t value);
void json_real(struct json_object *in, const char *key, double value); /* NAN: null */
void json_flag(struct json_object *in, const char *key, bool value);
void json_null(struct json_object *in, const char *key);
void json_value(struct json_object *in, const char *key,
		struct json_object *value); /* taken over */
void json_mask(struct json_object *in, const char *key, const uint32_t *mask, size_t words);
void json_numbers(struct json_object *in, const char *key, const uint32_t *values, size_t n);
void json_words(struct json_object *in, const char *key, const char *const *words, size_t n);

/* Adds fields to an object: ("pid", row->pid). By the type of the value text, a number, a real or a flag; a third
 * word is the value that stands for an unknown one, and becomes null: ("uid", row->uid, UINT32_MAX). A
 * mask comes with its words. */
#define JSON_FIELDS(in, ...) ((void)(EACH(JSON_FIELD, in, 0, __VA_ARGS__)))

/* Adds members of an object under their names: text as json_text_known(). */
#define JSON_MEMBERS(in, object, ...) ((void)(EACH(JSON_MEMBER, in, object, __VA_ARGS__)))

/* Adds a list to an object, with an object of these fields for each `row`: `next` is the row with the number `at`, and
 * NULL after the last one. */
#define JSON_ROWS(in, key, row, next, ...) JSON_ADD_ROWS(json_list(in, key), row, next, __VA_ARGS__)

/* The same for a list that is there. */
#define JSON_ADD_ROWS(list, row, next, ...)                           \
	do {                                                          \
		struct json_object *list_ = list, *map_;              \
		size_t at = 0;                                        \
                                                                      \
		for (__auto_type row = next; row; at++, row = next) { \
			map_ = json_map(list_, NULL);                 \
			JSON_FIELDS(map_, __VA_ARGS__);               \
		}                                                     \
	} while (0)

/* clang-format off */
#define JSON_MEMBER(in, object, member)                                                    \
	_Generic((object)->member, bool: json_flag, double: json_real, const char *: json_text_known, \
		 uint32_t: json_number, uint64_t: json_number)(in, #member, (object)->member)
#define JSON_FIELD(in, unused, field) JSON_FIELD_OF(in, JSON_WORDS field)
#define JSON_WORDS(...) __VA_ARGS__
#define JSON_FIELD_OF(in, ...) JSON_FIELD_IN(in, __VA_ARGS__)
#define JSON_FIELD_IN(in, key, value, ...)                                                 \
	JSON_FIELD_##__VA_OPT__(KNOWN)(in, key, value __VA_OPT__(,) __VA_ARGS__)
#define JSON_FIELD_(in, key, value)                                                        \
	_Generic((value), bool: json_flag, double: json_real, const char *: json_text,     \
		 char *: json_text, uint32_t: json_number, uint64_t: json_number,           \
		 int64_t: json_signed)(in, key, value)
#define JSON_FIELD_KNOWN(in, key, value, unknown)                                          \
	_Generic((value), const char *: json_text_or, char *: json_text_or,                \
		 const uint32_t *: json_mask, default: json_known)(in, key, value, unknown)
/* clang-format on */

/* Prints one value and a newline, flushes, and frees the value: on several lines if out is a
 * terminal, on one line otherwise. json_print_line() always prints one line. */
void json_print(FILE *out, struct json_object *value);
void json_print_line(FILE *out, struct json_object *value);

/* The value on one line, until it is freed or printed. */
const char *json_line(struct json_object *value);
void json_free(struct json_object *value);

/* Objects of the bus: keys as on the bus with underscores, null for unknown values. */

void json_partition(struct json_object *list, const struct gpuarb_partition *partition);

/* As a program knows its lease. */
void json_print_lease(FILE *out, const struct gpuarb_lease_info *lease);

/* Adds the last refusals; an empty array for NULL. */
void json_refusals(struct json_object *map, const struct gpuarb *gpuarb);

/* What the last plan would take from other leases. */
void json_effects(struct json_object *map, const struct gpuarb *gpuarb);

/* GPU i of gpuarb_view_gpus(), and lease i of gpuarb_view_leases() with all that is known of it. NULL: not
 * in a list; the result is for json_print(). */
struct json_object *json_gpu(struct json_object *list, const struct gpuarb_view *view, size_t i);
struct json_object *json_lease(struct json_object *list, const struct gpuarb_view *view, size_t i);
