/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <search.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/number.h"
#include "util/text.h"

#define FILE_BYTES (1024U * 1024U)
#define LINE_BYTES 190U /* libinih's own limit is 200 with line end, NUL and BOM */
#define ERRORS_MAX 100U /* in one file; after that the reader stops */

/* A section header or key, for finding the second one of the same name. */
struct seen {
	unsigned section_line; /* of the key's section; 0: none; UINT_MAX: this is a header */
	unsigned line;
	char name[];
};

struct reader {
	struct ini_place place;
	const char *next, *end; /* the text that has not been read */
	const char *line;       /* the current line without indentation and line end */
	int line_size;
	unsigned section_line;
	bool in_bad_section; /* the last header was refused: ignore its keys */
	bool header_pending; /* the current line is a header that libinih has not reported */
	bool key_pending;    /* the current line must be a key that libinih has not reported */
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
	if (place->errors)
		++*place->errors;
}

/* ---- the file ------------------------------------------------------------------------ */

static int refuse_file(const char *path, const char *why, struct diagnostics *diagnostics)
{
	diagnostics_add(diagnostics, true, "%s: %s", path, why);
	return -EINVAL;
}

static int open_file(const char *path, const struct trust *trust, struct diagnostics *diagnostics)
{
	int fd;

	if (trust)
		return trust_open(path, trust, O_RDONLY, diagnostics);
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ENOENT : refuse_file(path, strerror(errno), diagnostics);
}

/* Loads a file as read_whole() does; the text may contain NULs. trust NULL: the file may belong to any user.
 * -ENOENT without diagnostic; with one -EINVAL or -ENOMEM. */
static int load_file(const char *path, const struct trust *trust, char **ret, size_t *ret_size,
		     struct diagnostics *diagnostics)
{
	_cleanup_fd_ int fd = open_file(path, trust, diagnostics);
	int r = fd < 0 ? fd : read_whole(fd, FILE_BYTES, ret, ret_size);

	if (fd < 0 || r >= 0)
		return r;
	refuse_file(path,
		    r == -EFBIG    ? "larger than 1 MiB"
		    : r == -EISDIR ? "a directory, not a file"
		    : r == -EBADF  ? "not a regular file"
				   : strerror(-r),
		    diagnostics);
	return r == -ENOMEM ? r : -EINVAL;
}

/* ---- lines and libinih --------------------------------------------------------------- */

static int seen_compare(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;

	if (a->section_line != b->section_line)
		return a->section_line < b->section_line ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Returns the line of the first header or key of this name, 0 if this is the first. */
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

/* libinih truncates long names, keeps the last section where a header has no ']', and ignores
 * everything after it: compare its answer with the line. */
static bool is_whole_header(const struct reader *reader, const char *section)
{
	const char *end = reader->line + reader->line_size, *after;
	size_t size = strlen(section);

	after = reader->line + 1 + size;
	if (size == 0 || after >= end || *after != ']' || !is_ascii(section) ||
	    memcmp(reader->line + 1, section, size) != 0)
		return false;
	after += 1 + strspn(after + 1, " \t");
	return after >= end || *after == ';' || *after == '#';
}

static void take_section(struct reader *reader, const char *section)
{
	unsigned first;

	reader->section_line = reader->place.line;
	reader->in_bad_section = true;
	if (!is_whole_header(reader, section)) {
		ini_bad(&reader->place,
			"'%.*s' is not a section header: write [NAME] alone on its line, with a "
			"NAME of at most 49 ASCII characters",
			reader->line_size, reader->line);
		return;
	}
	first = first_seen(reader, UINT_MAX, section);
	if (first > 0) {
		ini_bad(&reader->place, "duplicate section [%s]: move its keys to line %u", section,
			first);
		return;
	}
	reader->in_bad_section = false;
	if (reader->on_section && !reader->stop)
		reader->on_section(&reader->place, section, reader->userdata);
}

static void take_key(struct reader *reader, const char *section, const char *key, const char *value)
{
	unsigned first;

	if (reader->line[strcspn(reader->line, "=:")] == ':')
		return; /* KEY: VALUE, which libinih accepts and gpuarb does not: still pending */
	reader->key_pending = false;
	if (reader->in_bad_section)
		return;
	if (!is_ascii(key) || !is_ascii(value)) {
		ini_bad(&reader->place,
			"'%s = %s': only comments may contain other than ASCII: write users and "
			"groups by number",
			key, value);
		return;
	}
	if (strstr(value, " #") || strstr(value, "\t#")) {
		ini_bad(&reader->place,
			"%s: '#' starts no comment after a value: move the comment to a line of its "
			"own, or write ' ;' before it",
			key);
		return;
	}
	first = first_seen(reader, reader->section_line, key);
	if (first > 0)
		ini_bad(&reader->place, "duplicate key '%s': remove it here or at line %u", key,
			first);
	else if (!reader->stop)
		reader->on_key(&reader->place, section, key, value, reader->userdata);
}

/* Called by libinih for each key, and for the empty key that read_line() adds after a header. */
static int on_inih_key(void *userdata, const char *section, const char *key, const char *value)
{
	struct reader *reader = userdata;

	if (*reader->line == '[')
		take_section(reader, section);
	else
		take_key(reader, section, key, value);
	return 1;
}

/* Refuses bytes that no text has, and lines that libinih would split. */
static bool line_fits(struct reader *reader, const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			continue;
		ini_bad(&reader->place, "not a text file: it contains byte 0x%02x", c);
		reader->stop = true;
		return false;
	}
	if (size > LINE_BYTES)
		ini_bad(&reader->place,
			"line of %zu bytes: the limit is %u: shorten it, for example by a group in "
			"place of many users",
			size, LINE_BYTES);
	return size <= LINE_BYTES;
}

/* Finds the next line in the text, without indentation (which libinih would take for the
 * continuation of a value) and line end. A line that was refused becomes empty. */
static void take_line(struct reader *reader)
{
	const char *line = reader->next, *end = memchr(line, '\n', (size_t)(reader->end - line));

	if (!end)
		end = reader->end;
	reader->next = end < reader->end ? end + 1 : end;
	reader->place.line++;

	if (end > line && end[-1] == '\r')
		end--;
	if (!line_fits(reader, line, (size_t)(end - line)))
		end = line;
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	reader->line = line;
	reader->line_size = (int)(end - line);
}

/* Reports the current line if libinih found no key in it. */
static void check_pending(struct reader *reader)
{
	if (reader->key_pending)
		ini_bad(&reader->place, "'%.*s': expected KEY = VALUE, [SECTION] or # comment",
			reader->line_size, reader->line);
	reader->key_pending = false;
	if (*reader->place.errors < ERRORS_MAX || reader->stop)
		return;
	ini_bad(&reader->place, "more than %u errors: the rest of the file was not read",
		ERRORS_MAX - 1);
	reader->stop = true;
}

/*
 * Stands in for fgets(). libinih counts lines but does not report them, nor sections without
 * keys: so lines are counted here, and each header is followed by an empty key, with which
 * libinih reports the section.
 */
static char *read_line(char *buf, int size, void *userdata)
{
	struct reader *reader = userdata;

	if (reader->header_pending) {
		reader->header_pending = false;
		return strcpy(buf, "=");
	}
	check_pending(reader);
	if (reader->stop || reader->next == reader->end || size <= (int)LINE_BYTES)
		return NULL;

	take_line(reader);
	memcpy(buf, reader->line, (size_t)reader->line_size);
	buf[reader->line_size] = '\0';
	reader->header_pending = *buf == '[';
	reader->key_pending = !strchr("[#;", *buf); /* also finds the NUL of an empty line */
	return buf;
}

int ini_read(const char *path, const struct trust *trust, ini_section_t on_section,
	     ini_key_t on_key, void *userdata, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *text = NULL;
	unsigned errors = 0;
	struct reader reader = {
		.place = { .file = path, .diagnostics = diagnostics, .errors = &errors },
		.on_section = on_section,
		.on_key = on_key,
		.userdata = userdata,
	};
	size_t size;
	int r;

	r = load_file(path, trust, &text, &size, diagnostics);
	if (r < 0)
		return r;

	reader.next = text;
	reader.end = text + size;
	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		reader.next += 3;

	ini_parse_stream(read_line, &reader, on_inih_key, &reader);
	check_pending(&reader);
	tdestroy(reader.seen, free);
	return errors > 0 ? -EINVAL : 0;
}

/* ---- values -------------------------------------------------------------------------- */

int ini_unsigned(const struct ini_place *place, const char *key, const char *value, unsigned min,
		 unsigned max, unsigned *ret)
{
	uint64_t number;

	if (number_parse(value, min, max, &number) < 0) {
		ini_bad(place, "%s: '%s' is not a number from %u to %u", key, value, min, max);
		return -EINVAL;
	}
	*ret = (unsigned)number;
	return 0;
}

int ini_percent(const struct ini_place *place, const char *key, const char *value, unsigned min,
		unsigned max, unsigned *ret)
{
	uint64_t number;

	if (number_parse_in(value, "%", min, max, &number) < 0) {
		ini_bad(place, "%s: '%s' is not a percentage from %u%% to %u%%, such as 60%%", key,
			value, min, max);
		return -EINVAL;
	}
	*ret = (unsigned)number;
	return 0;
}

int ini_bool(const struct ini_place *place, const char *key, const char *value, bool *ret)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "yes", true }, { "no", false },  { "true", true }, { "false", false },
		{ "on", true },  { "off", false }, { "1", true },    { "0", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(value, words[i].word) != 0)
			continue;
		*ret = words[i].value;
		return 0;
	}
	ini_bad(place, "%s: '%s' is not yes or no", key, value);
	return -EINVAL;
}

int ini_bytes(const struct ini_place *place, const char *key, const char *value, uint64_t *ret)
{
	if (number_parse_bytes(value, ret) >= 0)
		return 0;
	ini_bad(place, "%s: '%s' is not a size in bytes: use 4096, 512M or 2G (K, M, G, T)", key,
		value);
	return -EINVAL;
}

void ini_unknown_key(const struct ini_place *place, const char *section, const char *key,
		     const char *const *known)
{
	const char *nearest = text_nearest(key, known);
	char all[512] = "";
	size_t size = 0;

	if (nearest) {
		ini_bad(place, "unknown key '%s' in [%s]; did you mean '%s'?", key, section,
			nearest);
		return;
	}
	for (size_t i = 0; known[i] && size < sizeof(all); i++)
		size += (size_t)snprintf(all + size, sizeof(all) - size, "%s%s", i > 0 ? ", " : "",
					 known[i]);
	ini_bad(place, "unknown key '%s' in [%s]; known keys: %s", key, section, all);
}
