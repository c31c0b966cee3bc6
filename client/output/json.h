/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * JSON to print. Values go into the object under the key, or onto the array where the key
 * is NULL. A program that runs out of memory here ends with a failure: half an object
 * must not pass for a whole one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/base.h"

struct json_object;

struct json_object *json_map(struct json_object *in, const char *key); /* in may be NULL */
struct json_object *json_list(struct json_object *in, const char *key);
void json_text(struct json_object *in, const char *key, const char *value); /* NULL: null */
void json_number(struct json_object *in, const char *key, uint64_t value);
void json_signed(struct json_object *in, const char *key, int64_t value);
void json_real(struct json_object *in, const char *key, double value);
void json_flag(struct json_object *in, const char *key, bool value);
void json_null(struct json_object *in, const char *key);
void json_numbers(struct json_object *in, const char *key, const uint32_t *values, size_t n);

/* One value and its newline, flushed: spread out on a terminal, on one line elsewhere; or
 * on one line always. */
void json_print(FILE *out, struct json_object *value);
void json_print_line(FILE *out, struct json_object *value);

struct json_object *json_free(struct json_object *value);
DEFINE_CLEANUP(struct json_object *, json_free)
