/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state-json-take.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 8 /* ours are five deep */

static void fail(struct trouble *trouble, int r, const char *key, const char *what)
{
	if (trouble->r < 0)
		return;
	trouble->r = r;
	snprintf(trouble->why, trouble->size, "%s: %s", key, what);
}

void trouble_at(struct trouble *trouble, const char *key, const char *what)
{
	fail(trouble, -EINVAL, key, what);
}

/* Strict: text behind the value is an error. A NUL would end the text unseen. Numbers beyond
 * 64 bits come as the largest or, by newer versions of json-c, not at all. */
struct json_object *object_parse(const char *text, size_t length, struct trouble *trouble)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	struct json_object *json;

	if (!tokener) {
		fail(trouble, -ENOMEM, "text", "out of memory");
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	json = memchr(text, '\0', length) ? NULL
					  : json_tokener_parse_ex(tokener, text, (int)length);
	if (!json)
		trouble_at(trouble, "text", "is torn, or no JSON");
	json_tokener_free(tokener);
	return json;
}

bool object_has(const struct object *object, const char *key)
{
	return json_object_object_get_ex(object->json, key, NULL);
}

static struct json_object *take(struct object *object, const char *key, json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object->json, key, &value)) {
		trouble_at(object->trouble, key, "is missing");
		return NULL;
	}
	object->taken++;
	if (!json_object_is_type(value, type)) {
		trouble_at(object->trouble, key, "is of another type");
		return NULL;
	}
	return value;
}

/* NULL is a value that was not there: told already. */
static uint64_t number_in(struct trouble *trouble, const char *key, struct json_object *value,
			  uint64_t min, uint64_t max)
{
	uint64_t number;

	if (!value)
		return min;
	number = json_object_get_uint64(value);
	if (json_object_get_int64(value) >= 0 && number >= min && number <= max)
		return number;
	trouble_at(trouble, key, "is out of range");
	return min;
}

uint64_t take_number(struct object *object, const char *key, uint64_t min, uint64_t max)
{
	return number_in(object->trouble, key, take(object, key, json_type_int), min, max);
}

unsigned take_unsigned(struct object *object, const char *key)
{
	return (unsigned)take_number(object, key, 0, UINT_MAX);
}

bool take_bool(struct object *object, const char *key)
{
	return json_object_get_boolean(take(object, key, json_type_boolean));
}

void take_text(struct object *object, const char *key, char *ret, size_t size)
{
	struct json_object *value = take(object, key, json_type_string);
	size_t length;

	ret[0] = '\0';
	if (!value)
		return;
	length = (size_t)json_object_get_string_len(value);
	if (length >= size || memchr(json_object_get_string(value), '\0', length))
		trouble_at(object->trouble, key, "is too long, or no text");
	else
		memcpy(ret, json_object_get_string(value), length + 1);
}

struct object take_object(struct object *object, const char *key)
{
	return (struct object){ object->trouble, take(object, key, json_type_object), 0 };
}

unsigned take_word(struct object *object, const char *key, const char *(*word)(unsigned index),
		   unsigned n)
{
	char text[32];

	take_text(object, key, text, sizeof(text));
	for (unsigned i = 0; i < n; i++)
		if (strcmp(text, word(i)) == 0)
			return i;
	trouble_at(object->trouble, key, "is a word that this version does not know");
	return 0;
}

struct json_object *take_array(struct object *object, const char *key, size_t max, size_t *ret_n)
{
	struct json_object *array = take(object, key, json_type_array);

	*ret_n = array ? json_object_array_length(array) : 0;
	if (*ret_n <= max)
		return array;
	trouble_at(object->trouble, key, "has too many");
	*ret_n = 0;
	return NULL;
}

static struct json_object *element(struct trouble *trouble, struct json_object *array, size_t i,
				   const char *key, json_type type)
{
	struct json_object *value = json_object_array_get_idx(array, i);

	if (json_object_is_type(value, type))
		return value;
	trouble_at(trouble, key, "is of another type");
	return NULL;
}

struct object object_at(struct trouble *trouble, struct json_object *array, size_t i,
			const char *key)
{
	return (struct object){ trouble, element(trouble, array, i, key, json_type_object), 0 };
}

uint64_t number_at(struct trouble *trouble, struct json_object *array, size_t i, const char *key,
		   uint64_t min, uint64_t max)
{
	return number_in(trouble, key, element(trouble, array, i, key, json_type_int), min, max);
}

void object_end(const struct object *object, const char *what)
{
	if (object->json && json_object_object_length(object->json) != object->taken)
		trouble_at(object->trouble, what, "has a member that this version does not know");
}

/* ---- masks ----------------------------------------------------------------------------- */

/* "0x" and eight digits, as they are written. */
static bool parse_word(const char *text, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t word = 0;

	if (text[0] != '0' || text[1] != 'x')
		return false;
	for (unsigned i = 2; i < 10; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return false;
		word = word << 4 | (uint32_t)(digit - digits);
	}
	*ret = word;
	return true;
}

static bool parse_mask(const char *text, uint32_t words[static CODEC_WORDS], size_t *ret_n)
{
	size_t n = 0;

	for (;; text++) {
		if (n == CODEC_WORDS || !parse_word(text, &words[n]))
			return false;
		n++;
		text += 10;
		if (*text != ',')
			break;
	}
	*ret_n = n;
	return *text == '\0';
}

/* The CUs that the hardware makes of the mask. Each bit has to reach one, each WGP is whole:
 * then the same mask comes out of the CUs. */
static bool decode(const struct codec *codec, const uint32_t *words, size_t n, struct cuset *ret)
{
	uint32_t again[CODEC_WORDS];

	if (n != codec_words(codec))
		return false;
	codec_decode(codec, words, n, ret);
	codec_encode(codec, ret, again);
	return memcmp(words, again, n * sizeof(*words)) == 0;
}

unsigned take_mask(struct object *object, const char *key, const struct codec *codec,
		   struct cuset *ret)
{
	char text[CODEC_WORDS * sizeof("0x00000000,")];
	uint32_t words[CODEC_WORDS];
	unsigned count = 0;
	size_t n;

	take_text(object, key, text, sizeof(text));
	if (!parse_mask(text, words, &n)) {
		trouble_at(object->trouble, key, "is no mask");
		return 0;
	}
	if (codec && !decode(codec, words, n, ret))
		trouble_at(object->trouble, key, "is no mask of this GPU");
	for (size_t i = 0; i < n; i++)
		count += cuset_count_word(words[i]);
	return count;
}
