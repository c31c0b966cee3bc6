/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* Length in bytes of the printable character at the start of text; 0: there is none. */
static size_t character_length(const char *text)
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
		size_t n = character_length(text);

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
		size_t n = character_length(text);
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

int refuse(char *why, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return error;
}
