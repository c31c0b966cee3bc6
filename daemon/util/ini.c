/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ini.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/textfile.h"

#define LINE_BYTES 190U     /* libinih's own limit is 200 with line end, NUL and BOM */
#define SECTION_BYTES 49U   /* libinih cuts longer ones short */
#define COMPLAINTS_MAX 100U /* of one file: what follows is no use to anybody */

/* Where a header stood, or a key of a section. */
struct seen {
	unsigned section_line; /* 0: before the first header; UINT_MAX: this is a header */
	unsigned line;
	char name[];
};

struct reader {
	struct ini_place place;
	const char *next, *end; /* of the text */
	unsigned section_line;
	bool lost;         /* the last header was refused: its keys mean nothing */
	bool key_expected; /* libinih has not yet told the line's key */
	bool stop;
	void *seen; /* tree of struct seen */
	ini_section_t on_section;
	ini_key_t on_key;
	void *userdata;
};

void ini_bad(const struct ini_place *place, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diagnostics_add(place->diagnostics, true, "%s:%u: %s", place->file, place->line, text);
	if (place->complaints)
		++*place->complaints;
}

static int seen_compare(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;

	if (a->section_line != b->section_line)
		return a->section_line < b->section_line ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Returns the line where this name was first, 0 if here. */
static unsigned first_seen(struct reader *reader, unsigned section_line, const char *name)
{
	size_t size = strlen(name) + 1;
	struct seen *seen = malloc(sizeof(*seen) + size), **found = NULL;
	unsigned line = 0;

	if (seen) {
		*seen = (struct seen){ .section_line = section_line, .line = reader->place.line };
		memcpy(seen->name, name, size);
		found = tsearch(seen, &reader->seen, seen_compare);
	}
	if (!found) {
		ini_bad(&reader->place, "out of memory");
		reader->stop = true;
	} else if (*found != seen) {
		line = (*found)->line;
	}
	if (!found || *found != seen)
		free(seen);
	return line;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* "[NAME]", and nothing but a comment after it. */
static bool read_header(struct reader *reader, char *line)
{
	char *close = strchr(line, ']'),
	     *after = close ? close + 1 + strspn(close + 1, " \t") : NULL;
	const char *name = line + 1;
	unsigned first;

	if (!close || close == name || (*after && *after != ';' && *after != '#')) {
		ini_bad(&reader->place, "'%s' is not a [section] alone on its line", line);
		return false;
	}
	close[1] = '\0';
	if ((size_t)(close - name) > SECTION_BYTES || strchr(line, ';') || !is_ascii(line)) {
		ini_bad(&reader->place, "section %s: a name has up to %u ASCII characters, no ';'",
			line, SECTION_BYTES);
		return false;
	}

	*close = '\0';
	first = first_seen(reader, UINT_MAX, name);
	if (first > 0)
		ini_bad(&reader->place, "[%s] is here already at line %u: put its keys together",
			name, first);
	else if (reader->on_section && !reader->stop)
		reader->on_section(&reader->place, name, reader->userdata);
	*close = ']';
	return first == 0;
}

static int on_key(void *userdata, const char *section, const char *key, const char *value)
{
	struct reader *reader = userdata;
	unsigned first;

	reader->key_expected = false;
	if (reader->lost)
		return 1;

	if (!is_ascii(key) || !is_ascii(value)) {
		ini_bad(&reader->place, "'%s': keys and values are ASCII", key);
		return 1;
	}
	first = first_seen(reader, reader->section_line, key);
	if (first > 0)
		ini_bad(&reader->place, "%s: is here already at line %u: a key stands once", key,
			first);
	else if (!reader->stop)
		reader->on_key(&reader->place, section, key, value, reader->userdata);
	return 1;
}

/* A byte that no text has, or the line is too long for libinih to see it whole. */
static bool line_fits(struct reader *reader, const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			continue;
		ini_bad(&reader->place, "byte 0x%02x: this is not a text file", c);
		reader->stop = true;
		return false;
	}
	if (size > LINE_BYTES)
		ini_bad(&reader->place, "the line has %zu bytes, more than %u", size, LINE_BYTES);
	return size <= LINE_BYTES;
}

/* The last line was neither comment nor header, and libinih found no key in it. */
static void settle_last_line(struct reader *reader)
{
	if (reader->key_expected)
		ini_bad(&reader->place, "this is not KEY = VALUE, a [section] or a # comment");
	reader->key_expected = false;
	if (*reader->place.complaints < COMPLAINTS_MAX || reader->stop)
		return;
	ini_bad(&reader->place, "too much is wrong: the rest was not read");
	reader->stop = true;
}

/* Takes the next line out of the text into buf, without indentation and line end. */
static void take_line(struct reader *reader, char *buf)
{
	const char *line = reader->next, *end = memchr(line, '\n', (size_t)(reader->end - line));
	size_t size;

	if (!end)
		end = reader->end;
	reader->next = end < reader->end ? end + 1 : end;
	reader->place.line++;
	buf[0] = '\0';

	size = (size_t)(end - line);
	if (size > 0 && line[size - 1] == '\r')
		size--;
	if (!line_fits(reader, line, size))
		return;
	while (size > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		size--;
	}
	memcpy(buf, line, size);
	buf[size] = '\0';
}

/* Stands in for fgets(): libinih 55 tells no line numbers, so lines are counted here, and
 * what it would pass over or cut short is refused before it sees it. */
static char *read_line(char *buf, int size, void *stream)
{
	struct reader *reader = stream;

	settle_last_line(reader);
	if (reader->stop || reader->next == reader->end || size <= (int)LINE_BYTES)
		return NULL;

	take_line(reader, buf);
	if (*buf == '[') {
		reader->section_line = reader->place.line;
		reader->lost = !read_header(reader, buf);
		if (reader->lost)
			*buf = '\0';
	} else if (*buf && !strchr("#;", *buf)) {
		reader->key_expected = true;
		if (buf[strcspn(buf, "=:")] == ':')
			*buf = '\0'; /* the other way to write a key, which is not ours */
	}
	return buf;
}

int ini_read_sections(const char *path, const struct trust *trust, ini_section_t on_section,
		      ini_key_t key, void *userdata, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *text = NULL;
	unsigned complaints = 0;
	struct reader reader = {
		.place = { .file = path, .diagnostics = diagnostics, .complaints = &complaints },
		.on_section = on_section,
		.on_key = key,
		.userdata = userdata,
	};
	size_t size;
	int r;

	r = textfile_load(path, trust, &text, &size, diagnostics);
	if (r < 0)
		return r;

	reader.next = text;
	reader.end = text + size;
	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		reader.next += 3;

	ini_parse_stream(read_line, &reader, on_key, &reader);
	settle_last_line(&reader);
	tdestroy(reader.seen, free);
	return complaints > 0 ? -EINVAL : 0;
}

int ini_read(const char *path, const struct trust *trust, ini_key_t key, void *userdata,
	     struct diagnostics *diagnostics)
{
	return ini_read_sections(path, trust, NULL, key, userdata, diagnostics);
}
