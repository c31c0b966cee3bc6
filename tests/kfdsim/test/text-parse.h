/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads debugfs texts back, knowing nothing of how they were made: by line, as a tool on a real
 * machine would. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* The n-th line from text on that starts with that, or NULL. */
static inline const char *line_with(const char *text, const char *start, unsigned n)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, start, strlen(start)) == 0 && n-- == 0)
			return line;
	}
	return NULL;
}

static inline unsigned lines_with(const char *text, const char *start)
{
	unsigned n = 0;

	while (line_with(text, start, n))
		n++;
	return n;
}

/* One line of a dump: its address and its words; how many, 0 if it is none. */
static inline unsigned dump_line(const char *line, uint32_t *ret_address, uint32_t words[8])
{
	unsigned n = 0;
	char *end;

	line += strspn(line, " ");
	*ret_address = (uint32_t)strtoul(line, &end, 16);
	if (end != line + 8 || *end != ':')
		return 0;
	for (line = end + 1; n < 8 && *line == ' '; line = end, n++)
		words[n] = (uint32_t)strtoul(line, &end, 16);
	return n;
}

/* The word at that address in the copy-th dump behind a heading, where each copy starts at 0
 * or all are one (first_copy alone). False past what belongs to the heading. */
static inline bool dump_word(const char *heading, unsigned copy, uint32_t address, uint32_t *ret)
{
	unsigned seen = 0;

	for (const char *line = strchr(heading, '\n'); line && line[1];
	     line = strchr(line + 1, '\n')) {
		uint32_t at, words[8];
		unsigned n = dump_line(line + 1, &at, words);

		if (n == 0)
			return false;
		seen += at == 0;
		if (seen != 0 && seen - 1 != copy)
			continue;
		if (address >= at && address < at + 4 * n) {
			*ret = words[(address - at) / 4];
			return true;
		}
	}
	return false;
}

static inline uint32_t word(const char *heading, unsigned copy, uint32_t address)
{
	uint32_t value = 0;

	CHECK(heading);
	CHECK(dump_word(heading, copy, address, &value));
	return value;
}
