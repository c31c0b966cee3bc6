/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/mask-text.h"

#include <errno.h>
#include <string.h>

#include "check.h"

#define DIGITS_MAX (65536U / 4)

static char *hex_of(char first, size_t zeros, size_t digits)
{
	char *text = malloc(2 + zeros + digits + 1);

	CHECK(text);
	memcpy(text, "0x", 2);
	memset(text + 2, '0', zeros + digits);
	text[2 + zeros] = first;
	text[2 + zeros + digits] = '\0';
	return text;
}

static int parse(char *text, size_t *ret_words)
{
	uint32_t *mask = NULL;
	int r = mask_parse(text, &mask, ret_words);

	free(text);
	free(mask);
	return r;
}

TEST(the_highest_bit_is_read_from_both_forms)
{
	size_t words;

	CHECK(parse(strdup("65535"), &words) == 0 && words == 2048);
	CHECK(parse(hex_of('8', 0, DIGITS_MAX), &words) == 0 && words == 2048);
	CHECK(parse(strdup("65536"), &words) == -ERANGE);
	CHECK(parse(hex_of('1', 0, DIGITS_MAX + 1), &words) == -ERANGE);
}

TEST(leading_zeros_of_a_hexadecimal_mask_are_no_bits)
{
	size_t words;

	CHECK(parse(hex_of('1', DIGITS_MAX, 1), &words) == 0 && words == 1);
	CHECK(parse(strdup("0x0"), &words) == 0 && words == 1);
	CHECK(parse(strdup("0x"), &words) == -EINVAL);
}
