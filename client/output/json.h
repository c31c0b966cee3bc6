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

/* Prints one value and a newline, and flushes: on several lines if out is a terminal, on one line
 * otherwise. json_print_line() always prints one line. */
void json_print(FILE *out, struct json_object *value);
void json_print_line(FILE *out, struct json_object *value);

struct json_object *json_free(struct json_object *value);
DEFINE_CLEANUP(struct json_object *, json_free)
