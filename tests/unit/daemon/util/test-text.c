/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/text.h"

#include "check.h"
#include "seed.h"

static bool cleaned(const char *text, const char *expected)
{
	char buf[32];

	return strcmp(text_clean(buf, sizeof(buf), text), expected) == 0;
}

TEST(printable_text_is_utf8_without_control_characters)
{
	CHECK(text_printable(""));
	CHECK(text_printable("compositor 2"));
	CHECK(text_printable("\u00e9t\u00e9 \u6f22 \U0001f600"));
	CHECK(!text_printable("a\nb"));
	CHECK(!text_printable("\x1b[31m"));
	CHECK(!text_printable("\x7f"));
	CHECK(!text_printable("\xc2\x85")); /* C1: some terminals obey these */
	CHECK(!text_printable("\xc2\x9b"));
	CHECK(text_printable("\u00a0"));
}

TEST(malformed_sequences_are_not_printable)
{
	CHECK(!text_printable("\xc3"));         /* truncated */
	CHECK(!text_printable("\xe6\xbc"));     /* truncated */
	CHECK(!text_printable("\xf0\x9f\x98")); /* truncated */
	CHECK(!text_printable("\x80"));         /* no lead */
	CHECK(!text_printable("\xff"));
	CHECK(!text_printable("\xc0\xaf")); /* overlong */
	CHECK(!text_printable("\xe0\x80\xaf"));
	CHECK(!text_printable("\xf0\x80\x80\xaf"));
	CHECK(!text_printable("\xed\xa0\x80"));     /* surrogate */
	CHECK(!text_printable("\xf4\x90\x80\x80")); /* past U+10FFFF */
	CHECK(!text_printable("\xe6(\xa1"));
}

TEST(cleaning_replaces_byte_by_byte)
{
	CHECK(cleaned("plain", "plain"));
	CHECK(cleaned("a\tb\xff"
		      "c",
		      "a?b?c"));
	CHECK(cleaned("t\u00e9\xc3", "t\u00e9?"));
	CHECK(cleaned("\xc2\x9b", "??"));
}

TEST(cleaning_truncates_between_characters)
{
	char buf[4];

	CHECK(strcmp(text_clean(buf, sizeof(buf), "abcdef"), "abc") == 0);
	CHECK(strcmp(text_clean(buf, sizeof(buf), "ab\u00e9"), "ab") == 0);
	CHECK(strcmp(text_clean(buf, sizeof(buf), "a\u00e9"), "a\u00e9") == 0);
	CHECK(strcmp(text_clean(buf, 1, "a"), "") == 0);
}

TEST(cleaned_text_is_always_printable)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned i = 0; i < 20000; i++) {
		char raw[33], buf[24];

		for (size_t j = 0; j < sizeof(raw); j++)
			raw[j] = (char)rand_r(&seed);
		raw[32] = '\0';
		CHECK(text_printable(text_clean(buf, sizeof(buf), raw)));
		CHECK(strlen(buf) < sizeof(buf));
	}
}

TEST(nearest_word_differs_in_few_letters)
{
	static const char *const words[] = { "max-leases", "max-gpus", "class", "no", NULL };
	char longer[1000];

	CHECK(strcmp(text_nearest("max_leases", words), "max-leases") == 0);
	CHECK(strcmp(text_nearest("maxgpu", words), "max-gpus") == 0);
	CHECK(strcmp(text_nearest("Clas", words), "class") == 0);
	CHECK(!text_nearest("colour-of-the-fan", words));
	CHECK(!text_nearest("", words));
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	CHECK(!text_nearest(longer, words));
}
