/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/debugfs-lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/number.h"

/* Quotes of lines in diagnostics; the kernel prints no longer ones. */
#define QUOTE_MAX 60

void lines_feed(struct lines *lines, const char *text, size_t size, const char *name, char *why,
		size_t why_size)
{
	lines->at = text;
	lines->end = text + size;
	lines->name = name;
	lines->why = why;
	lines->why_size = why_size;
}

int lines_next(struct lines *lines)
{
	const char *newline;

	if (lines->at == lines->end)
		return 0;
	newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	lines->line = lines->at;
	lines->length = (size_t)((newline ? newline : lines->end) - lines->at);
	lines->at = newline ? newline + 1 : lines->end;
	lines->number++;
	return newline ? 1 : lines_refuse_line(lines, "the text ends within a line");
}

bool lines_start_with(const struct lines *lines, const char *word)
{
	size_t n = strlen(word);

	return lines->length >= n && memcmp(lines->line, word, n) == 0;
}

bool lines_hex(const char *text, size_t n, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t value = 0;

	if (n == 0 || n > 8)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *digit = memchr(digits, text[i], 16);

		if (!digit)
			return false;
		value = value << 4 | (uint32_t)(digit - digits);
	}
	*ret = value;
	return true;
}

bool lines_decimal(const struct lines *lines, const char **at, uint32_t *ret)
{
	uint64_t value;

	/* A newline ends the line. */
	if (*at == lines->line + lines->length || number_take(at, &value) < 0 || value > INT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool lines_node(const struct lines *lines, uint32_t *ret)
{
	static const char before[] = ", gpu_id ";
	const char *end = lines->line + lines->length;
	const char *at = memmem(lines->line, lines->length, before, strlen(before));

	if (!at)
		return false;
	at += strlen(before);
	return end - at >= 2 && end - at <= 9 && end[-1] == ':' &&
	       lines_hex(at, (size_t)(end - at - 1), ret);
}

const struct gpu_info *lines_gpu(const struct lines *lines, uint32_t id)
{
	for (size_t i = 0; id != 0 && i < lines->n_gpus; i++)
		if (lines->gpus[i].kfd_gpu_id == id)
			return &lines->gpus[i];
	return NULL;
}

bool lines_words(const struct lines *lines, const char *at, uint32_t *ret, unsigned max,
		 unsigned *ret_n)
{
	const char *end = lines->line + lines->length;

	for (*ret_n = 0; at != end; at += 9)
		if (*ret_n == max || end - at < 9 || at[0] != ' ' ||
		    !lines_hex(at + 1, 8, &ret[(*ret_n)++]))
			return false;
	return true;
}

int lines_refuse(const struct lines *lines, const char *format, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	snprintf(lines->why, lines->why_size, "%s, line %zu: %s", lines->name, lines->number, text);
	return -EBADMSG;
}

int lines_refuse_line(const struct lines *lines, const char *what)
{
	char quote[QUOTE_MAX + 1];
	size_t n = lines->length < QUOTE_MAX ? lines->length : QUOTE_MAX;

	for (size_t i = 0; i < n; i++)
		quote[i] = lines->line[i] >= ' ' && lines->line[i] <= '~' ? lines->line[i] : '?';
	quote[n] = '\0';
	return lines_refuse(lines, "%s: \"%s\"", what, quote);
}
