/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ids of events, their texts in the catalogue, and their rows in the manual: the same. */

#include "util/log-events.h"

#include "check.h"

#define ID_LENGTH 32

struct event {
	const char *name, *level, *id;
};

static const struct event events[] = {
#define EVENT_ROW(name, level, id) { #name, #level, id },
	LOG_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};

static const char *read_source(const char *name)
{
	static char texts[2][65536];
	static unsigned turn;
	char *text = texts[turn++ % 2], path[512];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", getenv("GPUARB_ROOT"), name);
	file = fopen(path, "re");
	CHECK(file);
	n = fread(text, 1, 65535, file);
	CHECK(n > 0 && n < 65535);
	text[n] = '\0';
	fclose(file);
	return text;
}

static const struct event *find(const char *id)
{
	for (size_t i = 0; i < LOG_N_EVENTS; i++)
		if (strncmp(events[i].id, id, ID_LENGTH) == 0)
			return &events[i];
	return NULL;
}

TEST(each_event_has_an_id_of_its_own)
{
	for (size_t i = 0; i < LOG_N_EVENTS; i++) {
		CHECK(strlen(events[i].id) == ID_LENGTH);
		CHECK(strspn(events[i].id, "0123456789abcdef") == ID_LENGTH);
		CHECK(find(events[i].id) == &events[i]);
	}
}

/* The texts that a paragraph has to have. */
static void check_text(const char *text)
{
	static const char *const headers[] = { "\nSubject: ", "\nDefined-By: gpuarb\n",
					       "\nDocumentation: man:" };
	const char *end = strstr(text, "\n\n");

	CHECK(end && end[2] && end[2] != '-');
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		const char *header = strstr(text, headers[i]);

		CHECK(header && header < end);
	}
}

TEST(each_event_has_a_text_in_the_catalogue_and_each_text_an_event)
{
	const char *catalogue = read_source("systemd/gpuarb.catalog");
	unsigned n = 0;

	for (const char *at = catalogue; (at = strstr(at, "\n-- ")); n++) {
		at += 4;
		CHECK(find(at) && at[ID_LENGTH] == '\n');
		check_text(at);
	}
	CHECK(n == LOG_N_EVENTS);
	for (size_t i = 0; i < LOG_N_EVENTS; i++)
		CHECK(strstr(catalogue, events[i].id));
}

/* Only fields that every entry has may stand in a text, or the reader sees their names. */
TEST(texts_name_fields_that_there_are)
{
	static const char *const fields[] = { "@GPUARB_LEASE@", "@GPUARB_TENANT@", "@GPUARB_UID@",
					      "@GPUARB_GPU@" };
	const char *at = read_source("systemd/gpuarb.catalog");
	unsigned n = 0;

	while ((at = strchr(at, '@'))) {
		size_t length = strcspn(at + 1, "@") + 2;
		bool known = false;

		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			known |= strncmp(at, fields[i], length) == 0;
		CHECK(known);
		at += length;
		n++;
	}
	CHECK(n > LOG_N_EVENTS);
}

/* "0f08… (info)" / "\tgranted: …". */
TEST(the_manual_has_each_event_with_its_level)
{
	const char *manual = read_source("docs/gpuarbd.8.scd");

	for (size_t i = 0; i < LOG_N_EVENTS; i++) {
		const char *row = strstr(manual, events[i].id);
		char wanted[128] = "";
		size_t n = 0;

		for (const char *p = events[i].level + 4; *p; p++)
			wanted[n++] = (char)(*p | 0x20);
		n += (size_t)sprintf(wanted + n, ")\n\t");
		for (const char *p = events[i].name; *p; p++)
			wanted[n++] = (char)(*p | 0x20);
		CHECK(row && row[-1] == '\n' && strncmp(row + ID_LENGTH, " (", 2) == 0);
		CHECK(strncmp(row + ID_LENGTH + 2, wanted, n) == 0);
	}
}
