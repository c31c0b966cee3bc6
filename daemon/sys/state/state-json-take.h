/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Taking the members of a JSON object one by one, believing none of them. The first failure
 * is kept; what is taken after it is some value in range, not to be used. Strings end.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mask/codec.h"

struct trouble {
	int r; /* 0: none so far */
	char *why;
	size_t size;
};

/* At most INT_MAX bytes. NULL and -EINVAL for what is no JSON from its first to its last byte,
 * or -ENOMEM. */
struct json_object *object_parse(const char *text, size_t length, struct trouble *trouble);

void trouble_at(struct trouble *trouble, const char *key, const char *what); /* -EINVAL */

/* An object on the way through it: what nobody takes has a name that we do not know. */
struct object {
	struct trouble *trouble;
	struct json_object *json;
	int taken;
};

bool object_has(const struct object *object, const char *key);

uint64_t take_number(struct object *object, const char *key, uint64_t min, uint64_t max);
unsigned take_unsigned(struct object *object, const char *key);
bool take_bool(struct object *object, const char *key);
void take_text(struct object *object, const char *key, char *ret, size_t size);
struct object take_object(struct object *object, const char *key);

/* One of n words; its index. */
unsigned take_word(struct object *object, const char *key, const char *(*word)(unsigned index),
		   unsigned n);

/* A mask as words, "0x0000000f,0x…". deal: NULL where the GPU is not here, and with it the order of
 * the bits; *ret is then left alone. Returns how many bits are set. */
unsigned take_mask(struct object *object, const char *key, const struct codec *codec,
		   struct cuset *ret);

/* *ret_n is 0 where the answer is NULL. */
struct json_object *take_array(struct object *object, const char *key, size_t max, size_t *ret_n);

/* Elements of an array; key is for the sentence. */
struct object object_at(struct trouble *trouble, struct json_object *array, size_t i,
			const char *key);
uint64_t number_at(struct trouble *trouble, struct json_object *array, size_t i, const char *key,
		   uint64_t min, uint64_t max);

/* To be called when all that we know was taken. */
void object_end(const struct object *object, const char *what);
