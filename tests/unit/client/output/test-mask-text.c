/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/mask-text.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "lack.h"

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

TEST(text_of_neither_form_is_refused)
{
	static const char *const texts[] = { "", "x", "0xg", "0x1 ", "1-", "1-x", "3-1", "1;2" };
	size_t words;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CHECK(parse(strdup(texts[i]), &words) == -EINVAL);
}

/* ---- places ------------------------------------------------------------------------------------- */

/* Two XCCs with two engines of two arrays of four CUs each. */
static struct model model_of_two(void)
{
	struct geometry geometry = { .xccs = 2, .engines = 2, .arrays = 2, .array_cus = 4 };
	struct model model;

	CHECK(geometry_spread(&geometry, 32) == 0);
	model_init(&model, &geometry);
	return model;
}

TEST(place_of_another_form_is_refused)
{
	static const char *const places[] = { "XCCx",    "XCC0",  "XCC0SE0", "SEx",
					      "SE0.SHx", "SE0:x", "SE0:0-",  "SE0;",
					      "XCC0.",   "SE0,",  "" };
	struct model model = model_of_two();
	struct cuset set;
	char why[200];

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		why[0] = '\0';
		CHECK(places_parse(&model, places[i], &set, why, sizeof(why)) == -EINVAL && why[0]);
	}
	CHECK(places_parse(&model, "XCC0.SE1.SH0:1-2", &set, why, sizeof(why)) == 0);
	CHECK(cuset_count(&set) == 2);
}

/* ---- without memory ----------------------------------------------------------------------------- */

static const uint32_t mask[64] = { [0] = 0x55555555, [63] = 0x80000001 };

/* As with memory, or NULL. */
static int is_whole(char *text, const char *whole)
{
	int r = text ? 0 : -ENOMEM;

	CHECK(!text || strcmp(text, whole) == 0);
	free(text);
	return r;
}

static char *whole;

static int format_hex(long allocations)
{
	lack_left = allocations;
	return is_whole(mask_hex(mask, 64), whole);
}

static int format_list(long allocations)
{
	lack_left = allocations;
	return is_whole(mask_list(mask, 64), whole);
}

static int format_places(long allocations)
{
	struct model model = model_of_two();

	lack_left = allocations;
	return is_whole(places_format(&model, &model.all), whole);
}

static int parse_it(long allocations)
{
	size_t words;

	lack_left = allocations;
	return parse(strdup("1-3"), &words);
}

TEST(text_is_whole_or_there_is_no_memory)
{
	struct model model = model_of_two();

	whole = mask_hex(mask, 64);
	CHECK(whole && lack_each("mask_hex", format_hex) > 0);
	free(whole);
	whole = mask_list(mask, 64);
	CHECK(whole && lack_each("mask_list", format_list) > 0);
	free(whole);
	whole = places_format(&model, &model.all);
	CHECK(whole && lack_each("places_format", format_places) > 0);
	free(whole);
	lack_spares_strings = true;
	CHECK(lack_each("mask_parse", parse_it) > 0);
}
