/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 64U /* longer words are not compared */

/* Well-formed UTF-8 sequences by their first byte and the range of the second (The Unicode
 * Standard, table 3-7), without the control characters of ASCII and U+0080..U+009F. */
static const struct lead {
	uint8_t first, last;
	uint8_t length;
	uint8_t low, high;
} leads[] = {
	{ 0x20, 0x7e, 1, 0, 0 },       { 0xc2, 0xc2, 2, 0xa0, 0xbf }, { 0xc3, 0xdf, 2, 0x80, 0xbf },
	{ 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f },
	{ 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf },
	{ 0xf4, 0xf4, 4, 0x80, 0x8f },
};

size_t text_character_length(const char *text)
{
	const struct lead *lead = NULL;
	uint8_t byte[4] = { 0 };

	memcpy(byte, text, strnlen(text, sizeof(byte)));
	for (size_t i = 0; i < ARRAY_SIZE(leads) && !lead; i++)
		if (byte[0] >= leads[i].first && byte[0] <= leads[i].last)
			lead = &leads[i];
	if (!lead)
		return 0;

	if (lead->length > 1 && (byte[1] < lead->low || byte[1] > lead->high))
		return 0;
	for (size_t i = 2; i < lead->length; i++)
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
	return lead->length;
}

bool text_printable(const char *text)
{
	while (*text) {
		size_t n = text_character_length(text);

		if (n == 0)
			return false;
		text += n;
	}
	return true;
}

const char *text_clean(char *buf, size_t size, const char *text)
{
	size_t used = 0;

	while (*text) {
		size_t n = text_character_length(text);
		const char *from = n > 0 ? text : "?";
		size_t length = n > 0 ? n : 1;

		if (used + length >= size)
			break;
		memcpy(buf + used, from, length);
		used += length;
		text += length;
	}
	buf[used] = '\0';
	return buf;
}

int text_index(const char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -EINVAL;
}

/* Levenshtein distance, without case. */
static size_t distance(const char *a, const char *b, size_t b_size)
{
	size_t row[WORD_MAX + 1], corner, above;

	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		corner = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < b_size; j++) {
			above = row[j + 1];
			if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[j]))
				corner++;
			row[j + 1] = above < row[j] ? above + 1 : row[j] + 1;
			if (corner < row[j + 1])
				row[j + 1] = corner;
			corner = above;
		}
	}
	return row[b_size];
}

const char *text_nearest(const char *word, const char *const *words)
{
	const char *nearest = NULL;
	size_t size = strlen(word), best = 1 + size / 3, d;

	for (; *words; words++) {
		if (strlen(*words) > WORD_MAX)
			continue;
		d = distance(word, *words, strlen(*words));
		if (d > best || (nearest && d == best))
			continue;
		best = d;
		nearest = *words;
	}
	return nearest;
}

int refuse(char *why, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return error;
}
