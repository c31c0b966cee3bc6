/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rocr-mask-parser.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define IDS 4096U

struct ids {
	uint32_t id[IDS];
	size_t n;
};

/* Ids come as numbers and ranges. One beyond max is dropped, not an error; a range is cut.
 * Twice the same id is an error, and so is an empty result. */
static bool parse_ids(const char *text, size_t length, uint32_t max, struct ids *ret)
{
	char copy[4096], *rest = copy, *item;

	ret->n = 0;
	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';

	while (*rest && (item = strsep(&rest, ","))) {
		char *dash = strchr(item, '-'), *end;
		unsigned long first, last;

		if (!*item)
			return false;
		if (dash)
			*dash++ = '\0';
		first = last = strtoul(item, &end, 10);
		if (*end)
			return false;
		if (dash && *dash) {
			last = strtoul(dash, &end, 10);
			if (*end || last < first)
				return false;
		}
		for (unsigned long id = first; id <= last && id <= max && ret->n < IDS; id++)
			ret->id[ret->n++] = (uint32_t)id;
		if (!rest)
			break;
	}

	for (size_t i = 0; i < ret->n; i++)
		for (size_t k = 0; k < i; k++)
			if (ret->id[i] == ret->id[k])
				return false;
	return ret->n > 0;
}

static uint32_t digit(char c)
{
	return (uint32_t)(isdigit((unsigned char)c) ? c - '0' : c - 'A' + 10);
}

/* Hexadecimal, the last digit first; words above that of the last CU are cut off. */
static bool parse_hex(const char *text, size_t length, unsigned max_cus, uint32_t *words)
{
	size_t most = max_cus / 32 + 1;
	bool any = false;

	for (size_t i = 0; i < length; i++) {
		size_t bit = 4 * (length - 1 - i);

		if (!isxdigit((unsigned char)text[i]))
			return false;
		if (bit / 32 < most && bit / 32 < ROCR_WORDS)
			words[bit / 32] |= digit(text[i]) << bit % 32;
	}
	for (size_t i = 0; i < ROCR_WORDS; i++)
		any |= words[i] != 0;
	return any;
}

static bool parse_cus(const char *text, size_t length, unsigned max_cus, uint32_t *words)
{
	struct ids ids;

	memset(words, 0, ROCR_WORDS * sizeof(*words));
	if (length > 1 && text[1] == 'X')
		return text[0] == '0' && parse_hex(text + 2, length - 2, max_cus, words);

	if (!parse_ids(text, length, max_cus, &ids))
		return false;
	for (size_t i = 0; i < ids.n; i++)
		words[ids.id[i] / 32] |= UINT32_C(1) << ids.id[i] % 32;
	return true;
}

/* One set, "GPUs:CUs". GPU ids up to the number of GPUs pass, one too many. */
static bool parse_set(const char *text, size_t length, unsigned n_gpus, unsigned max_cus,
		      struct rocr_masks *masks)
{
	const char *colon = memchr(text, ':', length);
	uint32_t words[ROCR_WORDS];
	struct ids gpus;
	size_t left, right;

	if (!colon)
		return false;
	left = (size_t)(colon - text);
	right = length - left - 1;
	if (right == 0)
		return false;
	if (colon[right] == ':')
		right--; /* a separator at the end separates nothing */
	if (right == 0 || memchr(colon + 1, ':', right))
		return false;
	if (!parse_cus(colon + 1, right, max_cus, words) || !parse_ids(text, left, n_gpus, &gpus))
		return false;
	for (size_t i = 0; i < gpus.n; i++)
		if (gpus.id[i] >= ROCR_GPUS || masks->set[gpus.id[i]])
			return false;

	for (size_t i = 0; i < gpus.n; i++) {
		masks->set[gpus.id[i]] = true;
		memcpy(masks->word[gpus.id[i]], words, sizeof(words));
	}
	return true;
}

void rocr_parse_masks(const char *value, unsigned n_gpus, unsigned max_cus, struct rocr_masks *ret)
{
	char *text = malloc(strlen(value) + 1), *p = text;

	memset(ret, 0, sizeof(*ret));
	if (!text)
		abort();
	for (; *value; value++)
		if (!isspace((unsigned char)*value))
			*p++ = (char)toupper((unsigned char)*value);
	*p = '\0';

	for (p = text; *p && !ret->ignored;) {
		size_t length = strcspn(p, ";");

		ret->ignored = !parse_set(p, length, n_gpus, max_cus, ret);
		p += length + (p[length] == ';');
	}
	free(text);
}
