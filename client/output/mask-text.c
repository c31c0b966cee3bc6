/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/mask-text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/options/number.h"

#define BITS_MAX 65536U /* far above DEAL_BITS: a mask may be too long and explained */

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

	return digit ? (int)(digit - digits) : -EINVAL;
}

static int parse_hex(const char *digits, uint32_t *mask)
{
	size_t n = strlen(digits);

	if (n == 0)
		return -EINVAL;

	for (size_t i = 0; i < n; i++) {
		int digit = hex_digit(digits[n - 1 - i]);

		if (digit < 0)
			return -EINVAL;
		mask[i / 8] |= (uint32_t)digit << (i % 8 * 4);
	}
	return 0;
}

static int take_bit(const char **text, unsigned *ret)
{
	uint64_t bit;
	int r;

	r = number_take(text, &bit);
	if (r < 0)
		return r;
	if (bit >= BITS_MAX)
		return -ERANGE;

	*ret = (unsigned)bit;
	return 0;
}

static int parse_list(const char *text, uint32_t *mask)
{
	unsigned first, last;
	int r;

	for (;; text++) {
		r = take_bit(&text, &first);
		if (r < 0)
			return r;
		last = first;
		if (*text == '-') {
			text++;
			r = take_bit(&text, &last);
			if (r < 0)
				return r;
		}
		if (last < first || (*text && *text != ','))
			return -EINVAL;
		for (unsigned bit = first; bit <= last; bit++)
			mask[bit / 32] |= UINT32_C(1) << bit % 32;
		if (!*text)
			return 0;
	}
}

/* Words up to the last that has a bit, one at least where there is one. */
static size_t used_words(const uint32_t *mask, size_t words)
{
	while (words > 1 && mask[words - 1] == 0)
		words--;
	return words;
}

int mask_parse(const char *text, uint32_t **ret, size_t *ret_words)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	size_t words = hex ? strlen(text) / 8 + 1 : BITS_MAX / 32;
	uint32_t *mask;
	int r;

	if (words > BITS_MAX / 32)
		return -ERANGE;
	mask = calloc(words, sizeof(*mask));
	if (!mask)
		return -ENOMEM;

	r = hex ? parse_hex(text + 2, mask) : parse_list(text, mask);
	if (r < 0) {
		free(mask);
		return r;
	}
	*ret = mask;
	*ret_words = used_words(mask, words);
	return 0;
}

char *mask_hex(const uint32_t *mask, size_t words)
{
	size_t used = used_words(mask, words);
	char *text = malloc(used * 8 + 4), *end = text;

	if (!text)
		return NULL;

	end += sprintf(end, "0x%x", used > 0 ? mask[used - 1] : 0);
	for (size_t i = used; i-- > 1;)
		end += sprintf(end, "%08x", mask[i - 1]);
	return text;
}

static bool has(const uint32_t *mask, size_t words, size_t bit)
{
	return bit / 32 < words && (mask[bit / 32] >> bit % 32 & 1);
}

char *mask_list(const uint32_t *mask, size_t words)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;

	for (size_t bit = 0, n = 0; bit < words * 32; bit++) {
		size_t first = bit;

		if (!has(mask, words, bit))
			continue;
		while (has(mask, words, bit + 1))
			bit++;
		fprintf(out, first == bit ? "%s%zu" : "%s%zu-%zu", n++ ? "," : "", first, bit);
	}
	return fclose(out) == 0 ? text : NULL;
}
