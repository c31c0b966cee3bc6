/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 64U

/* Digits and no sign, to the end or to where *ret_rest then is. */
static int parse_number(const char *text, unsigned long long *ret, const char **ret_rest)
{
	unsigned long long value;
	char *rest;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &rest, 10);
	if (errno != 0)
		return -ERANGE;
	*ret = value;
	*ret_rest = rest;
	return 0;
}

int ini_unsigned(const struct ini_place *place, const char *key, const char *value, unsigned min,
		 unsigned max, unsigned *ret)
{
	unsigned long long number;
	const char *rest;

	if (parse_number(value, &number, &rest) < 0 || *rest || number < min || number > max) {
		ini_bad(place, "%s: '%s' is not a number from %u to %u", key, value, min, max);
		return -EINVAL;
	}
	*ret = (unsigned)number;
	return 0;
}

int ini_percent(const struct ini_place *place, const char *key, const char *value, unsigned min,
		unsigned max, unsigned *ret)
{
	unsigned long long number;
	const char *rest;

	if (parse_number(value, &number, &rest) < 0 || strcmp(rest, "%") != 0 || number < min ||
	    number > max) {
		ini_bad(place, "%s: '%s' is not a share from %u%% to %u%%, written like 60%%", key,
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
	ini_bad(place, "%s: '%s' is neither yes nor no", key, value);
	return -EINVAL;
}

/* 0 for "", 10 for "K", … -EINVAL for what is no suffix. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "KMGT";
	const char *letter;

	if (!*suffix)
		return 0;
	letter = strchr(letters, toupper((unsigned char)*suffix));
	return letter && !suffix[1] ? (int)(letter - letters + 1) * 10 : -EINVAL;
}

int ini_bytes(const struct ini_place *place, const char *key, const char *value,
	      unsigned long long *ret)
{
	unsigned long long number;
	const char *rest;
	int shift = -EINVAL;

	if (parse_number(value, &number, &rest) == 0)
		shift = suffix_shift(rest);
	if (shift < 0 || number > UINT64_MAX >> shift) {
		ini_bad(place,
			"%s: '%s' is not a number of bytes: 4096, 512M, 2G (K M G T, no blank)",
			key, value);
		return -EINVAL;
	}
	*ret = number << shift;
	return 0;
}

/* Letters to change, add or leave out (Levenshtein), without case. */
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

const char *ini_nearest(const char *word, const char *const *words)
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
