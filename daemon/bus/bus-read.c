/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads wants and options from a message into a struct request. A key that is unknown, duplicate,
 * of another type or out of range is refused as InvalidRequest, with the key, the number of the
 * want (from 1) and the values that would work.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bus/bus-read.h"
#include "core/policy/request.h"
#include "util/field.h"
#include "util/text.h"

/* ---- keys: one row for each key and type; rows of one key follow one another ----------- */

/* The arguments of one call. */
struct reading {
	struct request request;
	int process_fd;
};

struct key {
	const char *name;
	char type;                     /* of the value on the bus: u t b s h */
	size_t offset, size;           /* of the field that it fills */
	uint64_t min, max;             /* u, t: its value; s: its length in bytes */
	int (*word)(const char *word); /* s from a vocabulary: the value of a bool or an enum */
	const char *works;             /* the values that work, where min and max do not tell */
};

#define COUNT_MAX 65535U             /* more than any GPU has; sums of 64 of it fit unsigned */
#define VRAM_MAX (UINT64_C(1) << 50) /* likewise, in bytes */

static int exclusive_from_name(const char *name)
{
	return strcmp(name, exclusive_names[EXCLUSIVE_ACTIVE]) == 0 ? true : -EINVAL;
}

static int shape_from_name(const char *name)
{
	if (strcmp(name, "any") == 0)
		return true;
	return strcmp(name, "rectangle") == 0 ? false : -EINVAL;
}

static int want_priority_from_name(const char *name)
{
	return strcmp(name, "by-class") == 0 ? (int)PRIORITY_BY_CLASS : priority_from_name(name);
}

#define PRIORITY_WORKS "low, normal, high or by-class (s), or a number (u) from 0 to 15"
/* clang-format off */
#define WANT(n, t, field, ...)                                                             \
	{ .name = n, .type = t, .offset = offsetof(struct want, field),                    \
	  .size = sizeof(((struct want *)NULL)->field), __VA_ARGS__ }
/* clang-format on */

static const struct key want_keys[] = {
	WANT("gpu", 's', gpu, .min = 1, .max = WANT_GPUS - 1),
	WANT("cus", 'u', cus, .min = 1, .max = COUNT_MAX),
	WANT("shader-engines", 'u', shader_engines, .min = 1, .max = COUNT_MAX),
	WANT("cus-min", 'u', cus_min, .min = 1, .max = COUNT_MAX),
	WANT("cus-max", 'u', cus_max, .min = 1, .max = COUNT_MAX),
	WANT("cus-percent", 'u', cus_percent, .min = 1, .max = 100),
	WANT("cus-min-percent", 'u', cus_min_percent, .min = 1, .max = 100),
	WANT("cus-max-percent", 'u', cus_max_percent, .min = 1, .max = 100),
	WANT("exact", 'b', exact),
	WANT("shape", 's', any_shape, .word = shape_from_name, .works = "rectangle or any (s)"),
	WANT("queues", 'u', queues, .min = 1, .max = COUNT_MAX),
	WANT("streams", 'u', streams, .max = COUNT_MAX),
	WANT("processes", 'u', processes, .min = 1, .max = COUNT_MAX),
	WANT("sdma-queues", 'u', sdma_queues, .max = COUNT_MAX),
	WANT("sdma-xgmi-queues", 'u', sdma_xgmi_queues, .max = COUNT_MAX),
	WANT("vram", 't', vram, .max = VRAM_MAX),
	WANT("cooperative", 'b', cooperative),
	WANT("priority", 's', priority, .word = want_priority_from_name, .works = PRIORITY_WORKS),
	WANT("priority", 'u', priority, .max = PRIORITY_MAX, .works = PRIORITY_WORKS),
	WANT("isolation", 's', isolation, .word = isolation_from_name,
	     .works = "shader-engine, cu or shared (s)"),
};

/* clang-format off */
#define OPTION(n, t, field, ...)                                                           \
	{ .name = n, .type = t, .offset = offsetof(struct reading, field),                 \
	  .size = sizeof(((struct reading *)NULL)->field), __VA_ARGS__ }
/* clang-format on */

static const struct key option_keys[] = {
	OPTION("class", 's', request.class, .word = class_from_name,
	       .works = "realtime, guaranteed or besteffort (s)"),
	OPTION("name", 's', request.name, .max = REQUEST_TEXT - 1),
	OPTION("tenant", 's', request.tenant, .min = 1, .max = REQUEST_TEXT - 1),
	OPTION("token", 's', request.token, .min = 1, .max = REQUEST_TEXT - 1),
	OPTION("wait-usec", 't', request.wait_usec, .max = UINT64_MAX),
	OPTION("duration-usec", 't', request.duration_usec, .min = 1000000, .max = UINT64_MAX / 2),
	OPTION("start-inactive", 'b', request.start_inactive),
	OPTION("adaptable", 'b', request.adaptable),
	OPTION("requeue", 'b', request.requeue),
	OPTION("exclusive", 's', request.exclusive, .word = exclusive_from_name,
	       .works = "active (s)"),
	OPTION("process", 'h', process_fd, .works = "a pidfd (h)"),
};

/* ---- what the bus answers ------------------------------------------------------------ */

int bus_read_entries(sd_bus_message *m,
		     int (*read)(sd_bus_message *m, const char *key, void *userdata),
		     void *userdata)
{
	const char *key;
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read_basic(m, 's', &key);
		if (r >= 0)
			r = read(m, key, userdata);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* ---- reading ------------------------------------------------------------------------- */

/* The dictionary that is read now. */
struct dict {
	sd_bus_message *m;
	const struct key *keys;
	size_t n_keys;
	char place[16]; /* "want 2", "options" */
	void *target;
	uint32_t seen; /* keys that were read, as bits */
	struct result *result;
};

static int malformed(struct result *result)
{
	return result_set(result, RESULT_INVALID_REQUEST,
			  "the arguments do not have the signature of the method");
}

static int unknown_key(const struct dict *dict, const char *name)
{
	char known[256] = "", shown[40];
	size_t used = 0;

	for (size_t i = 0; i < dict->n_keys && used < sizeof(known); i++)
		if (i == 0 || strcmp(dict->keys[i].name, dict->keys[i - 1].name) != 0)
			used += (size_t)snprintf(known + used, sizeof(known) - used, " %s",
						 dict->keys[i].name);
	return result_set(dict->result, RESULT_INVALID_REQUEST, "%s: unknown key \"%s\": %s%s",
			  dict->place, text_clean(shown, sizeof(shown), name),
			  dict->n_keys > 0 ? "known keys are" : "no key is known here", known);
}

/* "want 2: cus is 0; it must be a number (u) from 1 to 65535" */
static int bad_value(const struct dict *dict, const struct key *key, const char *got)
{
	unsigned long long min = key->min, max = key->max;
	char works[80];

	if (key->works)
		snprintf(works, sizeof(works), "%s", key->works);
	else if (key->type == 'b')
		snprintf(works, sizeof(works), "a boolean (b)");
	else if (key->type == 's')
		snprintf(works, sizeof(works), "printable text (s) of %llu to %llu bytes", min,
			 max);
	else
		snprintf(works, sizeof(works), "a number (%c) from %llu to %llu", key->type, min,
			 max);
	return result_set(dict->result, RESULT_INVALID_REQUEST, "%s: %s is %s; it must be %s",
			  dict->place, key->name, got, works);
}

static int take_number(const struct dict *dict, const struct key *key, uint64_t number)
{
	char *field = (char *)dict->target + key->offset;
	char got[24];

	if (number < key->min || number > key->max) {
		snprintf(got, sizeof(got), "%llu", (unsigned long long)number);
		return bad_value(dict, key, got);
	}
	field_set(field, key->size, number);
	return 0;
}

static bool take_word(const struct key *key, const char *word, char *field)
{
	int value = key->word(word);

	if (value < 0)
		return false;
	field_set(field, key->size, (uint64_t)value);
	return true;
}

static int take_text(const struct dict *dict, const struct key *key, const char *text)
{
	char *field = (char *)dict->target + key->offset;
	size_t length = strlen(text);
	char shown[40], got[48];

	if (key->word && take_word(key, text, field))
		return 0;
	if (!key->word && length >= key->min && length <= key->max && text_printable(text)) {
		memcpy(field, text, length + 1);
		return 0;
	}
	snprintf(got, sizeof(got), "\"%s\"", text_clean(shown, sizeof(shown), text));
	return bad_value(dict, key, got);
}

static int take_value(const struct dict *dict, const struct key *key)
{
	char *field = (char *)dict->target + key->offset;
	union {
		uint32_t u;
		uint64_t t;
		int b, h;
		const char *s;
	} value;

	if (sd_bus_message_read_basic(dict->m, key->type, &value) < 0)
		return malformed(dict->result);

	switch (key->type) {
	case 'u': return take_number(dict, key, value.u);
	case 't': return take_number(dict, key, value.t);
	case 's': return take_text(dict, key, value.s);
	case 'b': field_set(field, key->size, value.b != 0); return 0;
	default: field_set(field, key->size, (uint64_t)value.h); return 0;
	}
}

static int read_entry(sd_bus_message *m, const char *name, void *userdata)
{
	struct dict *dict = userdata;
	char got[40], shown[24];
	size_t i = 0, row;
	const char *type;
	int r;

	if (sd_bus_message_peek_type(m, NULL, &type) < 0)
		return malformed(dict->result);

	while (i < dict->n_keys && strcmp(dict->keys[i].name, name) != 0)
		i++;
	if (i == dict->n_keys)
		return unknown_key(dict, name);
	if (dict->seen & UINT32_C(1) << i)
		return bad_value(dict, &dict->keys[i], "given twice");
	dict->seen |= UINT32_C(1) << i;

	for (row = i; row < dict->n_keys && strcmp(dict->keys[row].name, name) == 0; row++)
		if (type[0] == dict->keys[row].type && type[1] == '\0')
			break;
	if (row == dict->n_keys || strcmp(dict->keys[row].name, name) != 0) {
		snprintf(got, sizeof(got), "of type %s", text_clean(shown, sizeof(shown), type));
		return bad_value(dict, &dict->keys[i], got);
	}

	if (sd_bus_message_enter_container(m, 'v', type) < 0)
		return malformed(dict->result);
	r = take_value(dict, &dict->keys[row]);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_dict(struct dict *dict)
{
	int r = bus_read_entries(dict->m, read_entry, dict);

	return r < 0 && dict->result->kind == RESULT_OK ? malformed(dict->result) : r;
}

static int read_want(sd_bus_message *m, struct request *request, struct result *result)
{
	struct dict dict = {
		.m = m, .keys = want_keys, .n_keys = ARRAY_SIZE(want_keys), .result = result
	};
	int r;

	if (request->n_wants == REQUEST_WANTS)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "wants: too many: a lease takes 1 to %u", REQUEST_WANTS);
	dict.target = &request->wants[request->n_wants];
	snprintf(dict.place, sizeof(dict.place), "want %zu", request->n_wants + 1);
	want_init(dict.target);
	r = read_dict(&dict);
	if (r >= 0)
		request->n_wants++;
	return r;
}

static int read_wants(sd_bus_message *m, struct request *request, struct result *result)
{
	int r;

	if (sd_bus_message_enter_container(m, 'a', "a{sv}") <= 0)
		return malformed(result);
	while ((r = sd_bus_message_at_end(m, 0)) == 0) {
		r = read_want(m, request, result);
		if (r < 0)
			return r;
	}
	if (r < 0 || sd_bus_message_exit_container(m) < 0)
		return malformed(result);
	if (request->n_wants == 0)
		return result_set(result, RESULT_INVALID_REQUEST,
				  "wants: none given: a lease takes 1 to %u", REQUEST_WANTS);
	return 0;
}

int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result)
{
	struct reading reading = { .request.class = -1, .process_fd = -1 };
	struct dict options = { .m = m,
				.keys = option_keys,
				.n_keys = ret_process_fd ? ARRAY_SIZE(option_keys) : 0,
				.place = "options",
				.target = &reading,
				.result = result };
	int r;

	r = read_wants(m, &reading.request, result);
	if (r >= 0)
		r = read_dict(&options);
	if (r < 0)
		return r;
	request_recall(&reading.request, ret);
	if (ret_process_fd)
		*ret_process_fd = reading.process_fd;
	return 0;
}
