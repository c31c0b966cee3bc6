/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "request-text.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"

enum type { TYPE_TEXT, TYPE_BOOL, TYPE_UNSIGNED, TYPE_U64, TYPE_NAME };

struct key {
	const char *name;
	enum type type;
	size_t offset;
	const char *const *names; /* of TYPE_NAME */
};

#define WANT(key, type, member)                                \
	{                                                      \
		key, type, offsetof(struct want, member), NULL \
	}
#define OPTION(key, type, member)                                 \
	{                                                         \
		key, type, offsetof(struct request, member), NULL \
	}

static const struct key want_keys[] = {
	WANT("gpu", TYPE_TEXT, gpu),
	WANT("cus", TYPE_UNSIGNED, cus),
	WANT("cus-min", TYPE_UNSIGNED, cus_min),
	WANT("cus-max", TYPE_UNSIGNED, cus_max),
	WANT("cus-percent", TYPE_UNSIGNED, cus_percent),
	WANT("cus-min-percent", TYPE_UNSIGNED, cus_min_percent),
	WANT("cus-max-percent", TYPE_UNSIGNED, cus_max_percent),
	WANT("shader-engines", TYPE_UNSIGNED, shader_engines),
	WANT("exact", TYPE_BOOL, exact),
	WANT("queues", TYPE_U64, queues),
	WANT("processes", TYPE_U64, processes),
	WANT("sdma-queues", TYPE_U64, sdma_queues),
	WANT("sdma-xgmi-queues", TYPE_U64, sdma_xgmi_queues),
	WANT("cooperative", TYPE_U64, cooperative),
	WANT("vram", TYPE_U64, vram),
	WANT("priority", TYPE_UNSIGNED, priority),
	{ "isolation", TYPE_NAME, offsetof(struct want, isolation), isolation_names },
	{ NULL, TYPE_TEXT, 0, NULL },
};

static const struct key option_keys[] = {
	OPTION("token", TYPE_TEXT, token),
	OPTION("wait-usec", TYPE_U64, wait_usec),
	OPTION("start-inactive", TYPE_BOOL, start_inactive),
	OPTION("adaptable", TYPE_BOOL, adaptable),
	OPTION("exclusive", TYPE_BOOL, exclusive),
	OPTION("requeue", TYPE_BOOL, requeue),
	{ "class", TYPE_NAME, offsetof(struct request, class), class_names },
	{ NULL, TYPE_TEXT, 0, NULL },
};

static int index_of(const char *const *names, const char *name)
{
	int i = 0;

	for (; strcmp(names[i], name) != 0; i++)
		CHECK(names[i + 1]);
	return i;
}

static void set(void *at, const struct key *key, const char *value)
{
	char *end;
	uint64_t number = strtoull(value, &end, 10);

	if (strcmp(value, "forever") == 0) {
		*(uint64_t *)at = UINT64_MAX;
		return;
	}

	switch (key->type) {
	case TYPE_TEXT: strcpy(at, value); return;
	case TYPE_NAME: *(int *)at = index_of(key->names, value); return;
	case TYPE_BOOL: *(bool *)at = number; break;
	case TYPE_UNSIGNED: *(unsigned *)at = (unsigned)number; break;
	case TYPE_U64: *(uint64_t *)at = *end == 'G' ? number << 30 : number;
	}
	CHECK(end > value && (!*end || strcmp(end, "G") == 0));
}

/* Words KEY=VALUE. */
static void set_words(void *base, const struct key *keys, char *words)
{
	char *name, *value;

	while ((value = strsep(&words, " "))) {
		const struct key *key = keys;

		name = strsep(&value, "=");
		if (!value)
			continue; /* between two spaces */
		for (; strcmp(key->name, name) != 0; key++)
			CHECK(key[1].name);
		set((char *)base + key->offset, key, value);
	}
}

struct request request_of_list(const char *format, va_list args)
{
	char text[256], *options = text, *wants, *want;
	struct request request;

	CHECK((size_t)vsnprintf(text, sizeof(text), format, args) < sizeof(text));
	memset(&request, 0, sizeof(request));
	request.class = -1;
	wants = strsep(&options, ";");
	while ((want = strsep(&wants, "|"))) {
		CHECK(request.n_wants < REQUEST_WANTS);
		want_init(&request.wants[request.n_wants]);
		set_words(&request.wants[request.n_wants++], want_keys, want);
	}
	set_words(&request, option_keys, options);
	return request;
}

struct request request_of(const char *format, ...)
{
	struct request request;
	va_list args;

	va_start(args, format);
	request = request_of_list(format, args);
	va_end(args);
	return request;
}
